package nvidia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

func quiet(string, ...any) {}

// TestDriverActions pins the actions of a machine without a driver and the
// scripts that they send.
func TestDriverActions(t *testing.T) {
	key, fingerprint := newKey(t, "cuda")
	f := bare("debian", "12", "2330")
	f.PCI.Value = append(f.PCI.Value, host.PCIDevice{Address: "0000:05:00.0", Vendor: "10de", Device: "22a3", Class: "0680"})
	got, err := json.MarshalIndent(planDriver(providing(), f, nil), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-driver.golden.json", append(got, '\n'))

	w := providing()
	w.Driver.KeyFingerprint = fingerprint
	fake := remotetest.New(t).InOrder()
	record := func(file string) func(context.Context, remote.Cmd, []byte) (remote.Result, error) {
		return func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
			golden(t, file, []byte(fmt.Sprintf("# sudo %v; args %q\n%s", c.Sudo, c.Args, c.Script)))
			return remote.Result{}, nil
		}
	}
	fake.Expect("fetch package key").Output(string(armored(t, key)))
	fake.Expect("install NVIDIA driver").Do(record("script-driver.golden"))
	fake.Expect("load driver").Do(record("script-load.golden"))
	fake.Expect("fetch package key").Output(string(armored(t, key)))
	fake.Expect("install fabric manager").Do(record("script-fabric.golden"))
	for _, a := range planDriver(w, f, fake) {
		if err := a.Apply(t.Context(), quiet); err != nil {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
}

func TestAMissingCandidateIsNamed(t *testing.T) {
	key, fingerprint := newKey(t, "cuda")
	w := providing()
	w.Driver.KeyFingerprint = fingerprint
	fake := remotetest.New(t)
	fake.Expect("fetch package key").Output(string(armored(t, key)))
	fake.Expect("install NVIDIA driver").Exit(65, "no candidate in the package lists for nvidia-open, after a refresh\n")
	err := planDriver(w, bare("debian", "12", "2330"), fake)[0].Apply(t.Context(), quiet)
	var lacks *NoCandidateError
	if !errors.As(err, &lacks) || lacks.Finding.Code != CodeNoPackage || remote.ExitCode(err) != 65 || !strings.Contains(err.Error(), "no candidate in the package lists for nvidia-open") {
		t.Errorf("error %v", err)
	}
}

func loadedLater(noReboot bool) (Want, host.Facts) {
	w, f := providing(), bare("debian", "12", "2330")
	w.Driver.NoReboot = noReboot
	f.Driver.Value.FileVersion, f.Driver.Value.LibraryVersion = "580.95.05", "580.95.05"
	return w, f
}

// TestARebootEndsWithAnotherBoot: lost connections and refused logins on the
// way are waited out, the same boot id is not enough.
func TestARebootEndsWithAnotherBoot(t *testing.T) {
	synctest.Test(t, rebootEndsWithAnotherBoot)
}

func rebootEndsWithAnotherBoot(t *testing.T) {
	w, f := loadedLater(false)
	fake := remotetest.New(t).InOrder()
	fake.Expect("load driver").Exit(66, "modprobe: module nvidia is not found\n")
	fake.Expect("reboot").Output("aaaa\n")
	fake.Expect("read boot id").Output("aaaa\n")
	fake.Expect("read boot id").Fail(&remote.CutOffError{Err: errors.New("connection lost")})
	fake.Expect("read boot id").Fail(&remote.ConnectError{Kind: remote.Auth, Err: errors.New("no key was accepted")})
	fake.Expect("read boot id").Output("bbbb\n")
	fake.Expect("wait for services").Output("")
	var said []string
	a := planDriver(w, f, fake)[0]
	if a.Consent != plan.ConsentReboot || !a.Barrier {
		t.Errorf("%+v", a)
	}
	if err := a.Apply(t.Context(), func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(said, "\n")
	for _, part := range []string{"module nvidia is not found", "it has not gone down yet", "no key was accepted"} {
		if !strings.Contains(all, part) {
			t.Errorf("%q was not said:\n%s", part, all)
		}
	}
}

func TestAnotherHostKeyAfterARebootStops(t *testing.T) {
	synctest.Test(t, anotherHostKeyStops)
}

func anotherHostKeyStops(t *testing.T) {
	w, f := loadedLater(false)
	fake := remotetest.New(t).InOrder()
	fake.Expect("load driver").Exit(66, "modprobe: no\n")
	fake.Expect("reboot").Output("aaaa\n")
	fake.Expect("read boot id").Fail(&remote.ConnectError{Kind: remote.HostKey, Err: errors.New("changed")})
	err := planDriver(w, f, fake)[0].Apply(t.Context(), quiet)
	var connect *remote.ConnectError
	if !errors.As(err, &connect) {
		t.Errorf("error %v", err)
	}
}

func TestNoRebootMeansNone(t *testing.T) {
	w, f := loadedLater(true)
	fake := remotetest.New(t)
	fake.Expect("load driver").Exit(66, "modprobe: key was rejected\n")
	a := planDriver(w, f, fake)[0]
	err := a.Apply(t.Context(), quiet)
	if a.Consent != "" || err == nil || !strings.Contains(err.Error(), "driver.reboot is never: modprobe: key was rejected") {
		t.Errorf("consent %q, error %v", a.Consent, err)
	}
}
