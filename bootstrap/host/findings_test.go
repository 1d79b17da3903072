package host

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// fit is a machine with nothing to find.
func fit() Facts {
	return Facts{
		OS:        Known(OS{ID: "ubuntu", VersionID: "24.04", BaseID: "ubuntu", BaseVersion: "24.04", Family: "debian", PrettyName: "Ubuntu 24.04.1 LTS"}),
		System:    Known(System{Kernel: "6.8.0-45-generic", Arch: "x86_64", Hostname: "gpu-1", MachineID: "m1", ProductUUID: "u1", BootID: "b1", Init: "systemd"}),
		Clock:     Known(Clock{OffsetMin: -time.Second, OffsetMax: time.Second}),
		Abilities: Known(Abilities{VM: "kvm", SysAdmin: true, Mount: true, CgroupVersion: 2, CgroupWritable: true, MemoryCgroup: true}),
		Memory:    Known(Memory{TotalMiB: 64 << 10, CPUs: 16}),
		Disks:     Known(Disks{Mounts: map[string]Mount{"/var/lib": {Device: "/dev/vda1", Type: "ext4", On: "/", SizeMiB: 500 << 10, FreeMiB: 400 << 10}}}),
		Modules:   Known(map[string]Module{"overlay": ModuleReady, "br_netfilter": ModuleReady, "vxlan": ModuleReady}),
		Sysctls:   Known(map[string]string{"fs.inotify.max_user_instances": "8192", "fs.inotify.max_user_watches": "524288"}),
		Network:   Known(Network{Interfaces: []Interface{{Name: "ens3", MTU: 1500, Up: true, Addresses: []string{"10.0.0.11/24"}}}, Default4: "ens3"}),
		Firewall:  Known(Firewall{InputPolicy: "ACCEPT", ForwardPolicy: "ACCEPT"}),
		Ports:     Known([]Listener{{Proto: "tcp", Address: "0.0.0.0", Port: 22, Process: "sshd"}}),
		CloudInit: Known("done"),
		Packages:  Known(Packages{Manager: "apt", Installed: map[string]string{}}),
		PCI:       Known([]PCIDevice{}),
		K3s:       Absent[K3s](),
		Files:     Known(map[string]File{}),
		Others:    Known([]Other{}),
		KernelLog: Known([]KernelMsg{}),
	}
}

func agent() Want {
	return Want{Machine: "gpu-1", Role: inventory.Agent, Kubernetes: "v1.36.3+k3s1", Modules: []string{"vxlan"}, Key: "k"}
}

func TestAFitMachineHasNoFindings(t *testing.T) {
	for _, role := range []inventory.Role{inventory.Server, inventory.Agent} {
		w := agent()
		w.Role = role
		if found := Findings(w, fit()); len(found) > 0 {
			t.Errorf("%s: %+v", role, found)
		}
	}
}

