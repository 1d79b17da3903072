package dockerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBoundingSet(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   bool
	}{
		"all":             {"Name:\tx\nCapBnd:\t000001ffffffffff\n", true},
		"without":         {"CapBnd:\t000001fffeffffff\n", false},
		"no line":         {"Name:\tx\n", true},
		"not a number":    {"CapBnd:\tx\n", true},
		"other lines too": {"CapPrm:\t0\nCapBnd:\t0000000001000000\n", true},
	} {
		if got := boundingSetHas(tc.status, capSysResource); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestCgroupTables(t *testing.T) {
	const cgroups = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t3\t1\t1\ncpu\t1\t1\t1\nmemory\t4\t22\t0\nnet_cls\t0\t1\t1\n"
	if got := enabledControllers(cgroups); !slices.Equal(got, []string{"cpuset", "cpu"}) {
		t.Errorf("enabled controllers %v", got)
	}
	const mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\ntmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
	if !mountedTogether(mounts, "cpuacct") || mountedTogether(mounts, "memory") {
		t.Error("controllers that share a hierarchy are not told apart from absent ones")
	}
	if !mounted(mounts, "/sys/fs/cgroup") || mounted(mounts, "/sys/fs/cgroup/memory") {
		t.Error("mount points are not found by their exact path")
	}
}

// The configuration is synthetic: the parts of an OCI bundle that matter here.
func TestRuntimeScriptTakesTheCapabilityOut(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "runc")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	path, err := daemon{dir: dir}.writeRuntime()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.json")
	const in = `{"process":{"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE","CAP_CHOWN"]},` +
		`"rlimits":[{"type":"RLIMIT_NOFILE","hard":9,"soft":9}],"oomScoreAdj":-500,"cwd":"/"}}`
	const want = `{"process":{"capabilities":{"bounding":["CAP_CHOWN"],"effective":["CAP_CHOWN"]},"oomScoreAdj":0,"cwd":"/"}}`
	if err := os.WriteFile(config, []byte(in), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "--root", "/r", "create", "--bundle", dir, "id with space").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, []string{"--root", "/r", "create", "--bundle", dir, "id with space"}) {
		t.Errorf("runc was given %q", got)
	}
	if got, _ := os.ReadFile(config); string(got) != want {
		t.Errorf("configuration\n%s\nwant\n%s", got, want)
	}
}
