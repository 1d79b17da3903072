package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// SSH runs a command on a machine, or a shell where there is none, and returns
// its exit code. The user's own OpenSSH does it: terminals, agents and escapes
// work as they are used to.
func (e *Engine) SSH(ctx context.Context, machine string, command []string, stdio Stdio) (int, error) {
	m, ok := e.settings.Inventory.Find(machine)
	if !ok {
		return 0, fmt.Errorf("there is no machine %q", machine)
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return 0, fmt.Errorf("opening a shell on %s: %w", machine, err)
	}
	known, hostKeys := e.settings.KnownHosts, e.settings.Config.Spec.SSH.HostKeys
	args := sshArgs(m, known, hostKeys, stdio.Terminal, command)
	if m.Jump != "" {
		file, err := writeJumpConfig(known, hostKeys, m.IdentityFile)
		if err != nil {
			return 0, fmt.Errorf("opening a shell on %s: %w", machine, err)
		}
		defer func() { _ = os.Remove(file) }() // it holds no secret
		args = append([]string{"-F", file}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.In, stdio.Out, stdio.Err
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// sshArgs is the command line of OpenSSH for a machine. "--" keeps a host from
// being read as an option.
func sshArgs(m inventory.Machine, knownHosts, hostKeys string, terminal bool, command []string) []string {
	var args []string
	option := func(name, value string) {
		if value != "" {
			args = append(args, "-o", name+"="+value)
		}
	}
	for _, o := range hostKeyOptions(knownHosts, hostKeys) {
		option(o[0], o[1])
	}
	option("User", m.User)
	option("IdentityFile", m.IdentityFile)
	option("ProxyJump", m.Jump)
	if m.Port != 0 {
		option("Port", strconv.Itoa(m.Port))
	}
	if terminal {
		args = append(args, "-t")
	}
	args = append(args, "--", m.Host)
	switch len(command) {
	case 0:
	case 1:
		args = append(args, command[0]) // a line for the machine's shell, as with ssh
	default:
		args = append(args, quoteAll(command))
	}
	return args
}

// hostKeyOptions are OpenSSH's options for the keys that this cluster has pinned.
func hostKeyOptions(knownHosts, hostKeys string) [][2]string {
	var options [][2]string
	if knownHosts != "" {
		options = append(options, [2]string{"UserKnownHostsFile", `"` + knownHosts + `" ~/.ssh/known_hosts`})
	}
	if hostKeys == "strict" {
		hostKeys = "yes"
	}
	return append(options, [2]string{"StrictHostKeyChecking", hostKeys})
}

// writeJumpConfig writes an ssh_config with the options of host keys and returns
// its path. OpenSSH starts itself for each jump host, and hands on to that
// process the configuration file (-F) but no option of the command line.
func writeJumpConfig(knownHosts, hostKeys, identityFile string) (path string, err error) {
	var text strings.Builder
	if identityFile != "" {
		fmt.Fprintf(&text, "IdentityFile \"%s\"\n", identityFile)
	}
	for _, o := range hostKeyOptions(knownHosts, hostKeys) {
		if o[1] != "" {
			fmt.Fprintf(&text, "%s %s\n", o[0], o[1])
		}
	}
	text.WriteString("Include ~/.ssh/config\nInclude /etc/ssh/ssh_config\n")
	f, err := os.CreateTemp("", "gpuctl-ssh-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// quoteAll makes one line that a POSIX shell on the machine takes apart into the
// same words: OpenSSH itself only joins them with spaces.
func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}
