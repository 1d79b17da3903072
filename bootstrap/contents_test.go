package bootstrap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// pure is a doer whose parts must not be used: planning does no I/O.
func pure() doer { return doer{on: func(string) remote.Runner { return nil }} }

// clusterOf makes a wish for machines named "server-1", "gpu-1", ...
func clusterOf(t *testing.T, names ...string) wanted {
	t.Helper()
	set, err := charts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n  machines:\n"
	for i, n := range names {
		role := "agent"
		if i == 0 {
			role = "server"
		}
		text += fmt.Sprintf("  - {name: %s, host: 203.0.113.%d, role: %s}\n", n, i+1, role)
	}
	c, err := config.Parse([]byte(text), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return wanted{config: c, set: set, machines: c.Inventory().Machines, key: "key", owner: "me"}
}

// fresh is a synthetic machine as a provider hands it over: Ubuntu, a good driver, n GPUs.
func fresh(i, n int) host.Facts {
	name := fmt.Sprintf("vm-%d", i)
	f := host.Facts{
		OS:        host.Known(host.OS{ID: "ubuntu", VersionID: "24.04", BaseID: "ubuntu", BaseVersion: "24.04", Family: "debian", PrettyName: "Ubuntu 24.04.3 LTS"}),
		System:    host.Known(host.System{Kernel: "6.8.0-85-generic", Arch: "x86_64", Hostname: name, MachineID: name, ProductUUID: name, BootID: name, Init: "systemd"}),
		Clock:     host.Known(host.Clock{}),
		Abilities: host.Known(host.Abilities{VM: "kvm", SysAdmin: true, Mount: true, CgroupVersion: 2, CgroupWritable: true, MemoryCgroup: true}),
		Memory:    host.Known(host.Memory{TotalMiB: 128 << 10, AvailableMiB: 120 << 10, CPUs: 26}),
		Disks: host.Known(host.Disks{Mounts: map[string]host.Mount{
			"/":                 {Device: "/dev/vda1", Type: "ext4", On: "/", SizeMiB: 1 << 20, FreeMiB: 900 << 10},
			"/var/lib":          {Device: "/dev/vda1", Type: "ext4", On: "/", SizeMiB: 1 << 20, FreeMiB: 900 << 10},
			host.DefaultDataDir: {Device: "/dev/vda1", Type: "ext4", On: "/", SizeMiB: 1 << 20, FreeMiB: 900 << 10},
		}}),
		Modules:    host.Known(map[string]host.Module{"overlay": host.ModuleReady, "br_netfilter": host.ModuleReady, "vxlan": host.ModuleReady}),
		Sysctls:    host.Known(map[string]string{"fs.inotify.max_user_instances": "128", "fs.inotify.max_user_watches": "8192"}),
		Network:    host.Known(host.Network{Default4: "eth0", Interfaces: []host.Interface{iface("eth0", fmt.Sprintf("10.0.0.%d/24", i))}}),
		Firewall:   host.Known(host.Firewall{InputPolicy: "ACCEPT", ForwardPolicy: "ACCEPT"}),
		Ports:      host.Known([]host.Listener{}),
		CloudInit:  host.Known("done"),
		Packages:   host.Known(host.Packages{Manager: "apt", Installed: map[string]string{"linux-image-generic": "6.8.0-85.85"}, Candidates: map[string][]string{}}),
		SecureBoot: host.Known(false),
		PCI:        host.Known([]host.PCIDevice{}),
		Driver:     host.Absent[host.Driver](), SMI: host.Absent[host.SMI](), Fabric: host.Absent[host.Fabric](), Toolkit: host.Absent[host.Toolkit](),
		K3s: host.Absent[host.K3s](), Files: host.Known(map[string]host.File{}), Others: host.Known([]host.Other{}), KernelLog: host.Known([]host.KernelMsg{}),
	}
	if n > 0 {
		withGPUs(&f, i, n)
	}
	return f
}

func withGPUs(f *host.Facts, i, n int) {
	var pci []host.PCIDevice
	var gpus []host.GPU
	nodes := []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}
	for g := range n {
		bus := fmt.Sprintf("0000:%02x:00.0", 0x18+g)
		pci = append(pci, host.PCIDevice{Address: bus, Vendor: "10de", Device: "2331", Class: "0302", Driver: "nvidia"})
		gpus = append(gpus, host.GPU{Index: g, UUID: fmt.Sprintf("GPU-%d-%d", i, g), Name: "NVIDIA H100 PCIe", PCI: bus, MemoryMiB: 81559, Compute: "9.0", MIG: "Disabled", MIGPending: "Disabled"})
		nodes = append(nodes, fmt.Sprintf("/dev/nvidia%d", g))
	}
	f.PCI = host.Known(pci)
	f.Driver = host.Known(host.Driver{Modules: map[string]int{"nvidia": 2, "nvidia_uvm": 0}, LoadedVersion: "580.95.05", FileVersion: "580.95.05", LibraryVersion: "580.95.05", Flavour: "open", Nodes: nodes})
	f.SMI = host.Known(host.SMI{DriverVersion: "580.95.05", GPUs: gpus})
}

