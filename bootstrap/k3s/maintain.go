package k3s

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// startTime is how long k3s may take to come up after a change to what is there.
const startTime = 5 * time.Minute

// restarted runs a script that ends in start.sh, whose functions it may use
// nothing of. env are its secrets.
func restarted(ctx context.Context, w Want, a Access, name, script string, env map[string]string, say plan.Say) error {
	var secrets []string
	for _, s := range env {
		secrets = append(secrets, s, secretOf(s))
	}
	out := &startOutput{say: say}
	_, err := a.On.Run(ctx, remote.Cmd{
		Name: name, Script: script + startScript, Sudo: true,
		Args: []string{
			w.Unit(), "restart", strconv.Itoa(int(startTime.Seconds())), Binary, w.Data(),
			pattern(hopeless()), pattern(healing()), containerdSocket,
		},
		Env: env, Secrets: unique(append(secrets, w.Secrets...)), Stdout: out, Timeout: startTime + 7*time.Minute,
	})
	out.flush()
	switch code := remote.ExitCode(err); code {
	case 31, 32, 33, 34:
		return out.startError(w.Unit(), code)
	}
	return err
}

// Stop stops k3s on a machine; its pods go on.
func Stop(ctx context.Context, on remote.Runner, unit string) error {
	_, err := on.Run(ctx, remote.Cmd{
		Name: "stop k3s", Script: "systemctl stop \"$1.service\"\n! systemctl is-active -q \"$1.service\"\n", Args: []string{unit}, Sudo: true, Timeout: 2 * time.Minute,
	})
	return err
}

// layOwn stages gpuctl's own configuration for the wish.
func layOwn(w Want) string {
	var b strings.Builder
	b.WriteString(layScript)
	b.WriteString(heredoc("stage 0600 "+OwnConfig, Config(w)))
	return b.String()
}

// Restore makes etcd on one server what a snapshot says, as the only member,
// and starts k3s there. k3s is stopped on all other servers. The wish must name
// no server to join: k3s refuses the reset otherwise.
func Restore(ctx context.Context, w Want, a Access, file string, say plan.Say) error {
	if !w.First() {
		return errors.New("restoring a snapshot: the server must not join another one")
	}
	if strings.ContainsAny(file, "'\n") {
		return fmt.Errorf("restoring a snapshot: %q is no path", file)
	}
	script := layOwn(w) + "swap\n" + restoreBody + "restore " + w.Unit() + " " + Binary + " " + w.Data() + " '" + file + "'\n"
	return restarted(ctx, w, a, "restore a snapshot", script, nil, say)
}

// Rejoin makes a server a new member of the cluster that another one was
// restored to. Its own data of etcd are moved aside, not deleted.
func Rejoin(ctx context.Context, w Want, a Access, say plan.Say) error {
	if w.First() || a.Join == nil {
		return errNoJoin
	}
	c, err := a.Join(ctx)
	if err != nil {
		return err
	}
	etcd := w.Data() + "/server/db/etcd"
	script := layOwn(w) + `secret 0600 ` + ServerTokenFile + ` "$SERVER_TOKEN"
swap
systemctl stop ` + w.Unit() + `.service
[ ! -d ` + etcd + ` ] || mv ` + etcd + ` ` + etcd + `-old-$(date +%s)
rm -f ` + w.Data() + `/server/db/reset-flag
`
	return restarted(ctx, w, a, "join again", script, map[string]string{"SERVER_TOKEN": c.ServerToken}, say)
}

// RotateCertificates makes all certificates of a machine's k3s new, but those of
// the CAs, and starts it again: https://docs.k3s.io/cli/certificate.
func RotateCertificates(ctx context.Context, w Want, a Access, say plan.Say) error {
	before, err := fingerprint(ctx, w, a.On)
	if err != nil {
		return err
	}
	script := "systemctl stop " + w.Unit() + ".service\n" + Binary + " certificate rotate --data-dir " + w.Data() + " >&2 || exit 24\n"
	if err := restarted(ctx, w, a, "rotate certificates", "set -eu\n"+script, nil, say); err != nil {
		return err
	}
	after, err := fingerprint(ctx, w, a.On)
	if err == nil && (after == before || after == "") {
		err = errors.New("rotating certificates: k3s runs again, with the certificates of before")
	}
	return err
}

// fingerprint tells whether a machine's certificates are others than before.
func fingerprint(ctx context.Context, w Want, on remote.Runner) (string, error) {
	files := w.Data() + "/agent/client-kubelet.key"
	if w.Server() {
		files += " " + w.Data() + "/server/tls/client-admin.key"
	}
	res, err := on.Run(ctx, remote.Cmd{Name: "look at certificates", Script: "sha256sum " + files + " | sha256sum\n", Sudo: true, Timeout: 30 * time.Second})
	return strings.TrimSpace(string(res.Stdout)), err
}

// Tokens are secrets to write; an empty one stays as it is. Server and Agent
// are in the full form.
type Tokens struct{ Server, Agent string }

// WriteTokens gives a machine new tokens and starts its k3s again.
func WriteTokens(ctx context.Context, w Want, a Access, t Tokens, say plan.Say) error {
	script, env := layScript, map[string]string{}
	if t.Server != "" && w.Server() {
		script += `secret 0600 ` + ServerTokenFile + ` "$SERVER_TOKEN"` + "\n"
		env["SERVER_TOKEN"] = t.Server
		if w.First() {
			env["SERVER_TOKEN"] = secretOf(t.Server)
		}
	}
	if t.Agent != "" {
		script += `secret 0600 ` + AgentTokenFile + ` "$AGENT_TOKEN"` + "\n"
		env["AGENT_TOKEN"] = t.Agent
		if w.Server() {
			env["AGENT_TOKEN"] = secretOf(t.Agent) // a server's own file takes the password alone
		}
	}
	return restarted(ctx, w, a, "write new tokens", script+"swap\n", env, say)
}

// NewSecret is a new random password for a token.
func NewSecret() string { return randomHex(16) }

// With returns a full token with another password.
func With(token, secret string) string {
	head, _, _ := strings.Cut(token, "::")
	_, rest, _ := strings.Cut(token, "::")
	user, _, _ := strings.Cut(rest, ":")
	return head + "::" + user + ":" + secret
}
