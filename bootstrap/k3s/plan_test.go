package k3s

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func hash(content []byte) string { return host.KeyedHash("key", content) }

// installed is a machine on which everything is as wanted.
func installed(w Want) Seen {
	s := Seen{
		Arch: "amd64", Version: w.Version, SHA256: w.SHA256, Hash: hash,
		Units:      map[string]host.Unit{w.Unit(): {Active: "active", Sub: "running", Enabled: "enabled"}},
		Files:      map[string]host.File{},
		ConfigKeys: map[string][]string{OwnConfig: {"node-name"}},
	}
	for _, f := range Files(w) {
		s.Files[f.Path] = host.File{Mode: strings.TrimPrefix(f.Mode, "0"), Hash: hash([]byte(f.Content)), Kind: "file"}
	}
	s.Files[ServerTokenFile] = host.File{Mode: "600", Hash: "x", Kind: "file"}
	s.Files[AgentTokenFile] = host.File{Mode: "600", Hash: "y", Kind: "file"}
	return s
}

func ids(actions []plan.Action) string {
	var out []string
	for _, a := range actions {
		out = append(out, a.ID)
	}
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	server, agent := serverWant(), agentWant()
	file := func(f host.File, path string) func(*Seen) { return func(s *Seen) { s.Files[path] = f } }
	for name, c := range map[string]struct {
		want          Want
		change        func(*Seen)
		ids           string
		title, reason string
		barrier       bool
	}{
		"fresh": {want: server, change: func(s *Seen) { *s = Seen{Arch: "amd64", Hash: hash} },
			ids: "gpu-1/k3s-binary gpu-1/k3s", title: "install k3s v1.36.3+k3s1 (server)", reason: "k3s is absent", barrier: true},
		"fresh agent": {want: agent, change: func(s *Seen) { *s = Seen{Arch: "arm64", Hash: hash} },
			ids: "gpu-2/k3s-binary gpu-2/k3s", title: "install k3s v1.36.3+k3s1 (agent)", reason: "k3s is absent", barrier: true},
		"same":       {want: server},
		"same agent": {want: agent},
		"older": {want: server, change: func(s *Seen) { s.Version = "v1.35.7+k3s1" },
			ids: "gpu-1/k3s-binary gpu-1/k3s", title: "upgrade k3s v1.35.7+k3s1 -> v1.36.3+k3s1 (server)", reason: "k3s is v1.35.7+k3s1, wanted"},
		"other bytes": {want: server, change: func(s *Seen) { s.SHA256 = "00" },
			ids: "gpu-1/k3s-binary gpu-1/k3s", title: "configure and restart k3s (server)", reason: "SHA-256 differs"},
		"config drift": {want: server, change: file(host.File{Mode: "600", Hash: "no"}, OwnConfig),
			ids: "gpu-1/k3s", title: "configure and restart k3s (server)", reason: OwnConfig + " differs"},
		"mode": {want: server, change: func(s *Seen) { f := s.Files[OwnConfig]; f.Mode = "644"; s.Files[OwnConfig] = f },
			ids: "gpu-1/k3s", title: "configure and restart k3s (server)", reason: "has mode 644, wanted 0600"},
		"killall gone": {want: server, change: func(s *Seen) { delete(s.Files, BinDir+"/k3s-killall.sh") },
			ids: "gpu-1/k3s", title: "configure k3s (server)", reason: "k3s-killall.sh is absent"},
		"dead": {want: server, change: func(s *Seen) { s.Units["k3s"] = host.Unit{Active: "failed", Sub: "failed", Enabled: "enabled"} },
			ids: "gpu-1/k3s", title: "start k3s (server)", reason: "k3s.service is failed (failed)", barrier: true},
		"disabled": {want: server, change: func(s *Seen) { s.Units["k3s"] = host.Unit{Active: "active", Enabled: "disabled"} },
			ids: "gpu-1/k3s", title: "configure k3s (server)", reason: "does not start at boot"},
		"half installed": {want: server, change: func(s *Seen) { s.Units = nil; delete(s.Files, "/etc/systemd/system/k3s.service") },
			ids: "gpu-1/k3s", title: "install k3s", reason: "k3s.service is absent", barrier: true},
		"only the unit is lost": {want: server, change: func(s *Seen) { s.Units = nil },
			ids: "gpu-1/k3s", title: "install k3s", reason: "k3s.service is absent", barrier: true},
		"token lost": {want: agent, change: func(s *Seen) { delete(s.Files, AgentTokenFile) },
			ids: "gpu-2/k3s", title: "configure and restart k3s (agent)", reason: AgentTokenFile + " is absent"},
	} {
		t.Run(name, func(t *testing.T) {
			s := installed(c.want)
			if c.change != nil {
				c.change(&s)
			}
			actions, findings := Plan(c.want, s, Access{}, c.want.Machine+"/toolkit")
			if len(findings) > 0 {
				t.Errorf("findings: %v", findings)
			}
			if got := ids(actions); got != c.ids {
				t.Fatalf("actions %q, want %q", got, c.ids)
			}
			if len(actions) == 0 {
				return
			}
			last := actions[len(actions)-1]
			if !strings.Contains(last.Title, c.title) || !strings.Contains(last.Reason, c.reason) || last.Barrier != c.barrier {
				t.Errorf("title %q, reason %q, barrier %v", last.Title, last.Reason, last.Barrier)
			}
			if want := c.want.Machine + "/k3s-binary " + c.want.Machine + "/toolkit"; strings.Join(last.Needs, " ") != want {
				t.Errorf("needs %v", last.Needs)
			}
		})
	}
}

