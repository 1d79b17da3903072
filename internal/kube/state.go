package kube

import (
	"context"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// State is what the API says of a cluster at one moment.
type State struct {
	// NoAPI is why there is no API to ask; empty when it answered.
	NoAPI string `json:"noAPI,omitempty"`
	// Version is the API server's: "v1.36.3+k3s1".
	Version string `json:"version,omitempty"`
	// Nodes are sorted by name.
	Nodes []Node `json:"nodes"`
	// Pods are those that hold or ask for GPUs and have not ended.
	Pods []Pod `json:"pods"`
	// Policy is the GPU Operator's ClusterPolicy.
	Policy Policy `json:"policy"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Ready is the condition; Reason is its message when it is not true.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Since is when Ready last changed.
	Since time.Time `json:"since"`
	// Cordoned says that new pods are kept away.
	Cordoned    bool              `json:"cordoned,omitempty"`
	Server      bool              `json:"server,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []corev1.Taint    `json:"taints,omitempty"`
	// Capacity and Allocatable are the nvidia.com resources alone.
	Capacity    map[string]int64 `json:"capacity,omitempty"`
	Allocatable map[string]int64 `json:"allocatable,omitempty"`
	Kubelet     string           `json:"kubelet"`
	Runtime     string           `json:"runtime"`
	InternalIP  string           `json:"internalIP,omitempty"`
	ExternalIP  string           `json:"externalIP,omitempty"`
	Created     time.Time        `json:"created"`
}

// HasTaint reports whether the node has a taint of that key.
func (n Node) HasTaint(key string) bool {
	for _, t := range n.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

// Pod is a pod that holds GPUs.
type Pod struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Node      string           `json:"node,omitempty"`
	Phase     string           `json:"phase"`
	GPUs      map[string]int64 `json:"gpus"`
	// Managed is the value of app.kubernetes.io/managed-by.
	Managed string `json:"managed,omitempty"`
}

// Node returns the node of that name.
func (s State) Node(name string) (Node, bool) {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

// Snapshot asks the API once for everything planning needs. An API that is not
// there is a value (State.NoAPI), not an error; a certificate or login that is
// refused is an error.
func (c *Client) Snapshot(ctx context.Context) (State, error) {
	var s State
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		version, err := discovery.ToServerVersionInterfaceWithContext(c.set.Discovery()).ServerVersionWithContext(gctx)
		if err == nil {
			s.Version = version.GitVersion
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.CoreV1().Nodes().List(gctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			s.Nodes = append(s.Nodes, nodeOf(&list.Items[i]))
		}
		sort.Slice(s.Nodes, func(i, j int) bool { return s.Nodes[i].Name < s.Nodes[j].Name })
		return nil
	})
	group.Go(func() (err error) {
		s.Pods, err = c.gpuPods(gctx)
		return err
	})
	group.Go(func() (err error) {
		s.Policy, err = c.policy(gctx)
		return err
	})
	err := group.Wait()
	if ctx.Err() != nil {
		return State{}, ctx.Err()
	}
	if IsNoAPI(err) {
		return State{NoAPI: err.Error()}, nil
	}
	if err != nil {
		return State{}, err
	}
	return s, nil
}

func nodeOf(n *corev1.Node) Node {
	out := Node{
		Name: n.Name, UID: string(n.UID), Cordoned: n.Spec.Unschedulable,
		Labels: n.Labels, Annotations: n.Annotations, Taints: n.Spec.Taints,
		Capacity: nvidia(n.Status.Capacity), Allocatable: nvidia(n.Status.Allocatable),
		Kubelet: n.Status.NodeInfo.KubeletVersion, Runtime: n.Status.NodeInfo.ContainerRuntimeVersion,
		Created: n.CreationTimestamp.Time, Since: n.CreationTimestamp.Time, Reason: "the kubelet has not reported yet",
	}
	_, out.Server = n.Labels["node-role.kubernetes.io/control-plane"]
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			out.Ready = cond.Status == corev1.ConditionTrue
			out.Since = cond.LastTransitionTime.Time
			out.Reason = strings.TrimSpace(cond.Reason + ": " + cond.Message)
		}
	}
	if out.Ready {
		out.Reason = ""
	}
	for _, a := range n.Status.Addresses {
		switch {
		case a.Type == corev1.NodeInternalIP && out.InternalIP == "":
			out.InternalIP = a.Address
		case a.Type == corev1.NodeExternalIP && out.ExternalIP == "":
			out.ExternalIP = a.Address
		}
	}
	return out
}

// nvidia takes the resources of NVIDIA's device plugin: nvidia.com/gpu,
// nvidia.com/gpu.shared, nvidia.com/mig-1g.5gb.
func nvidia(list corev1.ResourceList) map[string]int64 {
	var out map[string]int64
	for name, quantity := range list {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			if out == nil {
				out = map[string]int64{}
			}
			out[string(name)] = quantity.Value()
		}
	}
	return out
}
