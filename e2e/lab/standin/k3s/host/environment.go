package host

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// Environment says what the machine does not let a node do. A container that
// plays a machine lacks more than a virtual machine does; the stand-in finds
// that out itself, so that nothing of it shows in the configuration.
type Environment struct {
	// NoResource: the process lacks CAP_SYS_RESOURCE. It cannot lower an OOM
	// score or raise a limit.
	NoResource bool
	// CgroupV1: the unified hierarchy is not in use.
	CgroupV1 bool
	// ConntrackFixed: the limit of tracked connections cannot be written.
	ConntrackFixed bool
	// Systemd: systemd started the process, so it manages cgroups.
	Systemd bool
}

const capSysResource = 24

// Look reads the environment.
func Look() Environment {
	return Environment{
		NoResource:     !capable(capSysResource),
		CgroupV1:       !exists("/sys/fs/cgroup/cgroup.controllers"),
		ConntrackFixed: !rewritable("/proc/sys/net/netfilter/nf_conntrack_max"),
		Systemd:        os.Getenv("INVOCATION_ID") != "",
	}
}

// CgroupDriver is the kubelet's cgroup driver, as k3s chooses it.
func (e Environment) CgroupDriver() string {
	if e.Systemd {
		return "systemd"
	}
	return "cgroupfs"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// rewritable tells whether the value of a sysctl can be written back.
func rewritable(path string) bool {
	value, err := os.ReadFile(path)
	return err == nil && os.WriteFile(path, value, 0o644) == nil
}

func capable(capability uint) bool {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if hex, ok := strings.CutPrefix(lines.Text(), "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && caps&(1<<capability) != 0
		}
	}
	return false
}
