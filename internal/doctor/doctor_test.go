package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

type trouble struct {
	change   func(*Seen)
	code     diag.Code
	node     string
	evidence string
}

func TestAHealthyClusterHasNoFindings(t *testing.T) {
	if found := Findings(healthy()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if found := Findings(Seen{}); len(found) > 0 {
		t.Errorf("an empty cluster: %+v", found)
	}
}

func label(node int, key, value string) func(*Seen) {
	return func(s *Seen) { s.Nodes[node].Labels[key] = value }
}

func nodeTroubles() map[string]trouble {
	return map[string]trouble{
		"not ready": {func(s *Seen) {
			s.Nodes[1].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}
		}, "node-not-ready", "gpu-2", "Kubelet stopped posting"},
		"not joined":    {func(s *Seen) { s.GPUNodes = append(s.GPUNodes, "gpu-3") }, "node-not-registered", "gpu-3", "no node gpu-3"},
		"disk pressure": {func(s *Seen) { s.Nodes[0].Status.Conditions[1].Status = corev1.ConditionTrue }, "node-pressure", "gpu-1", "DiskPressure"},
		"cordoned":      {func(s *Seen) { s.Nodes[0].Spec.Unschedulable = true }, "node-cordoned", "gpu-1", "2 nvidia.com/gpu"},
		"old kubelet":   {func(s *Seen) { s.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.35.9+k3s1" }, "kubelet-version-skew", "gpu-1", "v1.35.9+k3s1"},
		// NVIDIA/k8s-device-plugin#403: the GPU leaves allocatable, capacity stays.
		"7 of 8": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = list("nvidia.com/gpu", 8), list("nvidia.com/gpu", 7)
		}, "gpu-unhealthy", "gpu-1", "7 of 8 nvidia.com/gpu"},
		"nothing offered": {func(s *Seen) { s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = nil, nil }, "smoke-nothing-allocatable", "gpu-1", "offers none"},
		"no labels": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable, s.Nodes[0].Labels = nil, nil, nil
		}, "nfd-labels-missing", "gpu-1", "pci-10de"},
		"no labels any more": {func(s *Seen) {
			s.Nodes[0].Status.Allocatable, s.Nodes[0].Labels = list("nvidia.com/gpu", 0), nil
		}, "nfd-labels-missing", "gpu-1", "pci-10de"},
		// NVIDIA/gpu-operator#603
		"MIG without instances": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = list("nvidia.com/gpu", 0), list("nvidia.com/gpu", 0)
			label(0, labelMIGCapable, "true")(s)
			label(0, labelMIGState, "success")(s)
			label(0, "nvidia.com/mig.config", "all-1g.10gb")(s)
		}, "mig-empty", "gpu-1", "all-1g.10gb"},
		"MIG failed":     {label(1, labelMIGState, "failed"), "mig-config-failed", "gpu-2", "failed"},
		"upgrade failed": {label(1, labelUpgrade, "upgrade-failed"), "driver-upgrade-stuck", "gpu-2", "upgrade-failed"},
		"paused for ever": {func(s *Seen) {
			label(0, labelDeploy+"device-plugin", pausedValue)(s)
			label(0, labelUpgrade, "upgrade-done")(s)
		}, "operator-driver-paused", "gpu-1", "device-plugin"},
		// k3s-io/k3s#1131
		"flannel on the other network": {func(s *Seen) { s.Nodes[0].Annotations[flannelPublicIP] = "203.0.113.7" }, "overlay-wrong-interface", "gpu-1", "203.0.113.7, the node's address is 10.0.0.11"},
	}
}