func TestPlanKnowsTheToken(t *testing.T) {
	w := agentWant()
	w.AgentToken = "K10" + strings.Repeat("a", 64) + "::node:secret"
	s := installed(w)
	actions, _ := Plan(w, s, Access{})
	if ids(actions) != "gpu-2/k3s" || !strings.Contains(actions[0].Reason, "not the server's") {
		t.Errorf("another token: %v", actions)
	}
	s.Files[AgentTokenFile] = host.File{Mode: "600", Hash: hash([]byte(w.AgentToken + "\n"))}
	if actions, _ := Plan(w, s, Access{}); len(actions) > 0 {
		t.Errorf("the right token: %v", ids(actions))
	}
	for _, a := range actions {
		if strings.Contains(fmt.Sprintf("%+v", a), "secret") {
			t.Error("the plan shows a token")
		}
	}
}

func TestPlanDownload(t *testing.T) {
	w := serverWant()
	actions, _ := Plan(w, Seen{Arch: "amd64"}, Access{})
	if got := strings.Join(actions[0].Changes, "; "); got != "https://mirror.example/k3s/v1.36.3%2Bk3s1/k3s -> /usr/local/bin/.k3s-v1.36.3+k3s1; sha256 "+strings.Repeat("ab", 32) {
		t.Errorf("changes %q", got)
	}
	if len(actions[0].Needs) > 0 {
		t.Errorf("the download waits for %v", actions[0].Needs)
	}
	w.SHA256, w.Source = "", ""
	actions, _ = Plan(w, Seen{Arch: "arm64"}, Access{})
	if got := strings.Join(actions[0].Changes, "; "); !strings.Contains(got, DefaultSource+"/v1.36.3%2Bk3s1/k3s-arm64") || !strings.Contains(got, "sha256sum-arm64.txt: the set does not know") {
		t.Errorf("changes %q", got)
	}
}

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		want   Want
		change func(*Seen)
		code   diag.Code
		blocks bool
	}{
		"unknown":        {serverWant(), func(s *Seen) { s.Unknown = "k3s: timeout" }, "probe-incomplete", true},
		"foreign":        {serverWant(), func(s *Seen) { delete(s.Files, OwnConfig) }, "k3s-foreign", true},
		"other role":     {serverWant(), func(s *Seen) { s.Units["k3s-agent"] = host.Unit{} }, "k3s-other-role", true},
		"downgrade":      {serverWant(), func(s *Seen) { s.Version = "v1.36.10+k3s1" }, "k3s-downgrade", true},
		"older revision": {serverWant(), func(s *Seen) { s.Version = "v1.36.3+k3s2" }, "k3s-downgrade", true},
		"skips":          {serverWant(), func(s *Seen) { s.Version = "v1.34.9+k3s1" }, "k3s-skips-minor", true},
		"data-dir":       {serverWant(), func(s *Seen) { s.ConfigKeys[UserConfig] = []string{"data-dir"} }, "k3s-config-conflict", true},
		"server":         {serverWant(), func(s *Seen) { s.ConfigKeys[UserConfig] = []string{"server"} }, "k3s-config-conflict", true},
		"same key":       {serverWant(), func(s *Seen) { s.ConfigKeys[UserConfig] = []string{"node-ip"} }, "k3s-config-conflict", false},
		"disable":        {serverWant(), func(s *Seen) { s.ConfigKeys[UserConfig] = []string{"disable"} }, "k3s-config-conflict", false},
		"replaced later": {serverWant(), func(s *Seen) { s.ConfigKeys[DropInDir+"/90-x.yaml"] = []string{"tls-san"} }, "k3s-config-conflict", true},
		"agent key":      {agentWant(), func(s *Seen) { s.ConfigKeys[UserConfig] = []string{"tls-san"} }, "k3s-unknown-key", true},
		"registries":     {serverWant(), func(s *Seen) { s.Registries = []byte(brokenRegistries) }, "registries-invalid", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := installed(c.want)
			s.ConfigKeys = maps.Clone(s.ConfigKeys)
			c.change(&s)
			w := c.want
			if name == "registries" {
				w.ImageMirror = "https://m.example"
			}
			actions, findings := Plan(w, s, Access{})
			if len(findings) != 1 || findings[0].Code != c.code || (findings[0].Severity == diag.Blocks) != c.blocks {
				t.Fatalf("findings %+v", findings)
			}
			if c.blocks && len(actions) > 0 {
				t.Errorf("blocked, but planned %s", ids(actions))
			}
		})
	}
	s := installed(serverWant())
	s.ConfigKeys[DropInDir+"/90-x.yaml"] = []string{"tls-san+", "debug"}
	s.ConfigKeys[UserConfig] = []string{"tls-san", "node-label", "write-kubeconfig-mode"}
	if _, f := Plan(serverWant(), s, Access{}); len(f) > 0 {
		t.Errorf("harmless keys: %v", f)
	}
}

