package host

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed kernel.sh
var kernelScript string

// Plan says what is pending on a machine's operating system. It is pure; on is
// only used by Apply. IDs are "<machine>/host-kernel", "<machine>/host-holds",
// DiskID, FirewallID and SpotID.
func Plan(want Want, seen Facts, on remote.Runner) []plan.Action {
	var actions []plan.Action
	if a, ok := diskAction(want, seen, on); ok {
		actions = append(actions, a)
	}
	if a, ok := firewallAction(want, seen, on); ok {
		actions = append(actions, a)
	}
	if a, ok := kernelAction(want, seen, on); ok {
		actions = append(actions, a)
	}
	if a, ok := holdsAction(want, seen, on); ok {
		actions = append(actions, a)
	}
	if a, ok := spotAction(want, seen, on); ok {
		actions = append(actions, a)
	}
	return actions
}

// kernelAction loads kernel modules now and at every boot, and raises what the
// kubelet and many pods need of inotify (k3s-io/k3s#10020).
func kernelAction(want Want, seen Facts, on remote.Runner) (plan.Action, bool) {
	modules := ModulesFile(want)
	sysctl, values := SysctlFile(seen)
	var reasons []string
	reasons = append(reasons, fileReason(want.Key, seen, PathModules, modules)...)
	if _, there := seen.Files.Value[PathSysctl]; !there || !seen.Sysctls.Unsure() {
		// What it should say depends on what is in force: unknown, it stays as it is.
		reasons = append(reasons, fileReason(want.Key, seen, PathSysctl, sysctl)...)
	}
	for _, m := range want.modules() {
		if seen.Modules.Has() && seen.Modules.Value[m] == ModuleAvailable {
			reasons = append(reasons, "module "+m+" is not loaded")
		}
	}
	for _, v := range values {
		if now, ok := seen.Sysctls.Value[v.name]; ok && number(now) < v.value {
			reasons = append(reasons, fmt.Sprintf("%s is %s", v.name, now))
		}
	}
	if len(reasons) == 0 {
		return plan.Action{}, false
	}
	return plan.Action{
		ID:      want.Machine + "/host-kernel",
		Machine: want.Machine,
		Title:   "set kernel modules and limits",
		Reason:  strings.Join(reasons, "; "),
		Changes: append([]string{
			PathModules + ": " + strings.Join(want.modules(), " "),
		}, changesOf(PathSysctl, values)...),
		Timeout: 2 * time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			_, err := on.Run(ctx, kernelCmd(modules, sysctl))
			if err != nil {
				return fmt.Errorf("setting kernel modules and limits: %w", err)
			}
			return nil
		},
	}, true
}

// kernelCmd writes both files, makes them true now and checks that they are.
func kernelCmd(modules, sysctl []byte) remote.Cmd {
	return remote.Cmd{
		Name:   "set kernel modules and limits",
		Script: kernelScript,
		Args:   []string{PathModules, strconv.Itoa(len(modules)), PathSysctl},
		Stdin:  bytes.NewReader(append(bytes.Clone(modules), sysctl...)),
		Sudo:   true,
	}
}

// ModulesFile is the content of PathModules.
func ModulesFile(want Want) []byte {
	return []byte("# Written by gpuctl.\n" + strings.Join(want.modules(), "\n") + "\n")
}

type sysctlValue struct {
	name  string
	value int64
}

// SysctlFile is the content of PathSysctl: never less than what is in force.
func SysctlFile(seen Facts) ([]byte, []sysctlValue) {
	values := []sysctlValue{{"fs.inotify.max_user_instances", 8192}, {"fs.inotify.max_user_watches", 524288}}
	var b strings.Builder
	b.WriteString("# Written by gpuctl.\n")
	for i := range values {
		values[i].value = max(values[i].value, number(seen.Sysctls.Value[values[i].name]))
		fmt.Fprintf(&b, "%s = %d\n", values[i].name, values[i].value)
	}
	return []byte(b.String()), values
}

func changesOf(path string, values []sysctlValue) []string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprintf("%s: %s = %d", path, v.name, v.value))
	}
	return out
}

// fileReason says why a file of gpuctl's is pending, nothing where it is as it should be.
func fileReason(key string, seen Facts, path string, content []byte) []string {
	if seen.Files.Unsure() {
		return []string{path + " could not be seen"}
	}
	f, ok := seen.Files.Value[path]
	switch {
	case !ok:
		return []string{path + " is absent"}
	case f.Hash != KeyedHash(key, content):
		return []string{path + " differs"}
	}
	return nil
}

// UnattendedFile is the content of PathUnattended: unattended-upgrades leaves
// drivers, kernels and what belongs to them alone (a driver that is upgraded
// under a loaded module stops every new container, NVIDIA/k8s-device-plugin#1431).
func UnattendedFile() []byte {
	return []byte(`// Written by gpuctl.
Unattended-Upgrade::Package-Blacklist {
  "^nvidia-";
  "^libnvidia-";
  "^cuda-";
  "^linux-image-";
  "^linux-headers-";
  "^linux-modules-";
  "^linux-generic";
};
`)
}

// holdsAction freezes kernel and driver against each other's upgrades, on
// machines with GPUs and apt.
func holdsAction(want Want, seen Facts, on remote.Runner) (plan.Action, bool) {
	if !want.GPU || !seen.Packages.Has() || seen.Packages.Value.Manager != "apt" {
		return plan.Action{}, false
	}
	free := unheld(seen.Packages.Value)
	file := UnattendedFile()
	reasons := fileReason(want.Key, seen, PathUnattended, file)
	if len(free) > 0 {
		reasons = append(reasons, strconv.Itoa(len(free))+" packages of kernel and driver are not held")
	}
	if len(reasons) == 0 {
		return plan.Action{}, false
	}
	changes := []string{PathUnattended}
	if len(free) > 0 {
		changes = append(changes, "apt-mark hold "+strings.Join(free, " "))
	}
	t := Transaction{
		Name:    "hold kernel and driver packages",
		Unit:    "gpuctl-apt-holds",
		Prepare: "t=$(mktemp \"$1.XXXXXX\")\ncat >\"$t\"\nchmod 0644 \"$t\"\nmv -f \"$t\" \"$1\"\n",
		Change:  "shift\n[ $# -eq 0 ] || apt-mark hold \"$@\"\n",
		Verify:  "shift\nfor p; do\n  apt-mark showhold | grep -qx \"$p\" || { echo \"$p is not held\" >&2; exit 1; }\ndone\n",
		Args:    append([]string{PathUnattended}, free...),
		Limit:   20 * time.Minute,
	}
	return plan.Action{
		ID:      want.Machine + "/host-holds",
		Machine: want.Machine,
		Title:   "hold kernel and driver packages",
		Reason:  strings.Join(reasons, "; "),
		Changes: changes,
		Timeout: 20 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			run := t
			run.Stdin = bytes.NewReader(file)
			return run.Run(ctx, on, say)
		},
	}, true
}

// unheld are installed kernel and driver packages without a hold. The toolkit's
// are held by its own action.
func unheld(p Packages) []string {
	held := map[string]bool{}
	for _, h := range p.Held {
		held[h] = true
	}
	var out []string
	for name := range p.Installed {
		if held[name] || strings.Contains(name, "container") || !KernelOrDriver(name) {
			continue
		}
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// KernelOrDriver says whether a package is part of the kernel or of NVIDIA's driver.
func KernelOrDriver(name string) bool {
	for _, prefix := range []string{"nvidia-", "libnvidia-", "cuda-drivers", "linux-image-", "linux-headers-", "linux-modules-nvidia-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
