package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

func say(string, ...any) {}

// done is a machine on which everything of gpuctl's is as it should be.
func done(w Want, f Facts) Facts {
	sysctl, _ := SysctlFile(f)
	f.Files = Known(map[string]File{
		PathModules:    {Kind: "file", Mode: "644", Hash: KeyedHash(w.Key, ModulesFile(w))},
		PathSysctl:     {Kind: "file", Mode: "644", Hash: KeyedHash(w.Key, sysctl)},
		PathUnattended: {Kind: "file", Mode: "644", Hash: KeyedHash(w.Key, UnattendedFile())},
	})
	return f
}

func reasons(actions []plan.Action) string {
	var out []string
	for _, a := range actions {
		out = append(out, a.ID+": "+a.Reason)
	}
	return strings.Join(out, "\n")
}

func TestPlanSaysWhatIsPendingAndWhy(t *testing.T) {
	gpu := agent()
	gpu.GPU = true
	kernel := "gpu-1/host-kernel: "
	for name, c := range map[string]struct {
		want Want
		seen func(Facts) Facts
		pend string
	}{
		"nothing":         {gpu, func(f Facts) Facts { return done(gpu, f) }, ""},
		"fresh":           {agent(), func(f Facts) Facts { return f }, kernel + PathModules + " is absent; " + PathSysctl + " is absent"},
		"fresh with GPUs": {gpu, func(f Facts) Facts { return f }, kernel + PathModules + " is absent; " + PathSysctl + " is absent\ngpu-1/host-holds: " + PathUnattended + " is absent"},
		"drift": {gpu, func(f Facts) Facts {
			f = done(gpu, f)
			f.Files.Value[PathModules] = File{Hash: "other"}
			return f
		}, kernel + PathModules + " differs"},
		"module not loaded": {agent(), func(f Facts) Facts {
			f.Modules.Value["vxlan"] = ModuleAvailable
			return done(agent(), f)
		}, kernel + "module vxlan is not loaded"},
		"files unseen": {agent(), func(f Facts) Facts { f.Files = Unknown[map[string]File]("timeout"); return f }, kernel + PathModules + " could not be seen; " + PathSysctl + " could not be seen"},
		"driver not held": {gpu, func(f Facts) Facts {
			f.Packages.Value.Installed = map[string]string{"nvidia-driver-580": "1", "linux-image-6.8": "1", "libnvidia-compute-580": "1", "nvidia-container-toolkit": "1", "libnvidia-container1": "1", "containerd": "1"}
			f.Packages.Value.Held = []string{"linux-image-6.8"}
			return done(gpu, f)
		}, "gpu-1/host-holds: 2 packages of kernel and driver are not held"},
		"no apt": {gpu, func(f Facts) Facts { f.Packages.Value.Manager = "dnf"; return done(agent(), f) }, ""},
		"higher still": {agent(), func(f Facts) Facts {
			f.Sysctls.Value["fs.inotify.max_user_watches"] = "1048576"
			return done(agent(), f)
		}, ""},
		"low limits": {agent(), func(f Facts) Facts {
			f = done(agent(), f)
			f.Sysctls.Value["fs.inotify.max_user_instances"] = "128"
			return f
		}, kernel + "fs.inotify.max_user_instances is 128"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasons(Plan(c.want, c.seen(fit()), nil)); got != c.pend {
				t.Errorf("pending:\n%s\nwant:\n%s", got, c.pend)
			}
		})
	}
}

func TestPlanIsPinned(t *testing.T) {
	gpu := agent()
	gpu.GPU = true
	f := fit()
	f.Packages.Value.Installed = map[string]string{"nvidia-driver-580-server-open": "580.95.05-0ubuntu1", "linux-image-6.8.0-45-generic": "6.8.0-45.45"}
	got, err := json.MarshalIndent(Plan(gpu, f, nil), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-fresh.golden.json", append(got, '\n'))
}

// rendered shows a command as it goes out.
func rendered(c remote.Cmd) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s; sudo %v; args %q; timeout %s\n%s", c.Name, c.Sudo, c.Args, c.Timeout, c.Script)
	if c.Stdin != nil {
		in, _ := io.ReadAll(c.Stdin)
		fmt.Fprintf(&b, "# standard input:\n%s", in)
	}
	return []byte(b.String())
}

