package bootstrap

import (
	stdnet "net"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/source"
)

// wanted is everything the user wants, resolved as far as it can be without
// looking at a machine: configuration, set of versions, machines.
type wanted struct {
	config   config.Config
	set      charts.Set
	machines []inventory.Machine
	// key is the key of this run's probes, without which drift of files cannot be seen.
	key string
	// resolved says that config holds secrets in the place of references; secrets lists them.
	resolved bool
	secrets  []string
	// owner names this cluster's state in records that must be told from other people's.
	owner string
	// token joins machines to a cluster that gpuctl did not make; apiVersion is that
	// cluster's Kubernetes, where its API was seen.
	token, apiVersion string
	// only are names of nodes to which an existing cluster's work is limited; none means all.
	only []string
	// pinned is the cluster's id as this computer knows it, fresh the one for a new cluster.
	pinned, fresh string
	// bundle is an offline bundle that takes the place of every source; nil is none.
	bundle *offline
	// force lets versions meet that were not tested together.
	force bool
	// upgrade is how k3s is brought to the wanted release; nil leaves each machine at its own.
	upgrade *upgrade
}

// names are what the API's certificates carry on every server.
func (w wanted) names(more []string) []string {
	if e := w.endpoint(); e != "" {
		if host, _, err := stdnet.SplitHostPort(e); err == nil {
			return append([]string{host}, more...)
		}
	}
	return more
}

// server is the first machine with the control plane. The configuration has checked that there is one.
func (w wanted) server() inventory.Machine {
	for _, m := range w.machines {
		if m.Role == inventory.Server {
			return m
		}
	}
	return inventory.Machine{}
}

func (w wanted) servers() int {
	n := 0
	for _, m := range w.config.Spec.Machines {
		if m.Role == string(inventory.Server) {
			n++
		}
	}
	return n
}

// kubernetes is the k3s release, the user's or the set's.
func (w wanted) kubernetes() string {
	if v := w.config.Spec.Kubernetes.Version; v != "" {
		return v
	}
	if w.existing() != nil && strings.Contains(w.apiVersion, "+k3s") {
		return w.apiVersion // agents as the servers they join
	}
	return w.set.K3s.Version
}

func (w wanted) host(m inventory.Machine, s sight, net Network) host.Want {
	modules := []string{"vxlan"}
	if net.Backend == "wireguard-native" {
		modules = []string{"wireguard"}
	}
	if net.Backend == "host-gw" {
		modules = nil
	}
	return host.Want{
		Machine: m.Name, Role: m.Role, Kubernetes: w.release(m, s), DataDir: m.DataDir,
		Disk: diskOf(m), Open: w.opening(m, net), Spot: w.spot(m),
		Modules: modules, GPU: len(nvidia.GPUs(s.facts[m.Name])) > 0, Key: w.key,
	}
}

func (w wanted) nvidia(m inventory.Machine) nvidia.Want {
	t := w.set.Toolkit
	if v := w.config.Spec.GPU.Toolkit.Version; v != "" {
		t.Version = v
	}
	packages := sourceOf(w.config.Spec.Sources.Packages)
	if base := strings.TrimRight(packages.URL, "/"); base != "" {
		t.Repository, t.KeyURL = base+"/stable/deb", base+"/gpgkey"
	}
	if w.bundle != nil {
		packages = source.Source{}
		t.Repository, t.KeyURL = "file:"+toolkitDir+"/stable/deb", "file://"+toolkitDir+"/gpgkey"
	}
	return nvidia.Want{
		Machine: m.Name, DataDir: m.DataDir, GPUs: m.GPUs, GPUModel: m.GPUModel, Mode: w.config.Group(m.Group).Driver.Mode,
		Images: nvidia.Images{Repository: w.set.Driver.Images.Repository, Versions: w.set.Driver.Images.Versions, OS: w.set.Driver.Images.OS},
		Driver: w.driver(m), Packages: packages, Key: w.key,
		Toolkit: nvidia.Toolkit{Version: t.Version, Repository: t.Repository, KeyURL: t.KeyURL, KeyFingerprint: t.KeyFingerprint},
	}
}

// driver is the kernel driver, where gpuctl provides it.
func (w wanted) driver(m inventory.Machine) nvidia.Driver {
	group, pin := w.config.Group(m.Group).Driver, w.set.Driver
	d := nvidia.Driver{
		Branch: group.Branch, Explicit: group.Branch != "", Modules: group.Modules, NoReboot: group.Reboot == "never",
		KeyFingerprint: pin.KeyFingerprint, Keys: pin.Keys,
	}
	if d.Branch == "" {
		d.Branch = pin.Branch
	}
	if base := strings.TrimRight(w.config.Spec.Sources.Packages.URL, "/"); base != "" {
		d.Repository = base + "/cuda/repos"
	}
	if w.bundle != nil {
		d.Repository = "file://" + driverDir + "/cuda/repos"
	}
	return d
}

