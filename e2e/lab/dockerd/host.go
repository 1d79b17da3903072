package dockerd

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// runtimeScript is runc without CAP_SYS_RESOURCE, see the file.
//
//go:embed runtime.sh
var runtimeScript string

const capSysResource = 24

// hasSysResource says whether this process may hand CAP_SYS_RESOURCE on.
// Where it may not, `docker run --privileged` fails with "unable to apply
// caps: operation not permitted".
func hasSysResource() bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return true
	}
	return boundingSetHas(string(b), capSysResource)
}

func boundingSetHas(status string, capability uint) bool {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err != nil || set&(1<<capability) != 0
		}
	}
	return true
}

// writeRuntime places the runtime that containers are started by and returns
// its path.
func (d daemon) writeRuntime() (string, error) {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return "", err
	}
	path := d.path("runc-without-sys-resource")
	script := strings.Replace(runtimeScript, "@RUNC@", runc, 1)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		return "", err
	}
	return path, nil
}

// mountCgroups mounts what Docker and a systemd inside a container need from
// the cgroup file systems and is not there yet. Hosts that a real init booted
// have all of it.
func mountCgroups() error {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		return nil // cgroup v2 is all in one place
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	known, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return err
	}
	if !mounted(string(mounts), root) {
		if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting %s: %w", root, err)
		}
	}
	for _, c := range append(enabledControllers(string(known)), "name=systemd") {
		dir := filepath.Join(root, strings.TrimPrefix(c, "name="))
		if mounted(string(mounts), dir) || mountedTogether(string(mounts), c) {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		options := c
		if strings.HasPrefix(c, "name=") {
			options = "none," + c
		}
		if err := syscall.Mount("cgroup", dir, "cgroup", 0, options); err != nil {
			return fmt.Errorf("mounting cgroup %s: %w", c, err)
		}
	}
	return nil
}

// enabledControllers reads /proc/cgroups for the controllers that containers
// need; the rest (net_cls and others) are left alone.
func enabledControllers(cgroups string) []string {
	needed := []string{"cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "pids"}
	var found []string
	s := bufio.NewScanner(strings.NewReader(cgroups))
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) == 4 && f[3] == "1" && slices.Contains(needed, f[0]) {
			found = append(found, f[0])
		}
	}
	return found
}

func mounted(mounts, dir string) bool {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == dir {
			return true
		}
	}
	return false
}

// mountedTogether finds a controller that shares a hierarchy with another one,
// such as cpu,cpuacct.
func mountedTogether(mounts, controller string) bool {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) > 3 && f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), controller) {
			return true
		}
	}
	return false
}
