// Package network lays the pod network that flannel lays for k3s: a bridge
// cni0 on every node, and between nodes either VXLAN (device flannel.1, with
// the same Node annotations as flannel) or plain routes (host-gw).
// Source: flannel pkg/backend/{vxlan,hostgw}, k3s pkg/agent/flannel.
package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Flannel's annotations on a Node.
const (
	annotationType = "flannel.alpha.coreos.com/backend-type"
	annotationData = "flannel.alpha.coreos.com/backend-data"
	annotationIP   = "flannel.alpha.coreos.com/public-ip"
	annotationKube = "flannel.alpha.coreos.com/kube-subnet-manager"
)

// Network is the pod network of one node.
type Network struct {
	Client  kubernetes.Interface
	Node    string
	IP      net.IP
	Iface   string // empty for the interface that has IP
	Cluster string // CIDR of all pods
	Backend string // vxlan or host-gw
	Agent   string // agent directory
}

// mtuLoss is what VXLAN takes off a packet.
const mtuLoss = 50

// Run lays the network for the node's range podCIDR and follows the other
// nodes until ctx ends.
func (n *Network) Run(ctx context.Context, podCIDR string) error {
	link, err := n.link()
	if err != nil {
		return err
	}
	mtu := link.MTU
	annotations := map[string]string{
		annotationIP: n.IP.String(), annotationKube: "true", annotationType: n.Backend, annotationData: "null",
	}
	var peers peering
	switch n.Backend {
	case "vxlan":
		v, err := newVXLAN(link, n.IP, podCIDR)
		if err != nil {
			return err
		}
		peers, mtu = v, mtu-mtuLoss
		annotations[annotationData] = v.backendData()
	case "host-gw":
		peers = hostGateway{link.Index}
	default:
		return fmt.Errorf("unknown backend type: %s", n.Backend)
	}
	if err := cluster.Annotate(ctx, n.Client, n.Node, annotations, nil); err != nil {
		return err
	}
	if err := n.write(podCIDR, mtu); err != nil {
		return err
	}
	if err := masquerade(n.Cluster); err != nil {
		return err
	}
	logrus.Info("Running flannel backend.")
	n.follow(ctx, peers)
	return nil
}

// peering reaches the pods of another node.
type peering interface {
	add(p peer) error
	remove(p peer) error
}

// peer is another node, as its annotations show it.
type peer struct {
	pods string // CIDR
	ip   string
	mac  string // of its VXLAN device
}