func TestFindings(t *testing.T) {
	blocks, warns, informs := diag.Blocks, diag.Warns, diag.Informs
	for name, c := range map[string]struct {
		change   func(*Facts)
		code     diag.Code
		severity diag.Severity
		evidence string
	}{
		"container":        {func(f *Facts) { f.Abilities = Known(Abilities{Container: "docker", CgroupVersion: 2}) }, CodeContainer, blocks, "CAP_SYS_ADMIN, mount, writable cgroups (docker)"},
		"read-only cgroup": {func(f *Facts) { f.Abilities.Value.CgroupWritable = false }, CodeContainer, blocks, "writable cgroups"},
		"cgroup v1":        {func(f *Facts) { f.Abilities.Value.CgroupVersion = 1 }, CodeCgroupV1, blocks, "v1.36.3+k3s1"},
		"no memory cgroup": {func(f *Facts) { f.Abilities.Value.MemoryCgroup = false }, CodeCgroup, blocks, "memory"},
		"no systemd":       {func(f *Facts) { f.System.Value.Init = "tini" }, CodeNoSystemd, blocks, "tini"},
		"processor":        {func(f *Facts) { f.System.Value.Arch = "riscv64" }, CodeArchitecture, blocks, "riscv64"},
		"reboot":           {func(f *Facts) { f.System.Value.RebootRequired = true }, CodeReboot, warns, "6.8.0-45"},
		"Rocky": {func(f *Facts) {
			f.OS.Value = OS{ID: "rocky", BaseID: "rocky", Family: "rhel", PrettyName: "Rocky Linux 9.4"}
		}, CodeOS, blocks, "Rocky Linux 9.4"},
		"clock ahead": {func(f *Facts) { f.Clock.Value = Clock{OffsetMin: 3599 * time.Second, OffsetMax: 3601 * time.Second} }, CodeClock, blocks, "3599 s ahead of"},
		"clock a little": {func(f *Facts) {
			f.Clock.Value = Clock{OffsetMin: -9 * time.Second, OffsetMax: -8 * time.Second, Synchronized: "no"}
		}, CodeClock, warns, "8 s behind this computer's clock, not synchronized"},
		// Seen on a machine that started k3s under load: its own ports looked taken.
		"k3s unseen": {func(f *Facts) {
			f.Ports.Value = append(f.Ports.Value, Listener{"tcp", "*", 10250, "kubelet", 9})
			f.K3s = Unknown[K3s]("timeout")
		}, CodeProbeIncomplete, warns, "k3s: timeout"},
		"cloud-init": {func(f *Facts) { f.CloudInit = Known("running") }, CodeCloudInit, informs, ""},
		"lock": {func(f *Facts) {
			f.Packages.Value.LockHolders = []string{"unattended-upgr (4750)"}
			f.Packages.Value.Audit = "x"
		}, CodePackageLock, informs, "unattended-upgr (4750)"},
		"dpkg": {func(f *Facts) {
			f.Packages.Value.Audit = "half configured:"
			f.Packages.Value.Broken = []string{"linux-image-x"}
		}, CodeDpkg, blocks, "half configured: linux-image-x"},
		"disk full": {func(f *Facts) { f.Disks.Value.Mounts["/var/lib"] = Mount{On: "/", SizeMiB: 20 << 10, FreeMiB: 2 << 10} }, CodeDisk, blocks, "2.0 GiB free of 20.0 GiB"},
		"disk small": {func(f *Facts) {
			f.Disks.Value.Mounts["/var/lib"] = Mount{On: "/", SizeMiB: 40 << 10, FreeMiB: 20 << 10}
			f.Disks.Value.Blocks = []Block{{Name: "vda", Type: "disk", SizeMiB: 40 << 10, On: ""}, {Name: "nvme0n1", Type: "disk", SizeMiB: 3 << 20}}
		}, CodeDisk, warns, "unused disks: nvme0n1 (3072.0 GiB)"},
		"memory":            {func(f *Facts) { f.Memory.Value.TotalMiB = 400 }, CodeMemory, warns, "400 MiB"},
		"swap":              {func(f *Facts) { f.Memory.Value.SwapMiB = 2048 }, CodeSwap, informs, "2048"},
		"module":            {func(f *Facts) { f.Modules.Value["vxlan"] = ModuleMissing }, CodeKernelModule, blocks, "vxlan, kernel 6.8.0-45-generic"},
		"microk8s":          {func(f *Facts) { f.Others = Known([]Other{{"microk8s", "kubelite (process 2211)", true}}) }, CodeForeign, blocks, "microk8s: kubelite (process 2211), running"},
		"kubeadm leftovers": {func(f *Facts) { f.Others = Known([]Other{{"kubeadm", "/etc/kubernetes/admin.conf", false}}) }, CodeForeign, blocks, "not running"},
		"calico leftovers":  {func(f *Facts) { f.Others = Known([]Other{{"cni-config", "/etc/cni/net.d/10-calico.conflist", false}}) }, CodeForeignCNI, warns, "10-calico"},
		"docker": {func(f *Facts) {
			f.Others = Known([]Other{{"docker", "dockerd (process 1)", true}, {"containerd", "containerd (process 2)", true}})
		}, CodeSecondEngine, informs, "dockerd"},
		"port":           {func(f *Facts) { f.Ports.Value = append(f.Ports.Value, Listener{"tcp", "*", 10250, "haproxy", 9}) }, CodePort, blocks, "10250 by haproxy"},
		"ufw":            {func(f *Facts) { f.Firewall.Value.UFW = true }, CodeUFW, warns, ""},
		"firewalld":      {func(f *Facts) { f.Firewall.Value.Firewalld = true }, CodeFirewalld, warns, ""},
		"Oracle's rules": {func(f *Facts) { f.Firewall.Value.InputRejects = true }, CodeIptables, warns, ""},
		"probe":          {func(f *Facts) { f.Disks = Unknown[Disks]("timeout") }, CodeProbeIncomplete, warns, "disks: timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fit()
			c.change(&f)
			found := Findings(agent(), f)
			if len(found) != 1 || found[0].Code != c.code || found[0].Severity != c.severity || !strings.Contains(found[0].Evidence, c.evidence) || found[0].Machine != "gpu-1" {
				t.Errorf("%+v; want one %s (%s) with %q", found, c.code, c.severity, c.evidence)
			}
		})
	}
}