// toolkitEnv gives the operator's toolkit variables, in pairs.
func toolkitEnv(pairs ...string) func(*Seen) {
	return func(s *Seen) {
		c := &s.DaemonSets[1].Spec.Template.Spec.Containers[0]
		for i := 0; i < len(pairs); i += 2 {
			c.Env = append(c.Env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

// Both settings right, or neither (a machine without k3s): nothing is said.
func TestAToolkitThatIsPointedRight(t *testing.T) {
	for _, pairs := range [][]string{
		{},
		{"CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock"},
		{"CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", "CONTAINERD_CONFIG", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"},
		{"CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", "CONTAINERD_CONFIG", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"},
		{"CONTAINERD_CONFIG", "/etc/containerd/config.toml"},
	} {
		s := healthy()
		toolkitEnv(pairs...)(&s)
		if found := Findings(s); len(found) > 0 {
			t.Errorf("%v: %+v", pairs, found)
		}
	}
}

func operatorTroubles() map[string]trouble {
	policy := func(state, reason, message string) func(*Seen) {
		return func(s *Seen) {
			s.Policies[0] = kube.Policy{Exists: true, State: state, Reason: reason, Message: message}
		}
	}
	return map[string]trouble{
		// helm/helm#30601: a second install under a generated name.
		"two operators": {func(s *Seen) { s.Deployments = append(s.Deployments, operatorAt("default", "v26.3.3")) }, "operators-two", "", "default/gpu-operator"},
		"two policies":  {func(s *Seen) { s.Policies = append(s.Policies, s.Policies[0]) }, "operators-two", "", "2 ClusterPolicies"},
		"none":          {func(s *Seen) { s.Deployments, s.Policies, s.Pods = nil, nil, nil }, "operator-missing", "", "2 nodes"},
		"down":          {func(s *Seen) { s.Deployments[0].Status.AvailableReplicas = 0 }, "operator-deployment-down", "", "gpu-operator/gpu-operator"},
		"without a place": {func(s *Seen) {
			s.Deployments[0].Status.AvailableReplicas = 0
			p := operand("gpu-operator-78dfc8d498-7m8v5", "")
			p.Labels = s.Deployments[0].Spec.Selector.MatchLabels
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate",
			}}}
			s.Pods = append(s.Pods, p)
		}, "operator-deployment-down", "", "didn't match Pod's node affinity/selector"},
		"not ready": {policy("notReady", "OperandNotReady", "states not ready: [state-device-plugin]"), "operator-not-ready", "", "state-device-plugin"},
		"refused":   {policy("notReady", "ReconcileFailed", "driver.version"), "operator-policy-error", "", "driver.version"},
		// Ready by name alone: no GPU anywhere.
		"ready without labels": {policy("ready", "NFDLabelsMissing", "No NFD labels found in the cluster"), "nfd-labels-missing", "", "NFDLabelsMissing"},
		"two discoveries": {func(s *Seen) {
			s.DaemonSets = append(s.DaemonSets, daemonSet("network-operator", "network-operator-node-feature-discovery-worker", "nfd:v0.17.3"))
		}, "nfd-twice", "", "network-operator/"},
		// NVIDIA/gpu-operator#782
		"old discovery": {func(s *Seen) {
			s.DaemonSets[0].Spec.Template.Spec.Containers[0].Image = "registry.k8s.io/nfd/node-feature-discovery:v0.14.2"
		}, "nfd-labels-vanish", "", "v0.14.2"},
		"InfiniBand with 26.3.1": {func(s *Seen) {
			s.Deployments[0] = operatorAt("gpu-operator", "v26.3.1")
			s.Nodes[0].Status.Capacity["rdma/hca_shared"] = list("x", 1)["x"]
		}, "rdma-devices-all", "", "v26.3.1"},
		// NVIDIA/gpu-operator#1109
		"toolkit 1.17.0": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Image = "nvcr.io/nvidia/k8s/container-toolkit:v1.17.0-ubuntu20.04"
		}, "toolkit-containerd-dump", "", "v1.17.0"},
		"toolkit 1.18.0": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Image = "m:5000/container-toolkit:v1.18.0@sha256:00"
		}, "toolkit-imports-replaced", "", "v1.18.0"},
		// NVIDIA/nvidia-container-toolkit#982, the values of case 049, and their siblings.
		"k3s's socket alone, beside Docker": {func(s *Seen) {
			toolkitEnv("CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock")(s)
			s.SecondEngines = []string{"gpu-2"}
		}, "toolkit-other-containerd", "", "CONTAINERD_CONFIG is not set, and a second containerd is on gpu-2"},
		"k3s's socket and Docker's file": {toolkitEnv("CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", "CONTAINERD_CONFIG", "/etc/containerd/config.toml"),
			"toolkit-other-containerd", "", "CONTAINERD_CONFIG /etc/containerd/config.toml"},
		"k3s's file alone": {toolkitEnv("CONTAINERD_CONFIG", "/data/k3s/agent/etc/containerd/config.toml"), "toolkit-other-containerd", "", "CONTAINERD_SOCKET is not set"},
		"a file that is none": {toolkitEnv("CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", "CONTAINERD_CONFIG", "/dev/null"),
			"toolkit-writes-nowhere", "", "/dev/null"},
		// NVIDIA/gpu-operator#992
		"toolkit writes the template": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONTAINERD_CONFIG", Value: "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl"}}
		}, "containerd-template-by-toolkit", "", "config.toml.tmpl"},
	}
}

// speaking is a pod that runs and whose log ends with these lines.
func speaking(lines string) func(*Seen) {
	return func(s *Seen) { s.Tails = map[string]string{"team-a/llm-0": lines} }
}

