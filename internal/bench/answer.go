//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
)

// session takes one command: its input is read to the end of the script, and
// the answer of the machine stands between the marks that the client gave.
func (f *Farm) session(nc ssh.NewChannel, machine int) {
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for r := range requests {
		if r.WantReply {
			_ = r.Reply(r.Type == "exec", nil)
		}
		if r.Type == "exec" {
			break
		}
	}
	go ssh.DiscardRequests(requests)
	got, err := readCommand(ch)
	if err != nil {
		return
	}
	f.begin(machine, got.raw)
	out, code := f.answer(machine, got)
	f.end(machine)
	head := ""
	if got.sudo {
		head = got.mark + "sudo root\n"
	}
	_, _ = io.WriteString(ch.Stderr(), got.mark+"run\n"+got.mark+"end\n")
	_, _ = io.WriteString(ch, head+got.mark+"run 4242 4242\n"+out+got.mark+"end\n")
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

func (f *Farm) begin(machine int, raw []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Commands++
	f.busy[machine] = true
	f.count.MostBusy = max(f.count.MostBusy, len(f.busy))
	f.scripts[machine] = append(f.scripts[machine], raw)
}

func (f *Farm) end(machine int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, machine)
}

// answer is what the machine's script would print, and its exit code.
func (f *Farm) answer(machine int, c command) (string, uint32) {
	switch {
	case strings.Contains(c.setup, "GPUCTL_PROBE_KEY="):
		if f.options.Together {
			f.asked.Done()
			f.asked.Wait()
		}
		out := f.scene.probe(machine, c)
		if f.options.Change != nil {
			out = f.options.Change(machine, out)
		}
		return out, 0
	case machine == 0 && strings.Contains(c.script, "k3s.yaml"):
		return f.scene.credentials(c, f.api.kubeconfig, f.knownHosts()), 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Deeds++
	return "", 127 // not of a run without changes
}

// command is a command as the machine reads it.
type command struct {
	raw  []byte
	mark string
	// sudo says that the client asked how to become root.
	sudo          bool
	setup, script string
	args          []string
}

var (
	markPattern = regexp.MustCompile(`_m='(\x1e[0-9a-f]{24})'`)
	keyPattern  = regexp.MustCompile(`GPUCTL_PROBE_KEY='?([A-Z0-9a-z]+)`)
	argsPattern = regexp.MustCompile(`(?m)^set -- (.*)$`)
)

// readCommand reads programs and script, each of which ends in a line of the mark and a dot.
func readCommand(from io.Reader) (command, error) {
	var c command
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.raw = append(c.raw, buf[:n]...)
		if c.mark == "" {
			if found := markPattern.FindSubmatch(c.raw); found != nil {
				c.mark = string(found[1])
			}
		}
		if c.mark != "" {
			c.sudo = bytes.Contains(c.raw, []byte("\n_loop=")) || bytes.HasPrefix(c.raw, []byte("_loop="))
			blocks := bytes.Split(c.raw, []byte(c.mark+".\n"))
			if want := map[bool]int{false: 3, true: 4}[c.sudo]; len(blocks) == want {
				c.setup, c.script = string(blocks[want-3]), string(blocks[want-2])
				c.args = words(c.setup)
				return c, nil
			}
		}
		if err != nil {
			return c, fmt.Errorf("command without an end: %w", err)
		}
	}
}

// words reads the arguments of a script; those here hold no blanks.
func words(setup string) []string {
	found := argsPattern.FindStringSubmatch(setup)
	if found == nil {
		return nil
	}
	return strings.Fields(strings.ReplaceAll(found[1], "'", ""))
}

// forward connects to the API, whatever address was asked for.
func (f *Farm) forward(nc ssh.NewChannel) {
	target, err := net.Dial("tcp", f.api.address)
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		_ = target.Close() // of no use
		return
	}
	f.mu.Lock()
	f.count.Forwards++
	f.mu.Unlock()
	go ssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(target, ch)
		_ = target.Close()
	}()
	_, _ = io.Copy(ch, target)
	_ = ch.Close()
}

// knownHosts are the host keys of all machines, with their names.
func (f *Farm) knownHosts() string {
	var b strings.Builder
	for i, port := range f.Ports {
		fmt.Fprintf(&b, "[127.0.0.1]:%d %s %s\n", port, strings.TrimSpace(f.HostKey), machineName(i))
	}
	return b.String()
}