// settled turns a machine into what apply leaves: every file in place, k3s running.
func settled(w wanted, m inventory.Machine, s sight) host.Facts {
	f := s.facts[m.Name]
	net := w.network(s)
	f.Sysctls = host.Known(map[string]string{"fs.inotify.max_user_instances": "8192", "fs.inotify.max_user_watches": "524288"})
	files := map[string]host.File{}
	put := func(path, mode string, content []byte) {
		files[path] = host.File{Mode: mode, Kind: "file", Hash: host.KeyedHash(w.key, content)}
	}
	put(host.PathModules, "644", host.ModulesFile(w.host(m, s, net)))
	sysctl, _ := host.SysctlFile(f)
	put(host.PathSysctl, "644", sysctl)
	put(host.PathUnattended, "644", host.UnattendedFile())
	want := w.k3s(m, s, net)
	for _, file := range k3s.Files(want) {
		put(file.Path, file.Mode, []byte(file.Content))
	}
	put(k3s.ServerTokenFile, "600", []byte("secret"))
	put(k3s.AgentTokenFile, "600", []byte(want.AgentToken+"\n"))
	f.Files = host.Known(files)
	f.Packages = host.Known(host.Packages{Manager: "apt", Installed: map[string]string{"linux-image-generic": "6.8.0-85.85"}, Held: []string{"linux-image-generic"}})
	f.Toolkit = host.Known(host.Toolkit{Version: "1.20.0", Runtime: "/usr/bin/nvidia-container-runtime", Binaries: map[string]string{"nvidia-container-runtime": "/usr/bin/nvidia-container-runtime"}})
	sum, _ := w.set.Checksum("amd64")
	unit := host.Unit{Active: "active", Sub: "running", Enabled: "enabled"}
	f.K3s = host.Known(host.K3s{Version: w.kubernetes(), SHA256: sum, Path: k3s.Binary, Units: map[string]host.Unit{want.Unit(): unit}, InForce: inForceText(k3s.Config(want))})
	return f
}

// inForceText is what the probe brings back of gpuctl's own configuration.
func inForceText(text string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && strings.Contains("server node-ip node-external-ip flannel-iface flannel-backend flannel-external-ip", key) {
			out[key] = strings.Trim(value, `"`)
		}
	}
	if strings.Contains(text, "gpuctl.dev/unproven") {
		out["unproven"] = "yes"
	}
	return out
}

// sightOf makes a sight of fresh machines with the given numbers of GPUs, and no cluster.
func sightOf(w wanted, gpus ...int) sight {
	s := sight{facts: map[string]host.Facts{}, unreached: map[string]error{}}
	for i, m := range w.machines {
		s.facts[m.Name] = fresh(i+1, gpus[i])
	}
	s.cluster.state.NoAPI = "k3s does not run on " + w.server().Name
	return s
}

func TestPlanOfFreshMachines(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	golden(t, "fresh-three", render(w.contents(sightOf(w, 0, 1, 8), pure())))
	one := clusterOf(t, "box")
	golden(t, "fresh-one", render(one.contents(sightOf(one, 2), pure())))
	plain := clusterOf(t, "cpu")
	golden(t, "fresh-no-gpu", render(plain.contents(sightOf(plain, 0), pure())))
}

// settledSight is the sight of a cluster on which everything is as wanted.
func settledSight(t *testing.T, w wanted, gpus ...int) sight {
	t.Helper()
	s := sightOf(w, gpus...)
	s.credentials = &k3s.Credentials{AgentToken: "K10abc::node:secret"}
	rel, _ := w.operator(s)
	hash, err := charts.HashValues(rel.Values)
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = clusterSight{at: time.Now(), release: charts.State{Phase: charts.Deployed, Owner: w.owner, Version: rel.Chart.Version, ValuesHash: hash, Values: rel.Values}}
	s.cluster.state.Policy = kube.Policy{Exists: true, State: "ready", Reason: "Reconciled"}
	for i, m := range w.machines {
		n := kube.Node{Name: m.Name, Ready: true, Annotations: map[string]string{}}
		if gpus[i] > 0 {
			n.Annotations[provenAnnotation] = proofText(t, s.facts[m.Name])
		}
		s.cluster.state.Nodes = append(s.cluster.state.Nodes, n)
	}
	for _, m := range w.machines {
		s.facts[m.Name] = settled(w, m, s)
	}
	return s
}