func TestObserveRegistries(t *testing.T) {
	w := serverWant()
	w.ImageMirror = "https://m.example"
	s := installed(w)
	s.Files[RegistriesFile] = host.File{Mode: "600", Hash: "other"}

	on := remotetest.New(t)
	theirs, _, err := MergeRegistries([]byte("configs:\n  m.example:\n    auth: {password: made-up}\n"), nil, w.ImageMirror)
	if err != nil {
		t.Fatal(err)
	}
	on.Expect("read registries.yaml").Output(theirs)
	seen, err := Observe(context.Background(), on, w, s)
	if err != nil {
		t.Fatal(err)
	}
	if actions, f := Plan(w, seen, Access{}); len(actions)+len(f) > 0 {
		t.Errorf("a file that has the mirror: %v %v", ids(actions), f)
	}
	seen.Registries = []byte("configs: {}\n")
	if actions, _ := Plan(w, seen, Access{}); ids(actions) != "gpu-1/k3s" {
		t.Errorf("a file without the mirror: %v", ids(actions))
	}
	want, _ := w.registries()
	s.Files[RegistriesFile] = host.File{Mode: "600", Hash: hash([]byte(want))}
	if seen, err = Observe(context.Background(), remotetest.New(t), w, s); err != nil || seen.Registries != nil {
		t.Errorf("a right file was read again: %v", err)
	}
	if actions, f := Plan(w, seen, Access{}); len(actions)+len(f) > 0 {
		t.Errorf("a right file: %v %v", ids(actions), f)
	}
}
