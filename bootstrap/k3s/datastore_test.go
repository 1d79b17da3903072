package k3s

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
)

func TestFromSQLiteToEtcdAndNotBack(t *testing.T) {
	dir := host.File{Mode: "700", Kind: "dir"}
	in := func(w Want, etcd bool) Seen {
		s := installed(w)
		s.Files[DefaultDataDir+"/server/db"] = dir
		if etcd {
			s.Files[DefaultDataDir+"/server/db/etcd"] = dir
		}
		return s
	}
	w := serverWant()
	actions, findings := Plan(w, in(w, false), Access{})
	if len(findings) > 0 || len(actions) != 1 || actions[0].Consent != plan.ConsentDatastore || !strings.Contains(strings.Join(actions[0].Changes, "\n"), "no way back") {
		t.Fatalf("%+v %+v", findings, actions)
	}
	if script := installScript(w, compare(w, in(w, false))); !strings.Contains(script, "db-sqlite-") {
		t.Error("the database is not copied first")
	}
	if actions, findings = Plan(w, in(w, true), Access{}); len(actions)+len(findings) > 0 {
		t.Errorf("etcd already: %+v %+v", actions, findings)
	}
	w.Datastore = SQLite
	if actions, findings = Plan(w, in(w, false), Access{}); len(actions)+len(findings) > 0 {
		t.Errorf("sqlite already: %+v %+v", actions, findings)
	}
	if _, findings = Plan(w, in(w, true), Access{}); len(findings) != 1 || findings[0].Code != "datastore-one-way" {
		t.Errorf("back: %+v", findings)
	}
}

// TestTheCopyOfSQLite runs the script on a unit that only notes what it is told.
func TestTheCopyOfSQLite(t *testing.T) {
	b := newBox(t)
	b.command("systemctl", `echo "$*" >>"$BOX/told"`)
	b.file("data/server/db/state.db", "rows", 0o600)
	b.file("data/server/token", "secret", 0o600)
	w := serverWant()
	w.DataDir = b.path("data")
	out, code := b.run("set -eu\n" + copyScript(w) + "ls " + w.DataDir + "/server\ncat " + w.DataDir + "/server/db-sqlite-*/state.db " + w.DataDir + "/server/db-sqlite-*/token\n")
	if code != 0 || !strings.Contains(out, "rowssecret") || b.read("told") != "stop k3s.service\n" {
		t.Errorf("code %d, told %q:\n%s", code, b.read("told"), out)
	}
	b.file("data/server/db/etcd/member/wal", "", 0o600)
	before, _ := b.run("ls " + w.DataDir + "/server\n")
	if after, code := b.run("set -eu\n" + copyScript(w) + "ls " + w.DataDir + "/server\n"); code != 0 || after != before {
		t.Errorf("etcd already: code %d\n%s", code, after)
	}
}

func TestReleases(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		older bool
	}{
		{"v1.34.4+k3s1", "v1.34.5+k3s1", true}, {"v1.34.5+k3s1", "v1.34.5+k3s2", true}, {"v1.34.5+k3s1", "v1.34.5+k3s1", false},
		{"v1.9.1+k3s1", "v1.34.5+k3s1", true}, {"", "v1.34.5+k3s1", false}, {"v1.34.5+k3s1", "v1.34.4+k3s1", false},
	} {
		if Older(c.a, c.b) != c.older {
			t.Errorf("%s older than %s: %v", c.a, c.b, !c.older)
		}
	}
	for _, c := range []struct {
		have, want string
		step, skew bool
	}{
		{"v1.33.6+k3s1", "v1.34.5+k3s1", true, false}, {"v1.33.7+k3s3", "v1.34.5+k3s1", false, false}, {"v1.33.11+k3s1", "v1.34.5+k3s1", false, false},
		{"v1.36.3+k3s1", "v1.37.0+k3s1", false, false}, {"v1.33.7+k3s3", "v1.37.0+k3s1", true, true}, {"v1.34.4+k3s1", "v1.37.0+k3s1", false, false},
	} {
		if step, skew := EtcdStep(c.have, c.want), Skew(c.have, c.want); (step != "") != c.step || (skew != "") != c.skew {
			t.Errorf("%s to %s: step %q, skew %q", c.have, c.want, step, skew)
		}
	}
}
