package k3s

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

func installAction(w Want, s Seen, a Access, c change, needs []string) plan.Action {
	limit := a.StartLimit
	if limit == 0 {
		limit = 5 * time.Minute
	}
	var consent plan.Consent
	if c.migrates {
		consent = plan.ConsentDatastore
	}
	return plan.Action{
		ID: ActionID(w.Machine), Machine: w.Machine, Consent: consent,
		Title: title(w, s, c), Reason: strings.Join(c.all(), "; "), Changes: changes(w, c), Chosen: chosen(w, c),
		Needs: append([]string{BinaryID(w.Machine)}, needs...), Barrier: c.start,
		Timeout: limit + 2*time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			if _, there := s.Files[RegistriesFile]; there && c.registries != "" {
				// The file may be the user's: what is added depends on what it says now.
				existing, err := readRegistries(ctx, a.On)
				if err != nil {
					return err
				}
				if c.registries, err = registriesChange(w, existing); err != nil {
					return err
				}
			}
			return install(ctx, w, a, c, limit, say)
		},
	}
}

func title(w Want, s Seen, c change) string {
	switch {
	case c.first:
		return fmt.Sprintf("install k3s %s (%s)", w.Version, w.Role)
	case s.Version != w.Version && s.Version != "":
		return fmt.Sprintf("upgrade k3s %s -> %s (%s)", s.Version, w.Version, w.Role)
	case c.restart && c.binary == "" && len(c.files) == 0:
		return fmt.Sprintf("restart k3s (%s)", w.Role)
	case c.restart:
		return fmt.Sprintf("configure and restart k3s (%s)", w.Role)
	case c.start:
		return fmt.Sprintf("start k3s (%s)", w.Role)
	}
	return fmt.Sprintf("configure k3s (%s)", w.Role)
}

func changes(w Want, c change) []string {
	var out []string
	if c.binary != "" {
		out = append(out, stagedPath(w)+" -> "+Binary)
	}
	for _, f := range c.files {
		name, what, _ := strings.Cut(f, " ")
		if !strings.HasPrefix(name, "/") {
			continue // the datastore, see below
		}
		verb := "write "
		if strings.HasPrefix(what, "has mode") {
			verb = "chmod "
		}
		out = append(out, verb+name)
		if name == OwnConfig && verb == "write " {
			out = append(out, w.Why...)
		}
	}
	if c.migrates {
		out = append(out, "the database is copied to "+w.Data()+"/server/db-sqlite-<time>, with the token", "sqlite -> etcd: there is no way back but that copy")
	}
	if c.moved {
		out = append(out, "etcd: its one member gets the new address (k3s server --cluster-reset, the data stay)")
	}
	if w.Server() && w.First() {
		return append(out, "tokens: random, made once, kept on this machine")
	}
	return append(out, "token: agent-token@"+w.ServerURL)
}

// chosen is told where the network's values are written.
func chosen(w Want, c change) []string {
	for _, f := range c.files {
		if name, what, _ := strings.Cut(f, " "); name == OwnConfig && !strings.HasPrefix(what, "has mode") {
			return w.Chosen
		}
	}
	return nil
}

// install lays the files, swaps the binary and (re)starts k3s, in one command.
func install(ctx context.Context, w Want, a Access, c change, limit time.Duration, say plan.Say) error {
	agent, server, err := tokens(ctx, w, a)
	if err != nil {
		return fmt.Errorf("joining %s: %w", w.ServerURL, err)
	}
	order := "look"
	if c.start || c.restart {
		order = "restart"
	}
	out := &startOutput{say: say}
	_, err = a.On.Run(ctx, remote.Cmd{
		Name: "install k3s", Script: installScript(w, c), Sudo: true,
		Args: []string{
			w.Unit(), order, strconv.Itoa(int(limit.Seconds())), Binary, w.Data(),
			pattern(hopeless()), pattern(healing()), containerdSocket,
		},
		Env:     map[string]string{"AGENT_TOKEN": agent, "SERVER_TOKEN": server},
		Secrets: unique(append([]string{agent, server, secretOf(agent), secretOf(server)}, w.Secrets...)),
		Stdout:  out, Timeout: limit + time.Minute,
	})
	out.flush()
	switch code := remote.ExitCode(err); code {
	case 31, 32, 33, 34:
		return out.startError(w.Unit(), code)
	}
	return err
}

// tokens returns the agent and the server token for this machine: new ones on
// the first server (kept only where none are), the server's for a member.
func tokens(ctx context.Context, w Want, a Access) (agent, server string, err error) {
	if w.First() {
		return randomHex(16), randomHex(16), nil
	}
	if a.Join == nil {
		return "", "", errNoJoin
	}
	c, err := a.Join(ctx)
	if err != nil {
		return "", "", err
	}
	if !fullToken(c.AgentToken) || !fullToken(c.ServerToken) {
		return "", "", errNoJoin
	}
	if w.Server() {
		// A server's own agent-token-file takes the password alone.
		return secretOf(c.AgentToken), c.ServerToken, nil
	}
	return c.AgentToken, "", nil
}

