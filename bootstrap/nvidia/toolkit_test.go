package nvidia

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", file, got)
	}
}

// newKey makes a repository's key: the binary form and its fingerprint.
func newKey(t *testing.T, name string) ([]byte, string) {
	t.Helper()
	e, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), strings.ToUpper(hex.EncodeToString(e.PrimaryKey.Fingerprint))
}

func armored(t *testing.T, key []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := armor.Encode(&b, "PGP PUBLIC KEY BLOCK", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(key); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOnlyThePinnedKeyPasses(t *testing.T) {
	key, fingerprint := newKey(t, "right")
	other, _ := newKey(t, "other")
	spaced := fingerprint[:20] + " " + strings.ToLower(fingerprint[20:])
	for name, c := range map[string]struct {
		file []byte
		pin  string
		ok   bool
	}{
		"armored":            {armored(t, key), fingerprint, true},
		"binary":             {key, spaced, true},
		"other key":          {armored(t, other), fingerprint, false},
		"second key behind":  {armored(t, append(bytes.Clone(key), other...)), fingerprint, false},
		"second key before":  {append(bytes.Clone(other), key...), fingerprint, false},
		"the same key twice": {append(bytes.Clone(key), key...), fingerprint, false},
		"a web page":         {[]byte("<html>login</html>"), fingerprint, false},
		"nothing":            {nil, fingerprint, false},
		"cut":                {key[:len(key)/2], fingerprint, false},
		"no pin":             {key, "", false},
		"short pin":          {key, fingerprint[:16], false},
	} {
		got, err := PinnedKey(c.file, c.pin)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrKey)) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if !c.ok {
			continue
		}
		ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(got))
		if err != nil || len(ring) != 1 || hex.EncodeToString(ring[0].PrimaryKey.Fingerprint) != strings.ToLower(fingerprint) {
			t.Errorf("%s: what comes out is not that key: %v, %v", name, ring, err)
		}
	}
	// A block behind the first one does not get through.
	behind := append(armored(t, key), append([]byte("\n"), armored(t, other)...)...)
	got, err := PinnedKey(behind, fingerprint)
	if err != nil || bytes.Count(got, []byte("BEGIN")) != 1 {
		t.Errorf("two blocks: %v", err)
	}
}

func FuzzPinnedKey(f *testing.F) {
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n-----END PGP PUBLIC KEY BLOCK-----\n"))
	f.Add([]byte{0x99, 0, 3, 4, 1, 2})
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := PinnedKey(file, "C95B321B61E88C1809C4F759DDCAE044F796ECB0"); err == nil {
			t.Error("a made-up file has NVIDIA's fingerprint")
		}
	})
}

func installed(version string, held bool) func(*host.Facts) {
	return func(f *host.Facts) {
		f.Toolkit = host.Known(host.Toolkit{Version: version, Runtime: "/usr/bin/nvidia-container-runtime", Binaries: map[string]string{"nvidia-container-runtime": "/usr/bin/nvidia-container-runtime"}})
		for _, p := range Packages() {
			f.Packages.Value.Installed[p] = version + "-1"
			if held {
				f.Packages.Value.Held = append(f.Packages.Value.Held, p)
			}
		}
	}
}

func TestPlanSaysWhyTheToolkitIsPending(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		change func(*host.Facts)
		reason string
	}{
		"absent":           {"", func(*host.Facts) {}, "NVIDIA Container Toolkit is absent"},
		"as wanted":        {"", installed("1.20.0", true), ""},
		"older":            {"", installed("1.19.1", true), "version is 1.19.1"},
		"newer":            {"", installed("1.21.0", true), ""},
		"not held":         {"", installed("1.20.0", false), "nvidia-container-toolkit is not held"},
		"without runtime":  {"", func(f *host.Facts) { f.Toolkit = host.Known(host.Toolkit{Version: "1.20.0"}) }, "NVIDIA Container Toolkit is absent"},
		"unseen":           {"", func(f *host.Facts) { f.Toolkit = host.Unknown[host.Toolkit]("timeout") }, "the toolkit could not be seen: timeout"},
		"no GPU":           {"", only(), ""},
		"operator's":       {ModeOperator, func(*host.Facts) {}, ""},
		"no driver wanted": {ModeNone, func(*host.Facts) {}, ""},
	} {
		w, f := want(), good()
		w.Mode = c.mode
		c.change(&f)
		actions := Plan(w, f, nil)
		switch {
		case c.reason == "" && len(actions) > 0:
			t.Errorf("%s: %+v", name, actions)
		case c.reason != "" && (len(actions) != 1 || actions[0].Reason != c.reason || actions[0].ID != "gpu-1/toolkit"):
			t.Errorf("%s: %+v, want %q", name, actions, c.reason)
		}
	}
	got, err := json.MarshalIndent(Plan(want(), good(), nil), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.golden.json", append(got, '\n'))
}

