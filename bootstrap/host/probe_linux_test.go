package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host/probe"
)

// TestProbeRunsOnThisMachine runs the real script under sh and compares what
// can be known otherwise. It needs no root: what that hides is denied or absent.
func TestProbeRunsOnThisMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret token")
	if err := os.WriteFile(file, []byte("K10abc::server:def\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	link := file + ".link"
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	c := Command("mark-7", Request{Key: "key of this run", Files: []string{file, link, "/nonexistent/x"}})
	cmd := exec.Command("sh", append([]string{"-s", "--"}, c.Args...)...)
	cmd.Stdin = strings.NewReader(c.Script)
	cmd.Env = append(os.Environ(), "GPUCTL_PROBE_KEY="+c.Env["GPUCTL_PROBE_KEY"])
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "K10abc") || strings.Contains(string(out), "key of this run") {
		t.Error("the content of a file or the key came back")
	}
	f, err := Parse(out, "mark-7")
	if err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.System.Value.Kernel; got != strings.TrimSpace(string(release)) {
		t.Errorf("kernel %q, want %q (%s)", got, release, f.System.Reason())
	}
	got := f.Files.Value[file]
	want := File{Kind: "file", Mode: "640", UID: os.Getuid(), GID: got.GID, Size: 19, Hash: KeyedHash("key of this run", []byte("K10abc::server:def\n"))}
	if got != want {
		t.Errorf("file %+v, want %+v", got, want)
	}
	if l := f.Files.Value[link]; l.Kind != "link" || l.Target != file || l.Hash != "" {
		t.Errorf("link %+v", l)
	}
	if _, ok := f.Files.Value["/nonexistent/x"]; ok {
		t.Error("a file that does not exist was seen")
	}
	for name, state := range map[string]State{"os": f.OS.State, "memory": f.Memory.State, "disks": f.Disks.State, "abilities": f.Abilities.State, "driver": f.Driver.State, "others": f.Others.State} {
		if state != StateKnown {
			t.Errorf("%s is %s", name, state)
		}
	}
	if f.Memory.Value.TotalMiB == 0 || f.Disks.Value.Mounts["/"].SizeMiB == 0 || f.Clock.Value.First.IsZero() {
		t.Errorf("memory %+v, disks %+v, clock %+v", f.Memory.Value, f.Disks.Value, f.Clock.Value)
	}
}

// A section that tries a mount takes it away again when its time runs out in the
// middle.
func TestALateSectionLeavesNothingMounted(t *testing.T) {
	dir, note := t.TempDir(), filepath.Join(t.TempDir(), "note")
	for name, text := range map[string]string{"mount": "exec sleep 30", "umount": "echo \"$1\" >>" + note} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := sections()
	at := slices.IndexFunc(all, func(s probe.Section) bool { return s.Name == "abilities" })
	all[at].Limit = time.Second
	cmd := exec.Command("sh", "-s", "--", "mark", "/nonexistent")
	cmd.Stdin = strings.NewReader(probe.Assemble(all[at : at+1]))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "end abilities timeout") {
		t.Fatalf("%v: %s", err, out)
	}
	where, err := os.ReadFile(note)
	if err != nil || !strings.HasPrefix(string(where), "/") {
		t.Fatalf("nothing was taken away: %v %q", err, where)
	}
	if _, err := os.Stat(strings.TrimSpace(string(where))); !os.IsNotExist(err) {
		t.Errorf("its directory stays: %v", err)
	}
}
