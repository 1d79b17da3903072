package k3s

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func apply(t *testing.T, w Want, s Seen, a Access, id string) error {
	t.Helper()
	actions, findings := Plan(w, s, a)
	for _, action := range actions {
		if action.ID == id {
			return action.Apply(context.Background(), func(string, ...any) {})
		}
	}
	t.Fatalf("no action %s; findings %v", id, findings)
	return nil
}

func TestApplyFirstServer(t *testing.T) {
	on := remotetest.New(t)
	on.Expect("install k3s").Output("say activating (start): level=info msg=\"Waiting\"\nup 0\n")
	if err := apply(t, serverWant(), Seen{Arch: "amd64"}, Access{On: on}, "gpu-1/k3s"); err != nil {
		t.Fatal(err)
	}
	c := on.Calls()[0].Cmd
	if !c.Sudo || c.Args[0] != "k3s" || c.Args[1] != "restart" || c.Args[2] != "300" {
		t.Errorf("sudo %v args %q", c.Sudo, c.Args[:3])
	}
	agent, server := c.Env["AGENT_TOKEN"], c.Env["SERVER_TOKEN"]
	if len(agent) != 32 || len(server) != 32 || agent == server {
		t.Errorf("tokens of %d and %d characters", len(agent), len(server))
	}
	for _, secret := range []string{agent, server} {
		if strings.Contains(c.Script+strings.Join(c.Args, " "), secret) || !strings.Contains(strings.Join(c.Secrets, " "), secret) {
			t.Error("a token is in the script or the arguments, or is not declared secret")
		}
	}
}

func TestApplyAgentJoins(t *testing.T) {
	token := "K10" + strings.Repeat("a", 64) + "::node:s3cret"
	join := func(context.Context) (Credentials, error) {
		return Credentials{AgentToken: token, ServerToken: strings.Replace(token, "node", "server", 1)}, nil
	}
	on := remotetest.New(t)
	on.Expect("install k3s").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		if c.Env["AGENT_TOKEN"] != token {
			t.Error("the agent does not get the full token")
		}
		out := "say activating (start): x\njournal time=\"t\" level=info msg=\"Waiting to retrieve agent configuration; server is not ready: failed to retrieve configuration from server: not authorized\"\n"
		return remote.Result{Stdout: []byte(out)}, &remote.ExitError{Name: c.Name, Code: 31}
	})
	err := apply(t, agentWant(), Seen{Arch: "amd64"}, Access{On: on, Join: join}, "gpu-2/k3s")
	p, ok := diag.Explain(err)
	if !ok || p.Code != "token-refused" || !strings.Contains(err.Error(), "not authorized") {
		t.Errorf("got %v, code %s", err, p.Code)
	}
	if err := apply(t, agentWant(), Seen{Arch: "amd64"}, Access{On: remotetest.New(t)}, "gpu-2/k3s"); err == nil {
		t.Error("joined without credentials")
	}
}

func TestApplyCutOff(t *testing.T) {
	on := remotetest.New(t)
	on.Expect("install k3s").Fail(&remote.CutOffError{Name: "install k3s", Err: io.ErrUnexpectedEOF})
	err := apply(t, serverWant(), Seen{Arch: "amd64"}, Access{On: on, StartLimit: time.Minute}, "gpu-1/k3s")
	if _, is := err.(*remote.CutOffError); !is {
		t.Errorf("got %T %v", err, err)
	}
}

func TestDownloadFallsBackToTheClient(t *testing.T) {
	w := serverWant()
	w.SHA256 = ""
	on := remotetest.New(t).InOrder()
	on.Expect("download k3s").Exit(41, "neither curl nor wget is installed")
	on.Expect("download k3s").Do(func(_ context.Context, c remote.Cmd, stdin []byte) (remote.Result, error) {
		if string(stdin) != "binary" || c.Args[2] != strings.Repeat("cd", 32) || c.Args[5] != "stdin" {
			t.Errorf("stdin %q, args %q", stdin, c.Args)
		}
		return remote.Result{}, nil
	})
	fetch := func(_ context.Context, url string) (io.ReadCloser, error) {
		if strings.HasSuffix(url, ".txt") {
			return io.NopCloser(strings.NewReader(strings.Repeat("ef", 32) + "  k3s-airgap-images-amd64.tar\n" + strings.Repeat("cd", 32) + "  k3s\n")), nil
		}
		return io.NopCloser(strings.NewReader("binary")), nil
	}
	if err := apply(t, w, Seen{Arch: "amd64"}, Access{On: on, Fetch: fetch}, "gpu-1/k3s-binary"); err != nil {
		t.Fatal(err)
	}
	bad := remotetest.New(t)
	bad.Expect("download k3s").Exit(44, "sha-256 of k3s differs: got a, want b")
	err := apply(t, w, Seen{Arch: "amd64"}, Access{On: bad}, "gpu-1/k3s-binary")
	if p, ok := diag.Explain(err); !ok || p.Code != "k3s-binary-mismatch" {
		t.Errorf("got %v", err)
	}
}

