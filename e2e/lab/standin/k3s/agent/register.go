package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/network"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// join waits for the Node that the kubelet makes, puts k3s's annotations and
// the labels on it, and starts the pod network once the Node has its range.
func (n *Node) join(ctx context.Context) error {
	c, err := cluster.Connect(n.Data.Agent("k3scontroller.kubeconfig"))
	if err != nil {
		return err
	}
	if _, err := cluster.WaitNode(ctx, c, n.ID.Name, func(*corev1.Node) bool { return true }); err != nil {
		return err
	}
	for {
		err := cluster.Annotate(ctx, c, n.ID.Name, n.annotations(), labels(n.Options.List("node-label")))
		if err == nil {
			break
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return fmt.Errorf("annotating node %s: %w", n.ID.Name, err)
		}
	}
	logrus.Infof("Annotations and labels have been set successfully on node: %s", n.ID.Name)
	if n.cluster.FlannelBackend == "none" {
		return nil
	}
	logrus.Infof("Starting flannel with backend %s", n.cluster.FlannelBackend)
	node, err := cluster.WaitNode(ctx, c, n.ID.Name, func(node *corev1.Node) bool { return node.Spec.PodCIDR != "" })
	if err != nil {
		return err
	}
	logrus.Infof("Flannel found PodCIDR assigned for node %s", n.ID.Name)
	pods := network.Network{
		Client:  c,
		Node:    n.ID.Name,
		IP:      n.ID.IP(),
		Iface:   n.ID.Iface,
		Cluster: n.cluster.ClusterCIDR,
		Backend: n.cluster.FlannelBackend,
		Agent:   n.Data.Agent(),
	}
	go func() {
		if err := pods.Run(ctx, node.Spec.PodCIDR); err != nil && ctx.Err() == nil {
			logrus.Errorf("flannel exited: %v", err)
		}
	}()
	return nil
}

func (n *Node) annotations() map[string]string {
	a := map[string]string{
		cluster.AnnotationInternalIP: n.ID.NodeIPs(),
		cluster.AnnotationHostname:   n.ID.Name,
		"k3s.io/node-args":           n.Options.NodeArgs(),
		"k3s.io/node-env":            config.NodeEnv(os.Environ()),
		"k3s.io/node-config-hash":    n.Options.Hash(),
	}
	if external := n.ID.ExternalIPs(); external != "" {
		a[cluster.AnnotationExternalIP] = external
	}
	return a
}

// labels turns name=value texts into a map.
func labels(texts []string) map[string]string {
	all := map[string]string{}
	for _, t := range texts {
		name, value, _ := strings.Cut(t, "=")
		all[name] = value
	}
	return all
}
