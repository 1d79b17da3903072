package doctor

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// operators are the deployments of GPU Operators.
func (e *exam) operators() []appsv1.Deployment {
	var out []appsv1.Deployment
	for _, d := range e.seen.Deployments {
		if d.Labels["app.kubernetes.io/component"] == "gpu-operator" {
			out = append(out, d)
		}
	}
	return out
}

func (e *exam) operator() {
	all := e.operators()
	switch {
	case len(all) > 1:
		var names []string
		for _, d := range all {
			names = append(names, d.Namespace+"/"+d.Name)
		}
		e.raise("operators-two", "", "%s", strings.Join(names, ", "))
	case len(all) == 0 && len(e.seen.Policies) == 0 && len(e.seen.GPUNodes) > 0:
		e.raise("operator-missing", "", "%d nodes have GPUs, there is neither operator nor ClusterPolicy", len(e.seen.GPUNodes))
	}
	for _, d := range all {
		if d.Status.AvailableReplicas == 0 {
			e.raise("operator-deployment-down", "", "%s/%s has no pod that is ready%s", d.Namespace, d.Name, e.homeless(d))
		}
	}
	if len(e.seen.Policies) > 1 {
		e.raise("operators-two", "", "%d ClusterPolicies", len(e.seen.Policies))
	}
	for _, p := range e.seen.Policies {
		switch {
		case p.Ready():
		case strings.Contains(p.Reason, "NFDLabelsMissing"):
			e.raise("nfd-labels-missing", "", "%s", p.Why())
		case strings.Contains(p.Reason, "Reconcile") && p.State != "ready", strings.Contains(p.Reason, "Error"):
			e.raise("operator-policy-error", "", "%s", p.Why())
		default:
			e.raise("operator-not-ready", "", "%s", p.Why())
		}
	}
	e.discovery()
	e.releases(all)
}

// homeless is why the scheduler has no node for a pod of a deployment, "" where it has.
func (e *exam) homeless(d appsv1.Deployment) string {
	for i := range e.seen.Pods {
		p := &e.seen.Pods[i]
		if !e.unplacedOperator(p) || p.Namespace != d.Namespace {
			continue
		}
		if why := podreason.Of(*p, e.eventsOf(p)); why != "" {
			return ": " + why
		}
	}
	return ""
}

// unplacedOperator says that a pod is the operator's own and has no node: what
// keeps it from one is told with its deployment.
func (e *exam) unplacedOperator(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && slices.ContainsFunc(e.operators(), func(d appsv1.Deployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		return err == nil && d.Namespace == p.Namespace && !selector.Empty() && selector.Matches(labels.Set(p.Labels))
	})
}

// discovery: one worker of node feature discovery for the cluster, of a release that keeps its labels.
func (e *exam) discovery() {
	var where []string
	for _, d := range e.seen.DaemonSets {
		if !strings.Contains(d.Name, "node-feature-discovery-worker") && !strings.Contains(d.Name, "nfd-worker") {
			continue
		}
		where = append(where, d.Namespace+"/"+d.Name)
		for _, c := range d.Spec.Template.Spec.Containers {
			if v := tag(c.Image); strings.HasPrefix(v, "v0.") && older(v, "v0.16.2") {
				e.raise("nfd-labels-vanish", "", "%s/%s runs node feature discovery %s", d.Namespace, d.Name, v)
			}
		}
	}
	sort.Strings(where)
	if len(where) > 1 {
		e.raise("nfd-twice", "", "%s", strings.Join(where, ", "))
	}
}

// releases looks for versions with known faults, where they matter.
func (e *exam) releases(operators []appsv1.Deployment) {
	for _, d := range operators {
		for _, c := range d.Spec.Template.Spec.Containers {
			if v := tag(c.Image); strings.HasPrefix(v, "v26.3.") && older(v, "v26.3.3") && e.rdma() {
				e.raise("rdma-devices-all", "", "operator %s gives every GPU pod all InfiniBand devices", v)
			}
		}
	}
	for _, d := range e.seen.DaemonSets {
		if !strings.Contains(d.Name, "container-toolkit") {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			switch v, _, _ := strings.Cut(tag(c.Image), "-"); v {
			case "v1.17.0":
				e.raise("toolkit-containerd-dump", "", "%s/%s runs toolkit %s", d.Namespace, d.Name, v)
			case "v1.18.0":
				e.raise("toolkit-imports-replaced", "", "%s/%s runs toolkit %s", d.Namespace, d.Name, v)
			}
			e.toolkitTarget(d.Namespace+"/"+d.Name, env(c, "CONTAINERD_SOCKET"), env(c, "CONTAINERD_CONFIG"))
		}
	}
}

func (e *exam) rdma() bool {
	for _, n := range e.seen.Nodes {
		for name := range n.Status.Capacity {
			if strings.HasPrefix(string(name), "rdma/") {
				return true
			}
		}
	}
	return false
}

func env(c corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// tag is what follows the last colon of an image's name.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndexByte(image, ':')
	if at < 0 || strings.Contains(image[at:], "/") {
		return ""
	}
	return image[at+1:]
}

// older compares versions of three numbers: "v26.3.1" with "v26.3.3".
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func numbers(version string) [3]int {
	var out [3]int
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		if n, err := strconv.Atoi(part); err == nil {
			out[i] = n
		}
	}
	return out
}