// Whatever an installation got to, and whoever made it, reset finds it. The
// password alone is a trace, unless it is to stay.
func TestResetFindsEveryState(t *testing.T) {
	w := agentWant()
	for _, path := range []string{
		"/etc/rancher/node/password", "/usr/local/bin/k3s-uninstall.sh", "/usr/local/bin/k3s-agent-uninstall.sh", UserConfig, OwnConfig,
		stagedPath(w) + ".part", w.Data() + "/server", w.Data() + "/agent", w.Data() + "/data",
	} {
		if !slices.Contains(append(host.DefaultFiles(), Paths(w)...), path) {
			t.Errorf("the probe does not ask for %s", path)
		}
		seen := Seen{Files: map[string]host.File{path: {}}}
		got := ResetPlan(w, seen, ResetOptions{}, nil)
		if len(got) != 1 || !strings.Contains(got[0].Reason, path) {
			t.Errorf("with %s: %+v", path, got)
			continue
		}
		if official := strings.HasSuffix(path, "uninstall.sh"); official != strings.HasPrefix(got[0].Changes[0], "run "+path) {
			t.Errorf("with %s: changes %q", path, got[0].Changes)
		}
		if kept := ResetPlan(w, seen, ResetOptions{KeepPassword: true}, nil); len(kept) == 0 != strings.HasPrefix(path, "/etc/rancher/node/") {
			t.Errorf("with %s and the password kept: %+v", path, kept)
		}
	}
	if got := ResetPlan(w, Seen{Unknown: "architecture"}, ResetOptions{}, nil); len(got) != 0 {
		t.Errorf("a clean machine that does not say what it is: %+v", got)
	}
	slow := See(host.Facts{Files: host.Unknown[map[string]host.File]("timeout"), K3s: host.Absent[host.K3s]()}, "key")
	if got := ResetPlan(w, slow, ResetOptions{}, nil); len(got) != 1 || !strings.Contains(got[0].Reason, "not known") {
		t.Errorf("a machine that does not tell: %+v", got)
	}
}

func TestReset(t *testing.T) {
	w := agentWant()
	if got := ResetPlan(w, Seen{}, ResetOptions{}, nil); len(got) > 0 {
		t.Errorf("a clean machine: %v", ids(got))
	}
	on := remotetest.New(t)
	on.Expect("uninstall k3s").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		if strings.Join(c.Args, " ") != "/data/k3s remove" || !strings.Contains(c.Env["KILLALL"], "/data/k3s") {
			t.Errorf("args %q", c.Args)
		}
		return remote.Result{Stdout: []byte("left mount /data/k3s/storage\nleft interface cni0\n")}, &remote.ExitError{Code: 61}
	})
	half := Seen{Files: map[string]host.File{AgentTokenFile: {}}}
	actions := ResetPlan(w, half, ResetOptions{}, on, "gpu-2/drain")
	if len(actions) != 1 || actions[0].Consent != plan.ConsentUninstall || !strings.Contains(actions[0].Reason, AgentTokenFile) {
		t.Fatalf("a half-installed machine: %+v", actions)
	}
	if got := strings.Join(actions[0].Changes, "\n"); !strings.HasSuffix(got, "delete /etc/rancher/node") || strings.Contains(got, "uninstall.sh") {
		t.Errorf("changes:\n%s", got)
	}
	err := actions[0].Apply(context.Background(), func(string, ...any) {})
	if err == nil || err.Error() != "uninstalling k3s: still there: mount /data/k3s/storage, interface cni0" {
		t.Errorf("got %v", err)
	}
}