func TestScriptsArePinned(t *testing.T) {
	gpu := agent()
	gpu.GPU = true
	f := fit()
	f.Packages.Value.Installed = map[string]string{"nvidia-driver-580": "1"}
	fake := remotetest.New(t)
	record := func(file string) func(context.Context, remote.Cmd, []byte) (remote.Result, error) {
		return func(_ context.Context, c remote.Cmd, stdin []byte) (remote.Result, error) {
			c.Stdin = strings.NewReader(string(stdin))
			golden(t, file, rendered(c))
			return remote.Result{}, nil
		}
	}
	fake.Expect("set kernel modules and limits").Do(record("script-kernel.golden"))
	fake.Expect("hold kernel and driver packages").Do(record("script-holds.golden"))
	for _, a := range Plan(gpu, f, fake) {
		if err := a.Apply(t.Context(), say); err != nil {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
	golden(t, "script-probe.golden", rendered(Command("MARK", Request{Key: "KEY", Files: []string{"/etc/rancher/k3s/config.yaml.d/50-gpuctl.yaml"}})))
}

func TestApplySaysWhyItFailed(t *testing.T) {
	gpu := agent()
	gpu.GPU = true
	for name, c := range map[string]struct {
		expect func(*remotetest.Expectation)
		is     func(error) bool
		text   string
	}{
		"waited in vain": {func(e *remotetest.Expectation) {
			e.Exit(75, "waited 600s: a package lock is held by unattended-upgr (4750)\n")
		}, isExit(75), "held by unattended-upgr (4750)"},
		"apt failed": {func(e *remotetest.Expectation) { e.Exit(100, "E: Unable to locate package x\n") }, isExit(100), "Unable to locate package"},
		"cut off": {func(e *remotetest.Expectation) { e.Fail(&remote.CutOffError{Name: "hold", Err: context.Canceled}) }, func(err error) bool {
			var cut *remote.CutOffError
			return errors.As(err, &cut) && errors.Is(err, context.Canceled)
		}, "unit gpuctl-apt-holds may still work on the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := remotetest.New(t)
			c.expect(fake.Expect("hold kernel and driver packages"))
			actions := Plan(gpu, fit(), fake)[1:]
			err := actions[0].Apply(t.Context(), say)
			if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want one with %q", err, c.text)
			}
		})
	}
}

func isExit(code int) func(error) bool {
	return func(err error) bool { return remote.ExitCode(err) == code }
}

func TestWaitingIsSaid(t *testing.T) {
	fake := remotetest.New(t)
	fake.Expect("x").Output("Reading package lists...\n@say waiting: cloud-init has not finished\n@say waiting: a package lock is held by apt (7)\npart")
	var said []string
	err := Transaction{Name: "x", Unit: "gpuctl-apt-x"}.Run(t.Context(), fake, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil || len(said) != 2 || said[0] != "waiting: cloud-init has not finished" || said[1] != "waiting: a package lock is held by apt (7)" {
		t.Errorf("said %q, error %v", said, err)
	}
}

func TestProbeComparesClocksAndKeepsItsKeyOutOfArguments(t *testing.T) {
	fake := remotetest.New(t)
	fake.Expect("probe").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		if slices.Contains(c.Args, "secret-key") || c.Env["GPUCTL_PROBE_KEY"] != "secret-key" || !slices.Contains(c.Args, "/etc/x") || !c.Sudo {
			t.Errorf("command %+v", c)
		}
		m := c.Args[0]
		return remote.Result{Stdout: []byte(strings.ReplaceAll("motd\nM clock 1000\nM begin os\nID=debian\n\nM end os ok \nM clock 1001\nM done\n", "M", m))}, nil
	})
	f, err := Probe(t.Context(), fake, Request{Key: "secret-key", Files: []string{"/etc/x"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.OS.Value.ID != "debian" || f.Clock.Value.Offset() >= 0 {
		t.Errorf("%+v", f)
	}
	fake.Expect("probe").Fail(&remote.SudoError{})
	var sudo *remote.SudoError
	if _, err := Probe(t.Context(), fake, Request{}); !errors.As(err, &sudo) {
		t.Errorf("error %v, want a SudoError", err)
	}
}
