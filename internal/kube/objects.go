package kube

import (
	"context"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// Objects are the API's objects as they are, for whoever looks for faults.
// Secrets and ConfigMaps are never among them.
type Objects struct {
	// Version is the API server's: "v1.36.3+k3s1".
	Version     string
	Nodes       []corev1.Node
	Pods        []corev1.Pod
	Events      []corev1.Event
	DaemonSets  []appsv1.DaemonSet
	Deployments []appsv1.Deployment
	// Policies are all ClusterPolicies; one is right.
	Policies []Policy
}

// Objects asks the API once. An API that is not there is an error that IsNoAPI knows.
func (c *Client) Objects(ctx context.Context) (Objects, error) {
	var o Objects
	group, gctx := errgroup.WithContext(ctx)
	all := metav1.ListOptions{}
	group.Go(func() error {
		v, err := discovery.ToServerVersionInterfaceWithContext(c.set.Discovery()).ServerVersionWithContext(gctx)
		if err == nil {
			o.Version = v.GitVersion
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.CoreV1().Nodes().List(gctx, all)
		if err == nil {
			o.Nodes = list.Items
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.CoreV1().Pods("").List(gctx, all)
		if err == nil {
			o.Pods = list.Items
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.CoreV1().Events("").List(gctx, all)
		if err == nil {
			o.Events = list.Items
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.AppsV1().DaemonSets("").List(gctx, all)
		if err == nil {
			o.DaemonSets = list.Items
		}
		return err
	})
	group.Go(func() error {
		list, err := c.set.AppsV1().Deployments("").List(gctx, all)
		if err == nil {
			o.Deployments = list.Items
		}
		return err
	})
	group.Go(func() error {
		list, err := c.dyn.Resource(policies()).List(gctx, all)
		if apierrors.IsNotFound(err) {
			return nil // no such resource: no operator
		}
		if err == nil {
			for i := range list.Items {
				o.Policies = append(o.Policies, policyOf(&list.Items[i]))
			}
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return Objects{}, err
	}
	return o, nil
}

// GPURequests is what the scheduler counts of a pod's nvidia.com resources.
func GPURequests(spec *corev1.PodSpec) map[string]int64 { return requests(spec) }

// GPUResources takes the nvidia.com resources of a list.
func GPUResources(list corev1.ResourceList) map[string]int64 { return nvidia(list) }
