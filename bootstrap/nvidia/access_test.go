package nvidia

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/source"
)

func letIn() Want {
	w := want()
	w.Key = "key"
	w.Packages = source.Source{URL: "https://m.example:8443/apt/", Username: "bob", Password: "hush", CA: "-----BEGIN CERTIFICATE-----"}
	return w
}

// laid are the facts of a machine that has the files as wanted.
func laid(w Want) host.Facts {
	f := good()
	installed("1.20.0", true)(&f)
	f.Files = host.Known(map[string]host.File{})
	for _, a := range accessFiles(w) {
		if a.text != "" {
			f.Files.Value[a.path] = host.File{Mode: a.mode, Hash: host.KeyedHash(w.Key, []byte(a.text+"\n"))}
		}
	}
	return f
}

func TestAptIsLetIntoTheMirror(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Want, *host.Facts)
		reason string
	}{
		"as wanted":        {func(*Want, *host.Facts) {}, ""},
		"absent":           {func(_ *Want, f *host.Facts) { delete(f.Files.Value, PathAptAuth) }, PathAptAuth + " is absent"},
		"another password": {func(w *Want, _ *host.Facts) { w.Packages.Password = "new" }, PathAptAuth + " differs"},
		"open to all": {func(_ *Want, f *host.Facts) {
			file := f.Files.Value[PathAptAuth]
			file.Mode = "0644"
			f.Files.Value[PathAptAuth] = file
		}, PathAptAuth + " has mode 0644, wanted 0600"},
		"no mirror any more": {func(w *Want, _ *host.Facts) { w.Packages = source.Source{} }, "is of no use any more"},
		"unseen":             {func(_ *Want, f *host.Facts) { f.Files = host.Unknown[map[string]host.File]("timeout") }, ""},
	} {
		w := letIn()
		f := laid(w)
		c.change(&w, &f)
		got := Plan(w, f, nil)
		switch {
		case c.reason == "" && len(got) > 0:
			t.Errorf("%s: %+v", name, got)
		case c.reason != "" && (len(got) != 1 || got[0].ID != AccessID(w.Machine) || !strings.Contains(got[0].Reason, c.reason)):
			t.Errorf("%s: %+v", name, got)
		case c.reason != "" && strings.Contains(strings.Join(got[0].Changes, " "), "hush"):
			t.Errorf("%s: the plan holds the password", name)
		}
	}
	if got := Plan(want(), func() host.Facts { f := laid(want()); return f }(), nil); len(got) > 0 {
		t.Errorf("without a mirror: %+v", got)
	}
}

// What installs packages waits until apt is let in.
func TestPackagesWaitForTheAccess(t *testing.T) {
	w := letIn()
	f := good()
	f.Files = host.Known(map[string]host.File{})
	got := Plan(w, f, nil)
	if len(got) != 2 || got[0].ID != AccessID(w.Machine) || !has(got[1].Needs, AccessID(w.Machine)) {
		t.Fatalf("%+v", got)
	}
	fake := remotetest.New(t)
	fake.Expect("let apt into the mirror").Exit(1, "cannot write bob's hush\n")
	err := Plan(w, f, fake)[0].Apply(t.Context(), quiet)
	if err == nil || !strings.Contains(err.Error(), "letting apt into the package mirror") {
		t.Errorf("%v", err)
	}
}

func TestAccessScript(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "apt-config"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "auth.conf.d/gpuctl.conf"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "conf")}
	run := func(auth, ca string) {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-s"}, paths...)...)
		cmd.Stdin = strings.NewReader(accessScript)
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "AUTH=" + auth, "CA=" + ca, "CONF="}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("machine x login bob password hush", "PEM")
	for i, mode := range []os.FileMode{0o600, 0o644} {
		if info, err := os.Stat(paths[i]); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", paths[i], info, err)
		}
	}
	if text, err := os.ReadFile(paths[0]); err != nil || string(text) != "machine x login bob password hush\n" {
		t.Errorf("%q, %v", text, err)
	}
	run("", "")
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

func TestAccessFilesSayWhatAptReads(t *testing.T) {
	files := accessFiles(letIn())
	if files[0].text != "machine https://m.example:8443/apt/ login bob password hush" {
		t.Errorf("%q", files[0].text)
	}
	if !strings.Contains(files[2].text, `Acquire::https::m.example::CAInfo "/etc/apt/gpuctl-ca.pem";`) {
		t.Errorf("%q", files[2].text)
	}
}