// Case 032: the listener is another Kubernetes, and that is told too; a machine
// that was never k3s's with the leftovers of one has that as its one cause.
func TestPortsOfAnotherKubernetes(t *testing.T) {
	f := fit()
	f.Ports.Value = append(f.Ports.Value, Listener{"tcp", "*", 10250, "kubelite", 9}, Listener{"tcp", "127.0.0.1", 6443, "kubelite", 9})
	found := Findings(agent(), f)
	if len(found) != 2 || found[0].Code != CodePort || found[1].Code != CodePortsOfOthers || found[1].Severity != diag.Warns || found[1].Evidence != "kubelite" {
		t.Errorf("%+v", found)
	}
	f.Others = Known([]Other{{"microk8s", "kubelite (process 9)", true}})
	for _, r := range diag.Reduce(Findings(agent(), f)) {
		if r.Code == CodePortsOfOthers {
			t.Errorf("the foreign cluster explains it: %+v", r)
		}
	}
}

func TestNoFindingWhereThereIsNoTrouble(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"privileged container with all abilities": func(f *Facts) {
			f.Abilities.Value.Container = "docker"
			f.Abilities.Value.Markers = []string{"/.dockerenv"}
		},
		"a disk that k3s has filled": func(f *Facts) {
			f.Disks.Value.Mounts["/var/lib"] = Mount{On: "/", SizeMiB: 40 << 10, FreeMiB: 8 << 10}
			f.K3s = Known(K3s{Version: "v1.36.3+k3s1"})
		},
		"k3s's own port": func(f *Facts) {
			f.Ports.Value = append(f.Ports.Value, Listener{"tcp", "*", 10250, "kubelet", 9})
			f.K3s = Known(K3s{Version: "v1.36.3+k3s1", Units: map[string]Unit{"k3s-agent": {Active: "active"}}})
		},
		"a port of servers on an agent": func(f *Facts) { f.Ports.Value = append(f.Ports.Value, Listener{"tcp", "*", 2379, "etcd", 9}) },
		"two seconds": func(f *Facts) {
			f.Clock.Value = Clock{OffsetMin: 1900 * time.Millisecond, OffsetMax: 2500 * time.Millisecond}
		},
		"Linux Mint on Ubuntu": func(f *Facts) {
			f.OS.Value = OS{ID: "linuxmint", BaseID: "ubuntu", BaseVersion: "24.04", Family: "debian"}
		},
		"a module that is not asked for": func(f *Facts) { f.Modules.Value["wireguard"] = ModuleMissing },
	} {
		f := fit()
		change(&f)
		if found := Findings(agent(), f); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
	old := agent()
	old.Kubernetes = "v1.34.4+k3s1"
	f := fit()
	f.Abilities.Value.CgroupVersion = 1
	if found := Findings(old, f); len(found) > 0 {
		t.Errorf("cgroup v1 with Kubernetes 1.34: %+v", found)
	}
}

func TestCrossFindings(t *testing.T) {
	with := func(change func(*Facts)) Facts {
		f := fit()
		f.System.Value.Hostname, f.System.Value.MachineID, f.System.Value.ProductUUID, f.System.Value.BootID = "gpu-2", "m2", "u2", "b2"
		f.Network = Known(Network{Interfaces: []Interface{{Name: "ens3", Addresses: []string{"10.0.0.12/24"}}, {Name: "docker0", Addresses: []string{"172.17.0.1/16"}}}})
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		code   diag.Code
	}{
		"different":  {func(*Facts) {}, ""},
		"host name":  {func(f *Facts) { f.System.Value.Hostname = "GPU-1" }, CodeSameHostname},
		"machine id": {func(f *Facts) { f.System.Value.MachineID = "m1" }, CodeSameMachineID},
		"product":    {func(f *Facts) { f.System.Value.ProductUUID = "U1" }, CodeSameMachineID},
		"no product": {func(f *Facts) { f.System.Value.ProductUUID = "00000000-0000-0000-0000-000000000000" }, ""},
		"address":    {func(f *Facts) { f.Network.Value.Interfaces[0].Addresses = []string{"10.0.0.11/24"} }, CodeSameAddress},
		"one machine": {func(f *Facts) {
			f.System, f.Network = fit().System, fit().Network
		}, CodeSameMachine},
	} {
		first := fit()
		first.Network.Value.Interfaces = append(first.Network.Value.Interfaces, Interface{Name: "docker0", Addresses: []string{"172.17.0.1/16"}})
		found := CrossFindings([]NamedFacts{{"gpu-1", first}, {"gpu-2", with(c.change)}})
		switch {
		case c.code == "" && len(found) > 0:
			t.Errorf("%s: %+v", name, found)
		case c.code != "" && (len(found) != 1 || found[0].Code != c.code || found[0].Machine != "gpu-2" || !strings.Contains(found[0].Evidence, "gpu-1")):
			t.Errorf("%s: %+v, want %s at gpu-2", name, found, c.code)
		}
	}
}

func TestEveryCodeIsInTheCatalogue(t *testing.T) {
	for _, code := range Codes() {
		if p, ok := diag.Lookup(code); !ok || len(p.Fix) == 0 || p.Cause == "" {
			t.Errorf("%s is not in the catalogue, or without cause or fix", code)
		}
	}
}
