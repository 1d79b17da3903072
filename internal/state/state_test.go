package state

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

func open(t *testing.T) Dir {
	t.Helper()
	d, err := OpenAt(filepath.Join(t.TempDir(), "lab"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenFollowsXDG(t *testing.T) {
	root := t.TempDir()
	t.Setenv("XDG_STATE_HOME", root)
	d, err := Open("lab")
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() != filepath.Join(root, "gpuctl", "lab") {
		t.Errorf("state is at %s", d.Path())
	}
	info, err := os.Stat(d.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRunRecordHoldsNoSecret(t *testing.T) {
	d := open(t)
	if _, err := d.Latest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("latest of no run: %v", err)
	}
	var r Redactor
	secret := `pa"ss\wörd`
	run, err := d.NewRun(time.Date(2026, 12, 1, 5, 7, 2, 0, time.UTC), &r)
	if err != nil {
		t.Fatal(err)
	}
	r.Add(secret)
	r.Add("K10abc")
	r.Add("K10abc::server:def")
	run.Emit(event.Event{Kind: event.ActionFailed, Machine: "gpu-1", Error: "token K10abc::server:def and " + secret, Reason: secret, Text: secret})
	slog.New(slog.NewTextHandler(run.Debug(), nil)).Info("ran", "out", secret+"\n", "t", "K10abc")
	if err := run.WriteReport(map[string]string{"error": secret}); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	latest, err := d.Latest()
	if err != nil || latest != run.Path() {
		t.Errorf("latest is %s, %v", latest, err)
	}
	for _, name := range []string{"events.jsonl", "debug.log", "report.json"} {
		path := filepath.Join(latest, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(data); strings.Contains(s, "K10") || strings.Contains(s, "wörd") || !strings.Contains(s, Mask) {
			t.Errorf("%s: %s", name, s)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestOldRecordsGo(t *testing.T) {
	d := open(t)
	begin := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	var last *Run
	for i := range keep + 2 {
		run, err := d.NewRun(begin.Add(time.Duration(i)*time.Second), &Redactor{})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
		last = run
	}
	runs, err := os.ReadDir(filepath.Join(d.Path(), "runs"))
	if err != nil || len(runs) != keep || runs[0].Name()[:16] != "20261201T050002Z" {
		t.Errorf("%d records, the oldest is %s, %v", len(runs), runs[0].Name(), err)
	}
	if latest, err := d.Latest(); err != nil || latest != last.Path() {
		t.Errorf("latest is %s, %v", latest, err)
	}
}

// Of 2000 names with the same second some are drawn twice, but for one time in 10^13.
func TestRunsOfOneSecondHaveTheirOwnNames(t *testing.T) {
	d := open(t)
	now := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for range 2000 {
		id, err := d.newID(now)
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d names for 2000 runs", len(seen))
	}
}

func TestRedactorMasksLinesOfAKey(t *testing.T) {
	var r Redactor
	r.Add("-----BEGIN-----\nMIIabcdefghijklmnop\n-----END-----\n")
	if got := r.String("tail: MIIabcdefghijklmnop"); got != "tail: "+Mask {
		t.Error(got)
	}
	if _, err := io.WriteString(r.Writer(io.Discard), "x"); err != nil {
		t.Error(err)
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	d := open(t)
	lock, err := d.Lock("gpuctl apply")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Lock("gpuctl reset")
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() || locked.Holder.Command != "gpuctl apply" {
		t.Fatalf("the second run got %v", err)
	}
	if !strings.Contains(err.Error(), "since 20") {
		t.Errorf("no time in %q", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := d.Lock("gpuctl reset")
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestIDStays(t *testing.T) {
	d, other := open(t), open(t)
	first, err := d.ID()
	if err != nil || len(first) < 16 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := d.ID(); err != nil || again != first {
		t.Errorf("%q became %q, %v", first, again, err)
	}
	if id, err := other.ID(); err != nil || id == first {
		t.Errorf("two states share %q, %v", id, err)
	}
}

func TestKubeconfigIsPrivate(t *testing.T) {
	d := open(t)
	for _, text := range []string{"one", "two"} {
		if err := d.WriteKubeconfig([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(d.Kubeconfig())
	info, _ := os.Stat(d.Kubeconfig())
	if err != nil || string(data) != "two" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v", data, info.Mode(), err)
	}
}