func TestPodsThatHangOrFailGetASentence(t *testing.T) {
	lost := diag.Found("gpu-lost", "gpu-1", "0000:18:00.0: Xid 79 (fallen off the bus)")
	for name, c := range map[string]struct {
		change func(*Seen)
		code   diag.Code
		why    string
	}{
		"all is well":                   {func(*Seen) {}, "", ""},
		"a log that says nothing":       {speaking("step 12 loss 0.3\nImagePullBackOff in my own words"), "", ""},
		"NVML lost after daemon-reload": {speaking("step 12\nFailed to initialize NVML: Unknown Error\nretrying"), "nvml-lost", "it runs, and its log ends with: Failed to initialize NVML: Unknown Error"},
		"no memory to lock":             {speaking("gpu-1:31:88 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"), "memlock-low", "ibv_reg_mr"},
		"shared memory is too small":    {speaking("Bus error (core dumped)"), "shm-small", "its log ends with: Bus error"},
		"lost by its own words":         {speaking("RuntimeError: CUDA error: GPU is lost"), "gpu-lost", "GPU is lost"},
		"beside a fault": {func(s *Seen) { s.Faults = map[string][]diag.Finding{"gpu-1": {lost}} }, "gpu-lost",
			"it runs on a machine whose GPUs are at fault, its own may be among them: 0000:18:00.0: Xid 79"},
		"failed beside a fault": {func(s *Seen) {
			ended("unspecified launch failure")(s)
			s.Pods = s.Pods[1:]
			s.Faults = map[string][]diag.Finding{"gpu-2": {lost}}
		}, "gpu-lost", "it failed on a machine whose GPUs are at fault (0000:18:00.0: Xid 79 (fallen off the bus)): container train: exit 1"},
		"an image too new for the driver": {func(s *Seen) {
			ended("unknown error")(s)
			s.Pods = s.Pods[1:]
			s.Unfit = func(_, node string) string { return "CUDA 13.0 needs driver 580, " + node + " has 535.104.05" }
		}, "smoke-image-too-new", "CUDA 13.0 needs driver 580, gpu-2 has 535.104.05"},
		"words of its own come first": {func(s *Seen) {
			ended("CUDA driver version is insufficient for CUDA runtime version")(s)
			s.Pods = s.Pods[1:]
			s.Unfit = func(string, string) string { return "never asked" }
		}, "cuda-insufficient", "exit 1"},
	} {
		seen := healthy()
		c.change(&seen)
		got := Reasons(seen)
		if c.code == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Code != c.code || !strings.Contains(got[0].Why, c.why) {
			t.Errorf("%s: %+v, want %s: %s", name, got, c.code, c.why)
		}
	}
	for _, code := range spoken() {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

// What fits a hidden finding still is a pod's reason.
func TestReasonsAreThereThoughTheFindingIsHidden(t *testing.T) {
	s := healthy()
	s.Pods = s.Pods[1:]
	for i := range s.Nodes[:2] {
		s.Nodes[i].Status.Capacity, s.Nodes[i].Status.Allocatable, s.Nodes[i].Labels = nil, nil, nil
	}
	pending("nvidia.com/gpu", 1)(&s)
	for _, f := range diag.Reduce(Findings(s)) {
		if f.Code != "nfd-labels-missing" {
			t.Errorf("%+v", f)
		}
	}
	if got := Reasons(s); len(got) != 1 || got[0].Pod != "team-a/want" || got[0].Why != "no node of the cluster offers nvidia.com/gpu" {
		t.Errorf("%+v", got)
	}
}

func TestATolerationLetsPodsIn(t *testing.T) {
	s := healthy()
	s.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	for o, in := range map[corev1.Toleration]bool{
		{Key: "team", Operator: corev1.TolerationOpExists}:                                      true,
		{Operator: corev1.TolerationOpExists}:                                                   true,
		{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}:                         true,
		{Key: "team", Value: "b"}:                                                               false,
		{Key: "team", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}: false,
	} {
		p := gpuPod("want", "", 2)
		p.Spec.Tolerations = []corev1.Toleration{o}
		code, why := WhyNot(&p, s)
		if (code == "") != in {
			t.Errorf("%+v: %s %s", o, code, why)
		}
	}
}

func TestVersionsOfImages(t *testing.T) {
	for image, want := range map[string]string{"a/b:v1.2.3": "v1.2.3", "m:5000/a": "", "m:5000/a:v1@sha256:0": "v1", "a": ""} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
	if !older("v26.3.1", "v26.3.3") || older("v26.7.0", "v26.3.3") || older("v0.16.2", "v0.16.2") || !older("v0.9.9-x", "v0.16.2") {
		t.Error("order of versions")
	}
}