func TestToolkitIsInstalledWithTheCheckedKey(t *testing.T) {
	key, fingerprint := newKey(t, "repository")
	w := want()
	w.Toolkit.KeyFingerprint = fingerprint
	fake := remotetest.New(t).InOrder()
	fake.Expect("fetch package key").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		golden(t, "script-fetch.golden", []byte(fmt.Sprintf("# sudo %v; args %q\n%s", c.Sudo, c.Args, c.Script)))
		return remote.Result{Stdout: armored(t, key)}, nil
	})
	fake.Expect("install NVIDIA Container Toolkit 1.20.0").Do(func(_ context.Context, c remote.Cmd, stdin []byte) (remote.Result, error) {
		golden(t, "script-toolkit.golden", []byte(fmt.Sprintf("# sudo %v; args %q\n%s", c.Sudo, c.Args, c.Script)))
		if pinned, err := PinnedKey(stdin, fingerprint); err != nil || !bytes.Equal(pinned, stdin) {
			t.Errorf("standard input is not the checked key: %v", err)
		}
		_, err := c.Stdout.Write([]byte("@say waiting: a package lock is held by apt (9)\n"))
		return remote.Result{}, err
	})
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if err := Plan(w, good(), fake)[0].Apply(t.Context(), say); err != nil {
		t.Fatal(err)
	}
	if len(said) != 3 || said[2] != "waiting: a package lock is held by apt (9)" {
		t.Errorf("said %q", said)
	}
}

func TestNothingIsInstalledWithAnotherKey(t *testing.T) {
	other, _ := newKey(t, "other")
	fake := remotetest.New(t)
	fake.Expect("fetch package key").Output(string(armored(t, other)))
	err := Plan(want(), good(), fake)[0].Apply(t.Context(), func(string, ...any) {})
	if !errors.Is(err, ErrKey) {
		t.Errorf("error %v, want ErrKey", err)
	}
	fake.Expect("fetch package key").Exit(22, "curl: (22) The requested URL returned error: 404\n")
	err = Plan(want(), good(), fake)[0].Apply(t.Context(), func(string, ...any) {})
	if remote.ExitCode(err) != 22 || !strings.Contains(err.Error(), want().Toolkit.KeyURL) {
		t.Errorf("error %v", err)
	}
}

func TestAFailedInstallationSaysWhy(t *testing.T) {
	key, fingerprint := newKey(t, "repository")
	w := want()
	w.Toolkit.KeyFingerprint = fingerprint
	for text, expect := range map[string]func(*remotetest.Expectation){
		"E: Version '1.20.0-1' for 'nvidia-container-toolkit' was not found": func(e *remotetest.Expectation) {
			e.Exit(100, "E: Version '1.20.0-1' for 'nvidia-container-toolkit' was not found\n")
		},
		"unit gpuctl-apt-toolkit may still work": func(e *remotetest.Expectation) { e.Fail(&remote.CutOffError{Err: context.Canceled}) },
	} {
		fake := remotetest.New(t)
		fake.Expect("fetch package key").Output(string(key))
		expect(fake.ExpectMatch("^install NVIDIA"))
		if err := Plan(w, good(), fake)[0].Apply(t.Context(), func(string, ...any) {}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one with %q", err, text)
		}
	}
}

func TestARunningK3sLearnsTheRuntime(t *testing.T) {
	running := func(runtimes map[string]string) func(*host.Facts) {
		return func(f *host.Facts) {
			f.K3s = host.Known(host.K3s{Units: map[string]host.Unit{"k3s-agent": {Active: "active"}}, Containerd: host.ContainerdConfig{Schema: 3, Runtimes: runtimes}})
		}
	}
	known := map[string]string{"runc": "", "nvidia": "/usr/bin/nvidia-container-runtime"}
	for name, c := range map[string]struct {
		change func(*host.Facts)
		ids    string
		reason string
	}{
		"toolkit comes late":  {running(map[string]string{"runc": ""}), "gpu-1/toolkit gpu-1/runtime", "containerd runs without the nvidia runtime"},
		"toolkit came late":   {all(installed("1.20.0", true), running(map[string]string{"runc": ""})), "gpu-1/runtime", "containerd runs without the nvidia runtime"},
		"all is well":         {all(installed("1.20.0", true), running(known)), "", ""},
		"only an upgrade":     {all(installed("1.19.1", true), running(known)), "gpu-1/toolkit", ""},
		"k3s is not there":    {installed("1.20.0", true), "", ""},
		"the operator's goes": {all(installed("1.20.0", true), running(map[string]string{"nvidia": "/usr/local/nvidia/toolkit/nvidia-container-runtime"})), "gpu-1/runtime", "containerd runs /usr/local/nvidia/toolkit/nvidia-container-runtime, k3s would now find /usr/bin/nvidia-container-runtime"},
	} {
		f := good()
		c.change(&f)
		var ids []string
		actions := Plan(want(), f, nil)
		for _, a := range actions {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != c.ids {
			t.Errorf("%s: %q, want %q", name, got, c.ids)
		} else if c.reason != "" && actions[len(actions)-1].Reason != c.reason {
			t.Errorf("%s: reason %q", name, actions[len(actions)-1].Reason)
		}
	}
	fake := remotetest.New(t)
	fake.Expect("restart k3s-agent").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		golden(t, "script-runtime.golden", []byte(fmt.Sprintf("# sudo %v; args %q\n%s", c.Sudo, c.Args, c.Script)))
		return remote.Result{}, nil
	})
	f := good()
	all(installed("1.20.0", true), running(nil))(&f)
	if err := Plan(want(), f, fake)[0].Apply(t.Context(), func(string, ...any) {}); err != nil {
		t.Error(err)
	}
}
