package bootstrap

import (
	"context"
	"errors"
	"fmt"
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
	cmd := exec.CommandContext(ctx, program, sshArgs(m, e.settings.KnownHosts, e.settings.Config.Spec.SSH.HostKeys, stdio.Terminal, command)...)
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
	if knownHosts != "" {
		option("UserKnownHostsFile", `"`+knownHosts+`" ~/.ssh/known_hosts`)
	}
	if hostKeys == "strict" {
		hostKeys = "yes"
	}
	option("StrictHostKeyChecking", hostKeys)
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

// quoteAll makes one line that a POSIX shell on the machine takes apart into the
// same words: OpenSSH itself only joins them with spaces.
func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}