func (w wanted) k3s(m inventory.Machine, s sight, net Network) k3s.Want {
	spec, proxy := w.config.Spec.Kubernetes, w.config.Spec.Proxy
	a := net.Addresses[m.Name]
	want := k3s.Want{
		Machine: m.Name, Role: m.Role, ClusterID: w.clusterID(s), Version: w.release(m, s), Source: w.config.Spec.Sources.K3s.URL, Mirror: sourceOf(w.config.Spec.Sources.K3s),
		NodeIP: a.NodeIPs(), ExternalIP: a.ExternalIP, Interface: a.Interface, DataDir: m.DataDir, Why: net.why(m, w.names(spec.TLSSANs)), Chosen: net.chosen(m), Mount: mountOf(m),
		ImageMirror: w.config.Spec.Sources.Images.URL, Secrets: w.secrets,
		Proxy:    k3s.Proxy{HTTP: proxy.With(proxy.HTTP), HTTPS: proxy.With(proxy.HTTPS), No: proxy.No},
		Labels:   w.deployLabels(m, s),
		Unproven: m.Role == inventory.Agent && joinsUnproven(s.facts[m.Name]) && w.taintsUnproven(),
	}
	want.ServerURL = w.joinURL(m, s, net)
	want.Registries, want.Beside, _ = w.registries() // resolve has found it right
	for _, t := range taintsOf(w.config.Group(m.Group)) {
		want.Taints = append(want.Taints, t.String())
	}
	if want.Version == w.set.K3s.Version {
		want.SHA256, _ = w.set.Checksum(arch(s.facts[m.Name]))
	}
	if w.bundle != nil {
		f, _ := w.bundle.Find(bundle.K3s, "k3s", arch(s.facts[m.Name])) // without one there is a finding
		want.Bundle, want.SHA256, want.ImageMirror = w.bundle.Path, f.SHA256, ""
	}
	if m.Role == inventory.Server {
		want.Datastore, want.Backend, want.Disable = spec.Datastore, net.Backend, spec.Disable
		want.FlannelExternal, want.OnlyServer = net.External, w.servers() == 1
		want.EmbeddedRegistry = spec.EmbeddedRegistry
		want.Extra = spec.Config.Server
		for _, s := range sans(m, a, w.names(spec.TLSSANs)) {
			want.TLSSANs = append(want.TLSSANs, s.name)
		}
		return want
	}
	want.Extra = spec.Config.Agent
	if s.credentials != nil {
		want.AgentToken = s.credentials.AgentToken
	}
	return want
}

// joinsUnproven says whether the machine's GPUs wait for their proof when it joins.
// GPUs that could not be counted now change nothing of what is in force.
func joinsUnproven(f host.Facts) bool {
	if f.PCI.Unsure() {
		return f.K3s.Value.InForce["unproven"] != ""
	}
	return len(nvidia.GPUs(f)) > 0
}

// operator is the GPU Operator's release. The second result lists values of the
// facts that the set or the user overrode.
func (w wanted) operator(s sight) (charts.Release, []string) {
	gpu, sources := w.config.Spec.GPU, w.config.Spec.Sources
	rel, overrides := w.set.OperatorRelease(w.withSharing(w.withDriver(charts.Want{RuntimePath: gpu.RuntimePath, Taints: w.taintKeys()}, s), s), gpu.Operator.Values)
	if v := gpu.Operator.Version; v != "" && v != rel.Chart.Version {
		rel.Chart.Version, rel.Chart.SHA256 = v, ""
	}
	if sources.Charts.URL != "" {
		rel.Chart.Repository = sources.Charts.URL
	}
	rel.Chart = w.bundled(rel.Chart)
	// An operator that is there already is kept and changed only as asked, see charts.Adopt.
	rel.Owner, rel.Adopt, rel.Asked = w.owner, true, w.askedOfTheirs(s)
	return rel, overrides
}

// runtimePath is how pods get GPUs, the user's choice or the set's.
func (w wanted) runtimePath() string {
	if p := w.config.Spec.GPU.RuntimePath; p != "" {
		return p
	}
	return w.set.Operator.RuntimePath
}

// arch names a machine's architecture as Go and k3s do.
func arch(f host.Facts) string {
	switch f.System.Value.Arch {
	case "aarch64", "arm64":
		return "arm64"
	}
	return "amd64"
}

// probe says what a machine's probe must look at beside the usual.
func (w wanted) probe(m inventory.Machine) host.Request {
	_, beside, _ := w.registries()
	device := ""
	if m.DataDisk != nil {
		device = m.DataDisk.Device
	}
	return host.Request{
		DataDir: m.DataDir, Key: w.key, Device: device,
		Files: append(append(nvidia.Paths(), nvidia.PathSource), k3s.Paths(k3s.Want{Machine: m.Name, Role: m.Role, Version: w.kubernetes(), DataDir: m.DataDir, Beside: beside})...),
	}
}