// follow keeps the peers up to date.
func (n *Network) follow(ctx context.Context, peers peering) {
	have := map[string]peer{}
	for ctx.Err() == nil {
		want, err := n.others(ctx)
		if err == nil {
			reconcile(peers, have, want)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func reconcile(peers peering, have, want map[string]peer) {
	for name, p := range have {
		if want[name] != p {
			if err := peers.remove(p); err != nil {
				logrus.Warnf("Removing the pod network of node %s: %v", name, err)
			}
			delete(have, name)
		}
	}
	for name, p := range want {
		if have[name] == p {
			continue
		}
		if err := peers.add(p); err != nil {
			logrus.Warnf("Adding the pod network of node %s: %v", name, err)
			continue
		}
		have[name] = p
	}
}

// others are all other nodes that have a pod network.
func (n *Network) others(ctx context.Context) (map[string]peer, error) {
	nodes, err := n.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	all := map[string]peer{}
	for _, node := range nodes.Items {
		if p, ok := peerOf(&node); ok && node.Name != n.Node {
			all[node.Name] = p
		}
	}
	return all, nil
}

func peerOf(node *corev1.Node) (peer, bool) {
	var data struct{ VtepMAC string }
	_ = json.Unmarshal([]byte(node.Annotations[annotationData]), &data) // "null" without VXLAN
	p := peer{pods: node.Spec.PodCIDR, ip: node.Annotations[annotationIP], mac: data.VtepMAC}
	return p, p.pods != "" && p.ip != ""
}

// link is the interface that carries the pod network.
func (n *Network) link() (*net.Interface, error) {
	if n.Iface != "" {
		return net.InterfaceByName(n.Iface)
	}
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		addrs, err := l.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.Equal(n.IP) {
				return &l, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has the address %s", n.IP)
}

// write writes flannel's files and the CNI configuration.
func (n *Network) write(podCIDR string, mtu int) error {
	conf := fmt.Sprintf(`{"Network":%q,"EnableIPv6":false,"EnableIPv4":true,"IPv6Network":"::/0","Backend":{"Type":%q}}`, n.Cluster, n.Backend)
	if err := files.Write(n.Agent+"/etc/flannel/net-conf.json", []byte(conf), 0o644); err != nil {
		return err
	}
	gateway, err := gatewayOf(podCIDR)
	if err != nil {
		return err
	}
	subnet := fmt.Sprintf("FLANNEL_NETWORK=%s\nFLANNEL_SUBNET=%s\nFLANNEL_MTU=%d\nFLANNEL_IPMASQ=true\n", n.Cluster, gateway, mtu)
	if err := files.Dir("/run/flannel", 0o755); err != nil {
		return err
	}
	if err := files.Write(layout.SubnetFile, []byte(subnet), 0o644); err != nil {
		return err
	}
	logrus.Infof("Wrote flannel subnet file to %s", layout.SubnetFile)
	return files.Write(n.Agent+"/etc/cni/net.d/10-flannel.conflist", []byte(conflist(n.Cluster, podCIDR, mtu)), 0o644)
}

// gatewayOf is the first address of a node's range, with its length.
func gatewayOf(podCIDR string) (string, error) {
	ip, ipnet, err := net.ParseCIDR(podCIDR)
	if err != nil {
		return "", err
	}
	ip = ip.To4()
	if ip == nil {
		return "", fmt.Errorf("range %s: the stand-in's pod network is IPv4", podCIDR)
	}
	ip[3]++
	ones, _ := ipnet.Mask.Size()
	return fmt.Sprintf("%s/%d", ip, ones), nil
}

// conflist is what k3s's 10-flannel.conflist comes down to: the flannel plugin
// of k3s hands the same bridge configuration on.
func conflist(clusterCIDR, podCIDR string, mtu int) string {
	return fmt.Sprintf(`{
  "name": "cbr0",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "mtu": %d,
      "hairpinMode": true,
      "forceAddress": true,
      "isDefaultGateway": true,
      "isGateway": true,
      "ipMasq": false,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": %q}]}
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true}
    },
    {
      "type": "bandwidth",
      "capabilities": {"bandwidth": true}
    }
  ]
}
`, mtu, podCIDR, clusterCIDR)
}

// masquerade hides pods behind the node's address where they leave the pod
// network, and lets their packets through.
func masquerade(clusterCIDR string) error {
	comment := []string{"-m", "comment", "--comment", "flanneld masq"}
	rules := [][]string{
		append([]string{"nat", "POSTROUTING", "-s", clusterCIDR, "!", "-d", clusterCIDR}, append(comment, "-j", "MASQUERADE")...),
		{"filter", "FORWARD", "-s", clusterCIDR, "-m", "comment", "--comment", "flanneld forward", "-j", "ACCEPT"},
		{"filter", "FORWARD", "-d", clusterCIDR, "-m", "comment", "--comment", "flanneld forward", "-j", "ACCEPT"},
	}
	for _, r := range rules {
		rule := append([]string{r[1]}, r[2:]...)
		if exec.Command("iptables", append([]string{"-w", "-t", r[0], "-C"}, rule...)...).Run() == nil {
			continue
		}
		if out, err := exec.Command("iptables", append([]string{"-w", "-t", r[0], "-A"}, rule...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("iptables: %w: %s", err, out)
		}
	}
	return nil
}