func TestNothingIsPendingOnceEverythingIsAsWanted(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	b := w.contents(settledSight(t, w, 0, 1, 8), pure())
	if len(b.actions) > 0 {
		t.Errorf("pending:\n%s", render(b))
	}
}

func TestWhatDriftedAndNothingElseIsPending(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	for _, tc := range []struct {
		name  string
		drift func(*sight)
		want  []string
	}{
		{"a dead agent", func(s *sight) {
			f := s.facts["gpu-1"]
			f.K3s.Value.Units = map[string]host.Unit{"k3s-agent": {Active: "failed", Sub: "failed", Enabled: "enabled"}}
			s.facts["gpu-1"] = f
		}, []string{"gpu-1/k3s"}},
		{"an unproven node", func(s *sight) { s.cluster.state.Nodes[1].Annotations = nil }, []string{"gpu-1/smoke", "cluster/gpu-ready"}},
		{"other GPUs than those that were proven", func(s *sight) {
			f := s.facts["gpu-1"]
			gpus := append([]host.GPU(nil), f.SMI.Value.GPUs...)
			gpus[0].UUID = "GPU-other"
			f.SMI.Value.GPUs = gpus
			s.facts["gpu-1"] = f
		}, []string{"gpu-1/smoke", "cluster/gpu-ready"}},
		{"a node that is not Ready", func(s *sight) { s.cluster.state.Nodes[1].Ready = false }, []string{"gpu-1/node"}},
		{"values of the operator", func(s *sight) { s.cluster.release.ValuesHash = "other" }, []string{"cluster/gpu-operator"}},
		{"an operator without labels", func(s *sight) { s.cluster.state.Policy.Reason = "NFDLabelsMissing" }, []string{"cluster/gpu-ready"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := settledSight(t, w, 0, 2)
			tc.drift(&s)
			var ids []string
			for _, a := range w.contents(s, pure()).actions {
				ids = append(ids, a.ID)
			}
			if strings.Join(ids, " ") != strings.Join(tc.want, " ") {
				t.Errorf("pending %v, want %v", ids, tc.want)
			}
		})
	}
}

func TestBlockedAgentIsLeftOutAndBlockedServerStopsAll(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	container := func(s *sight, name string) {
		f := s.facts[name]
		f.Abilities = host.Known(host.Abilities{Container: "docker"})
		f.System.Value.Init = "sh"
		s.facts[name] = f
	}
	s := sightOf(w, 0, 1, 1)
	container(&s, "gpu-1")
	b := w.contents(s, pure())
	if !b.out["gpu-1"] || b.out["gpu-2"] || len(ofScope(b.actions, "gpu-1")) > 0 || len(ofScope(b.actions, "gpu-2")) == 0 {
		t.Errorf("want gpu-1 alone left out:\n%s", render(b))
	}
	s = sightOf(w, 0, 1, 1)
	container(&s, "server-1")
	if b := w.contents(s, pure()); len(b.actions) > 0 || !diag.AnyBlocks(b.findings) {
		t.Errorf("want nothing without a server:\n%s", render(b))
	}
	s = sightOf(w, 0, 1, 1)
	delete(s.facts, "gpu-2")
	if b := w.contents(s, pure()); !b.out["gpu-2"] || len(ofScope(b.actions, "gpu-1")) == 0 {
		t.Errorf("an unreached agent must not stop the others:\n%s", render(b))
	}
}

func TestEveryNeedIsAnActionOrAlreadyTrue(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	b := w.contents(sightOf(w, 1, 1), pure())
	ids := map[string]plan.Action{}
	for _, a := range b.actions {
		if _, twice := ids[a.ID]; twice {
			t.Errorf("two actions are called %s", a.ID)
		}
		ids[a.ID] = a
	}
	for _, a := range b.actions {
		for _, need := range append(a.Needs, a.After...) {
			if _, there := ids[need]; !there {
				t.Errorf("on fresh machines %s needs %s, which nothing brings", a.ID, need)
			}
		}
	}
	if len(nvidia.GPUs(sightOf(w, 1, 1).facts["gpu-1"])) != 1 {
		t.Error("the synthetic machine has no GPU")
	}
}

// proofText is the annotation of a node whose GPUs were proven.
func proofText(t *testing.T, f host.Facts) string {
	t.Helper()
	p := smoke.Proof{Time: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)}
	for _, g := range f.SMI.Value.GPUs {
		p.UUIDs = append(p.UUIDs, g.UUID)
	}
	text, err := p.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withoutDriver takes the driver off a synthetic machine.
func withoutDriver(f host.Facts) host.Facts {
	f.Driver, f.SMI = host.Known(host.Driver{}), host.Absent[host.SMI]()
	pci := append([]host.PCIDevice(nil), f.PCI.Value...)
	for i := range pci {
		pci[i].Driver = ""
	}
	f.PCI = host.Known(pci)
	return f
}