func installScript(w Want, c change) string {
	var b strings.Builder
	b.WriteString(layScript)
	folders(&b, w)
	for _, f := range Files(w) {
		b.WriteString(heredoc("stage "+f.Mode+" "+f.Path, f.Content))
	}
	if c.registries != "" {
		b.WriteString(heredoc("stage 0600 "+RegistriesFile, c.registries))
	}
	if w.First() {
		b.WriteString(firstTokens(w))
	} else {
		if w.Server() {
			b.WriteString("secret 0600 " + ServerTokenFile + ` "$SERVER_TOKEN"` + "\n")
		}
		b.WriteString("secret 0600 " + AgentTokenFile + ` "$AGENT_TOKEN"` + "\n")
	}
	b.WriteString(swapScript(w))
	if c.moved {
		b.WriteString(movedScript(w))
	}
	if c.migrates {
		b.WriteString(copyScript(w))
	}
	b.WriteString(startScript)
	return b.String()
}

// folders makes the folders with the modes k3s itself would give them: one
// that is there before k3s keeps its mode.
func folders(b *strings.Builder, w Want) {
	dirs := []struct{ mode, path string }{
		{"0755", BinDir}, {"0755", "/etc/rancher"}, {"0755", ConfigDir}, {"0755", DropInDir},
		{"0755", unitDir + "/" + w.Unit() + ".service.d"},
		{"0755", w.Data()}, {"0700", w.Data() + "/agent"}, {"0700", w.Data() + "/agent/etc"},
	}
	if hasDropIns(w) {
		dirs = append(dirs, struct{ mode, path string }{"0700", path.Dir(kubeletFile(w))})
	}
	for _, d := range dirs {
		fmt.Fprintf(b, "dir %s %s\n", d.mode, d.path)
	}
}

// firstTokens keeps tokens that are there; where only k3s's data is left of an
// earlier installation, its tokens are taken from it, because they encrypt it.
func firstTokens(w Want) string {
	data := w.Data() + "/server"
	return `if [ -s ` + data + `/token ]; then
  SERVER_TOKEN=$(sed 's/^K10[0-9a-f]*::[a-z]*://' ` + data + `/token)
  [ ! -s ` + data + `/agent-token ] || AGENT_TOKEN=$(sed 's/^K10[0-9a-f]*::[a-z]*://' ` + data + `/agent-token)
fi
once 0600 ` + ServerTokenFile + ` "$SERVER_TOKEN"
once 0600 ` + AgentTokenFile + ` "$AGENT_TOKEN"
`
}

// swapScript makes the change in one piece: a lost connection must not leave
// new files beside a k3s that has not read them, since nothing would show it.
func swapScript(w Want) string {
	staged := stagedPath(w)
	return `if [ ! -f ` + staged + ` ] && [ ! -x ` + Binary + ` ]; then
  echo "neither ` + staged + ` nor ` + Binary + ` is there" >&2
  exit 21
fi
for link in kubectl crictl ctr; do
  [ -e ` + BinDir + `/$link ] || [ -L ` + BinDir + `/$link ] || command -v $link >/dev/null 2>&1 || ln -s k3s ` + BinDir + `/$link
done
trap '' HUP INT TERM PIPE
[ ! -f ` + staged + ` ] || mv -f ` + staged + ` ` + Binary + `
swap
rm -f ` + LeavingFile(w.Unit()) + `
systemctl daemon-reload
systemctl enable ` + w.Unit() + `.service >/dev/null 2>&1
`
}

// startOutput reads what the start script says while it waits.
type startOutput struct {
	say     plan.Say
	partial bytes.Buffer
	journal []string
}

// Write implements io.Writer.
func (o *startOutput) Write(p []byte) (int, error) {
	o.partial.Write(p)
	for {
		line, err := o.partial.ReadString('\n')
		if err != nil {
			o.partial.Reset()
			o.partial.WriteString(line)
			return len(p), nil
		}
		o.line(strings.TrimSuffix(line, "\n"))
	}
}

func (o *startOutput) flush() {
	if o.partial.Len() > 0 {
		o.line(o.partial.String())
		o.partial.Reset()
	}
}

func (o *startOutput) line(line string) {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "journal":
		o.journal = append(o.journal, rest)
	case "say":
		state, log, ok := strings.Cut(rest, ": ")
		if ok {
			rest = state + ": " + Message(log)
		}
		o.say("%s", rest)
	}
}

func (o *startOutput) startError(unit string, exit int) error {
	if exit == 34 {
		return &StartError{Unit: unit, Code: "server-alone", Reason: "its CA is not that of the server it was to join", Journal: o.journal}
	}
	code, reason := Classify(o.journal)
	if code == "" {
		code = "k3s-crash-loop"
		if exit == 33 {
			code = "k3s-start-timeout"
		}
	}
	if reason == "" {
		reason = "its journal is empty"
	}
	return &StartError{Unit: unit, Code: code, Reason: reason, Journal: o.journal}
}
