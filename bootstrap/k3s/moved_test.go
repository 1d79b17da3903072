package k3s

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestAServerThatMoved(t *testing.T) {
	w := serverWant()
	w.NodeIP, w.OnlyServer = "10.0.0.9", true
	for name, tc := range map[string]struct {
		was    string
		change func(*Want)
		resets bool
		blocks bool
	}{
		"moved":                             {"10.0.0.4", func(*Want) {}, true, false},
		"at the same address":               {"10.0.0.9", func(*Want) {}, false, false},
		"a second family was added":         {"10.0.0.9", func(w *Want) { w.NodeIP += ",fd12::9" }, false, false},
		"its address before is not known":   {"", func(*Want) {}, false, false},
		"without etcd":                      {"10.0.0.4", func(w *Want) { w.Datastore = SQLite }, false, false},
		"one of several servers":            {"10.0.0.4", func(w *Want) { w.OnlyServer = false }, false, true},
		"one of several, at the same place": {"10.0.0.9", func(w *Want) { w.OnlyServer = false }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := w
			tc.change(&want)
			s := installed(want)
			s.NodeIP = tc.was
			f := s.Files[OwnConfig]
			f.Hash = "old"
			s.Files[OwnConfig] = f
			actions, findings := Plan(want, s, Access{})
			if blocks := diag.AnyBlocks(findings); blocks != tc.blocks || blocks && findings[0].Code != "etcd-not-member" {
				t.Fatalf("findings %+v", findings)
			}
			if tc.blocks {
				return
			}
			if got := strings.Contains(strings.Join(actions[0].Changes, "\n"), "etcd: "); got != tc.resets {
				t.Errorf("changes %v", actions[0].Changes)
			}
			if got := strings.Contains(installScript(want, compare(want, s)), "cluster-reset"); got != tc.resets {
				t.Errorf("the script resets: %v", got)
			}
		})
	}
}

// TestMovedScript runs the script on a unit and a k3s that only note what they are told.
func TestMovedScript(t *testing.T) {
	const says = `msg="Managed etcd cluster membership has been reset, restart without --cluster-reset flag now"`
	for name, tc := range map[string]struct {
		data bool
		k3s  string
		code int
		told string
	}{
		"reset":            {true, `echo "$*" >>"$BOX/told"; echo '` + says + `'`, 0, "stop k3s.service server --cluster-reset"},
		"no etcd data":     {false, `echo "$*" >>"$BOX/told"`, 0, ""},
		"it does not work": {true, `echo "$*" >>"$BOX/told"; echo 'level=fatal msg="token does not exist"'; exit 1`, 32, "stop k3s.service server --cluster-reset"},
		"it ends with 0":   {true, `echo "$*" >>"$BOX/told"; echo 'Shutdown request received'`, 32, "stop k3s.service server --cluster-reset"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.command("systemctl", `echo "$*" >>"$BOX/told"`)
			b.command("k3s", tc.k3s)
			b.file("told", "", 0o644)
			if tc.data {
				b.file("data/server/db/etcd/member/wal", "", 0o600)
				b.file("data/server/db/reset-flag", "", 0o600)
			}
			out, code := b.run("set -eu\n" + movedBody + "moved k3s " + b.path("bin/k3s") + " " + b.path("data") + "\n")
			if told := strings.Join(strings.Fields(b.read("told")), " "); code != tc.code || told != tc.told {
				t.Errorf("code %d, told %q; want %d, %q\n%s", code, told, tc.code, tc.told, out)
			}
			if tc.code == 32 && !strings.Contains(out, "journal ") {
				t.Errorf("it does not say why: %q", out)
			}
		})
	}
}

// TestK3sWaitsForItsDisk: a data disk that does not come up must not let k3s
// start anew in the folder below it.
func TestK3sWaitsForItsDisk(t *testing.T) {
	const line = "[Unit]\nRequiresMountsFor=/var/lib/rancher\n"
	w := agentWant()
	if text := unitDropIn(w); strings.Contains(text, "[Unit]") {
		t.Errorf("without a disk:\n%s", text)
	}
	w.Mount = "/var/lib/rancher"
	if text := unitDropIn(w); !strings.Contains(text, line) || !strings.Contains(text, "LimitMEMLOCK=infinity") {
		t.Errorf("with a disk:\n%s", text)
	}
}
