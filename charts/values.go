package charts

import "strings"

// How a pod gets its GPUs.
const (
	// RuntimeCDI: the container engine injects devices by name; a pod needs no runtime class.
	RuntimeCDI = "cdi"
	// RuntimeClass: a pod says runtimeClassName: nvidia.
	RuntimeClass = "runtimeClass"
	// RuntimeNRI: a plugin of the container engine injects devices, without a runtime
	// class and without a change of its configuration. It is planned for and no
	// choice of gpuctl.yaml yet: the operator's documentation calls it not GA, and it
	// wants containerd 1.7.30, 2.1 or newer (gpu-operator cdi page, 26.3 on).
	RuntimeNRI = "nri"
)

// UnprovenTaint is the key of the taint (effect NoSchedule) under which a node
// with GPUs registers until its smoke test has passed.
const UnprovenTaint = "gpuctl.dev/unproven"

// Want is everything the operator's values depend on. It is filled from facts
// (the probe, the config, the cluster), never guessed here.
type Want struct {
	// RuntimePath is RuntimeCDI, RuntimeClass or RuntimeNRI.
	RuntimePath string
	// OperatorDriver: at least one group leaves driver and toolkit to the operator.
	// Nodes of the other groups carry the deploy labels that keep both off.
	OperatorDriver bool
	// DriverVersion is the operator driver's version; empty is the chart's default.
	DriverVersion string
	// DriverModules is "open" or "proprietary"; empty lets the driver image choose by the card.
	DriverModules string
	// ContainerdSocket is where an operator's toolkit finds containerd; empty is k3s's.
	ContainerdSocket string
	// ContainerdConfig is the file that an operator's toolkit edits; empty lets it ask
	// the containerd on the PATH, which is Docker's where both are.
	ContainerdConfig string
	// ForeignNFD: node feature discovery is already in the cluster and not the operator's.
	ForeignNFD bool
	// MIG is "" (no node is split), "single" or "mixed".
	MIG string
	// MIGConfigs is the MIG manager's list of configurations, empty where the operator's own has all that is needed.
	MIGConfigs string
	// MIGReboot: the MIG manager may reboot a node (VMs that cannot reset a GPU).
	MIGReboot bool
	// ServiceMonitors: the Prometheus operator's types are in the cluster.
	ServiceMonitors bool
	// Taints are keys of further NoSchedule taints that the user puts on GPU nodes.
	Taints []string
	// PluginConfigs are device-plugin configurations by name (sharing); PluginDefault names the
	// one for nodes without the label nvidia.com/device-plugin.config.
	PluginConfigs map[string]string
	PluginDefault string
}

// Value is one value that the facts demand, with its reason.
type Value struct {
	// Path is dotted: "driver.enabled".
	Path string
	// Value is what Helm gets.
	Value any
	// Why says where the need comes from.
	Why string
	// Rendered: the value itself stands in a manifest (the ClusterPolicy, a pod's
	// tolerations). One that is not rendered only switches templates on or off.
	Rendered bool
}

// K3sContainerdSocket is where k3s's own containerd listens.
const K3sContainerdSocket = "/run/k3s/containerd/containerd.sock"

// K3sContainerdConfig is the file k3s renders for it, below its data directory.
const K3sContainerdConfig = "agent/etc/containerd/config.toml"

