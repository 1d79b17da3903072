package charts

import "strings"

// PluginReleaseName is the name under which gpuctl installs the stand-alone device plugin.
const PluginReleaseName = "nvidia-device-plugin"

// PluginTable lists the values of NVIDIA's device plugin chart that the facts
// demand, each with its source, in a fixed order. It is pure. The plugin stands
// alone where the GPU Operator is off: driver and toolkit are the host's.
func PluginTable(w Want) []Value {
	table := []Value{
		{"runtimeClassName", "nvidia", "the plugin needs the driver's libraries; k3s makes nvidia no default runtime (README of k8s-device-plugin, k3s docs advanced)", true},
		{"gfd.enabled", true, "labels of the GPUs, and with them node feature discovery, by whose labels the plugin finds its nodes", false},
		{"nfd.enabled", !w.ForeignNFD, "two node feature discoveries write the same labels", false},
		{"tolerations", tolerations(w), "the plugin must run on unproven nodes", true},
	}
	if w.RuntimePath != RuntimeClass {
		table = append(table,
			Value{"deviceListStrategy", "cdi-cri", "with CDI a workload pod needs no runtime class (README of k8s-device-plugin)", true},
			Value{"nvidiaDriverRoot", "/", "the chart mounts it for the plugin to write CDI specifications from", true},
			Value{"cdi.nvidiaHookPath", "/usr/bin/nvidia-cdi-hook", "where the Container Toolkit's packages put the hook", true})
	}
	if !w.ForeignNFD {
		for _, part := range []string{"master", "worker", "gc"} {
			table = append(table, Value{"nfd." + part + ".tolerations", tolerations(w, controlPlane()...),
				"in a cluster whose only nodes are unproven, labels appear only if this part may run there", true})
		}
	}
	if w.MIG != "" {
		table = append(table, Value{"migStrategy", w.MIG, "the group's sharing.mig", true})
	}
	if len(w.PluginConfigs) > 0 {
		data := map[string]any{}
		for k, v := range w.PluginConfigs {
			data[k] = v
		}
		table = append(table,
			Value{"config.map", data, "sharing", true},
			Value{"config.default", w.PluginDefault, "nodes without the label nvidia.com/device-plugin.config", true})
	}
	return table
}

// PluginRelease is the stand-alone device plugin's release; ok is false where the
// set knows none. It is pure. An empty want.RuntimePath is the set's.
func (s Set) PluginRelease(want Want) (rel Release, ok bool) {
	if s.Plugin.Chart == "" {
		return Release{}, false
	}
	if want.RuntimePath == "" {
		want.RuntimePath = s.Operator.RuntimePath
	}
	values := map[string]any{}
	for _, v := range PluginTable(want) {
		put(values, strings.Split(v.Path, "."), v.Value)
	}
	return Release{
		Name: PluginReleaseName, Namespace: s.Plugin.Namespace, Values: values,
		Chart: Chart{Name: s.Plugin.Chart, Version: s.Plugin.Version, Repository: s.Plugin.Repository, SHA256: s.Plugin.SHA256},
	}, true
}
