package spread

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

const target = "/opt/bin/k3s"

// Ten machines get a file that goes up once.
func TestGoesUpOnce(t *testing.T) {
	s, machines, raw := ground(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	f, content := file(3 << 20)
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() {
			if err := s.Lay(t.Context(), m, f, Place{Path: target, Mode: "0755"}, quiet); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		})
	}
	all.Wait()
	var up int64
	for _, m := range raw {
		m.has(t, target, content)
		up += m.up.Load()
		if info, err := os.Stat(filepath.Join(m.dir, target)); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
	}
	if up > f.Size+f.Size/10 {
		t.Errorf("%d bytes went up for a file of %d on ten machines", up, f.Size)
	}
	// Again: nothing goes up, and what was kept for others goes with the run.
	if err := s.Lay(t.Context(), machines[3], f, Place{Path: target, Mode: "0755"}, quiet); err != nil {
		t.Error(err)
	}
	s.Close(t.Context())
	for _, m := range raw {
		if left, _ := filepath.Glob(filepath.Join(m.dir, Dir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Where others cannot fetch, the file goes up to each.
func TestFallsBack(t *testing.T) {
	for name, break1 := range map[string]func([]Machine, []*machine){
		"nobody listens":   func(_ []Machine, raw []*machine) { raw[0].deaf = true },
		"another secret":   func(_ []Machine, raw []*machine) { raw[0].wrong = true },
		"public addresses": func(all []Machine, _ []*machine) { all[0].Address = netip.MustParseAddr("203.0.113.4") },
	} {
		t.Run(name, func(t *testing.T) {
			s, machines, raw := ground(t, "a", "b")
			break1(machines, raw)
			f, content := file(1 << 20)
			for _, m := range machines {
				if err := s.Lay(t.Context(), m, f, Place{Path: target}, quiet); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range raw {
				m.has(t, target, content)
				if m.up.Load() != f.Size {
					t.Errorf("%d bytes went up", m.up.Load())
				}
			}
		})
	}
}

// An upload that was cut off goes on where it ended; what an earlier run left of
// another file is thrown away.
func TestGoesOn(t *testing.T) {
	s, machines, raw := ground(t, "a")
	f, content := file(1 << 20)
	raw[0].cut.Store(300_000)
	err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet)
	if remote.ExitCode(err) != exitChecksum {
		t.Fatalf("an upload cut short: %v", err)
	}
	part := filepath.Join(raw[0].dir, Dir, f.SHA256+".part")
	if err := os.WriteFile(part, content[:400_000], 0o600); err != nil {
		t.Fatal(err)
	}
	raw[0].up.Store(0)
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[0].has(t, target, content)
	if up := raw[0].up.Load(); up != f.Size-400_000 {
		t.Errorf("%d bytes went up after 400000 of %d were there", up, f.Size)
	}
	g, other := file(2 << 20)
	if err := os.WriteFile(filepath.Join(raw[0].dir, Dir, g.SHA256+".part"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Lay(t.Context(), machines[0], g, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[0].has(t, target, other)
}

// A file whose first machine fails goes to another first.
func TestFirstMachineFails(t *testing.T) {
	s, machines, raw := ground(t, "a", "b")
	f, content := file(1 << 20)
	if err := os.WriteFile(filepath.Join(raw[0].dir, "opt"), nil, 0o600); err != nil { // no folder can be there
		t.Fatal(err)
	}
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); err == nil {
		t.Error("no error")
	}
	if err := s.Lay(t.Context(), machines[1], f, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[1].has(t, target, content)
}

// A file that this computer cannot read is that error, not a wrong checksum.
func TestUnreadable(t *testing.T) {
	s, machines, _ := ground(t, "a")
	f, _ := file(1000)
	broken := errors.New("the disk is broken")
	f.Open = func(context.Context, int64) (io.ReadCloser, error) { return nil, broken }
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestPrivate(t *testing.T) {
	for text, want := range map[string]bool{
		"10.1.2.3": true, "192.168.0.9": true, "100.64.0.1": true, "fd00::1": true,
		"203.0.113.9": false, "2001:db8::1": false, "127.0.0.1": false, "100.128.0.1": false,
	} {
		if got := Private(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if Private(netip.Addr{}) {
		t.Error("no address is private")
	}
}