// OperatorTable lists the GPU Operator values that the facts demand, each with
// its source, in a fixed order. It is pure.
func OperatorTable(w Want) []Value {
	table := []Value{
		{"driver.enabled", w.OperatorDriver, "host driver unless a group says mode: operator; the operator would skip a node with a host driver anyway (getting-started page)", true},
		{"toolkit.enabled", w.OperatorDriver, "k3s wires a host toolkit by itself; the operator's toolkit signals containerd, which restarts all of k3s (rke2 docs, k3s docs advanced)", true},
		{"cdi.enabled", w.RuntimePath != RuntimeClass, "with CDI a workload pod needs no runtime class (gpu-operator cdi page)", true},
		{"operator.runtimeClass", "nvidia", "k3s itself creates the runtime class of this name (k3s#8700, #9702)", true},
		{"operator.upgradeCRD", false, "the types are applied before the release; the chart's hook would pull an image and wait in silence", false},
		{"operator.tolerations", tolerations(w, controlPlane()...), "the operator must start while every GPU node is still unproven", true},
		{"daemonsets.tolerations", tolerations(w), "the chart tolerates nvidia.com/gpu alone; operands and validators must run on unproven nodes", true},
		{"nfd.enabled", !w.ForeignNFD, "two node feature discoveries write the same labels", false},
		{"dcgmExporter.serviceMonitor.enabled", w.ServiceMonitors, "on by default in 26.7; the type exists only with the Prometheus operator", true},
		{"migManager.enabled", w.MIG != "", "with host drivers it stops services of the host and resets MIG to all-disabled on capable cards (operator MIG page)", true},
	}
	if w.RuntimePath == RuntimeNRI {
		table = append(table, Value{"cdi.nriPluginEnabled", true, "no runtime class, no edit of containerd's configuration, no signal (gpu-operator cdi page, not GA)", true})
	}
	if !w.ForeignNFD {
		for _, part := range []string{"master", "worker", "gc"} {
			table = append(table, Value{"node-feature-discovery." + part + ".tolerations", tolerations(w, controlPlane()...),
				"in a cluster whose only nodes are unproven, labels appear only if this part may run there", true})
		}
	}
	if w.MIG != "" {
		table = append(table, Value{"mig.strategy", w.MIG, "the group's sharing.mig", true})
		if w.MIGConfigs != "" {
			table = append(table,
				Value{"migManager.config.create", true, "the operator's list has no name for these slices", true},
				Value{"migManager.config.name", "gpuctl-mig", "sharing.mig", true},
				Value{"migManager.config.data", map[string]any{"config.yaml": w.MIGConfigs}, "sharing.mig", true})
		}
		if w.MIGReboot {
			table = append(table, Value{"migManager.env", env("WITH_REBOOT", "true"), "a passed-through GPU often cannot be reset (operator MIG page)", true})
		}
	}
	if w.OperatorDriver {
		socket := w.ContainerdSocket
		if socket == "" {
			socket = K3sContainerdSocket
		}
		vars := env("CONTAINERD_SOCKET", socket)
		why := "k3s runs its own containerd (operator 26.x on k3s needs this one)"
		if w.ContainerdConfig != "" {
			vars = append(vars, env("CONTAINERD_CONFIG", w.ContainerdConfig)...)
			why += "; beside another containerd the toolkit asks the wrong one for its file (nvidia-container-toolkit#982)"
		}
		table = append(table, Value{"toolkit.env", vars, why, true})
		if w.DriverVersion != "" {
			table = append(table, Value{"driver.version", w.DriverVersion, "the default branch drops Volta and older", true})
		}
		if w.DriverModules != "" {
			table = append(table, Value{"driver.kernelModuleType", w.DriverModules, "the group's driver.modules; auto goes by the card (release notes 25.3.0)", true})
		}
	}
	if len(w.PluginConfigs) > 0 {
		data := map[string]any{}
		for k, v := range w.PluginConfigs {
			data[k] = v
		}
		table = append(table,
			Value{"devicePlugin.config.create", true, "sharing", true},
			Value{"devicePlugin.config.name", "gpuctl-sharing", "since 26.7 the chart refuses create without name and data", true},
			Value{"devicePlugin.config.default", w.PluginDefault, "nodes without the label nvidia.com/device-plugin.config", true},
			Value{"devicePlugin.config.data", data, "sharing", true})
	}
	return table
}

// OperatorValues are the values of OperatorTable as Helm wants them. It is pure:
// the same want gives the same values.
func OperatorValues(w Want) map[string]any {
	values := map[string]any{}
	for _, v := range OperatorTable(w) {
		put(values, strings.Split(v.Path, "."), v.Value)
	}
	return values
}

func put(into map[string]any, path []string, value any) {
	if len(path) == 1 {
		into[path[0]] = value
		return
	}
	next, ok := into[path[0]].(map[string]any)
	if !ok {
		next = map[string]any{}
		into[path[0]] = next
	}
	put(next, path[1:], value)
}

// controlPlane returns the taints that other tools put on servers; gpuctl puts none there.
func controlPlane() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// tolerations returns tolerations of NoSchedule for the taints of an unproven GPU
// node, the user's own, and more.
func tolerations(w Want, more ...string) []any {
	keys := append([]string{"nvidia.com/gpu", UnprovenTaint}, w.Taints...)
	var all []any
	for _, key := range append(keys, more...) {
		all = append(all, map[string]any{"key": key, "operator": "Exists", "effect": "NoSchedule"})
	}
	return all
}

func env(name, value string) []any {
	return []any{map[string]any{"name": name, "value": value}}
}
