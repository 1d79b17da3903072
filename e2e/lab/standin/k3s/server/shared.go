package server

import (
	"context"
	"encoding/base64"
	"net"
	"os"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"k8s.io/client-go/kubernetes"
)

// shared is the answer of /v1-k3s/config: the keys that were seen there, with
// the values that mean something here.
func (s *Server) shared() map[string]any {
	_, pods, _ := net.ParseCIDR(s.Options.First("cluster-cidr")) // checked at start
	psk, _ := os.ReadFile(s.Data.Cred("ipsec.psk"))              // an unreadable one is left empty
	answer := map[string]any{
		"ClusterIPRange": ipNet(pods), "ClusterIPRanges": []any{ipNet(pods)},
		"ServiceIPRange": ipNet(s.serviceCIDR), "ServiceIPRanges": []any{ipNet(s.serviceCIDR)},
		"ClusterCIDR": pods.String(), // the stand-in's own key
		"ClusterDNS":  s.dns, "ClusterDNSs": []string{s.dns}, "ClusterDomain": s.domain,
		"FlannelBackend": s.Options.String("flannel-backend"),
		"AdvertiseIP":    s.advertised(), "AdvertisePort": 6443,
		"HTTPSPort": 6443, "SupervisorPort": 6443, "APIServerPort": 6444,
		"DataDir": s.Data.Server(), "ServerNodeName": s.ID.Name,
		"ServiceNodePortRange":  s.Options.String("service-node-port-range"),
		"EgressSelectorMode":    "agent",
		"EncryptSecrets":        s.Options.Bool("secrets-encryption"),
		"EncryptProvider":       "aescbc",
		"DisableKubeProxy":      s.Options.Bool("disable-kube-proxy"),
		"ClusterInit":           s.Options.Bool("cluster-init"),
		"SystemDefaultRegistry": s.Options.String("system-default-registry"),
		"SANs":                  s.Options.List("tls-san"),
		"SANSecurity":           true,
		"NoLeaderElect":         !s.etcd(),
		"IPSECPSK":              strings.TrimSpace(string(psk)),
		"KubeConfigOutput":      s.Options.String("write-kubeconfig"),
		"KubeConfigMode":        s.Options.String("write-kubeconfig-mode"),
		"KubeConfigGroup":       s.Options.String("write-kubeconfig-group"),
		"ServiceLBNamespace":    "kube-system",
	}
	disables := map[string]bool{}
	for _, d := range s.Options.List("disable") {
		disables[d] = true
	}
	answer["Disables"] = disables
	for _, key := range []string{"FlannelExternalIP", "FlannelIPv6Masq", "EmbeddedRegistry", "SupervisorMetrics",
		"DisableCCM", "DisableHelmController", "DisableNPC", "DisableServiceLB", "DisableAgent", "DisableAPIServer",
		"DisableControllerManager", "DisableETCD", "DisableScheduler", "Rootless", "ClusterReset"} {
		answer[key] = false
	}
	return answer
}

func ipNet(n *net.IPNet) map[string]any {
	return map[string]any{"IP": n.IP.String(), "Mask": base64.StdEncoding.EncodeToString(n.Mask)}
}

// core is what the supervisor asks of the control plane.
type core struct {
	client kubernetes.Interface
	server *Server
}

func (c core) VerifyNode(ctx context.Context, node, password string) error {
	return cluster.VerifyNode(ctx, c.client, node, password)
}

func (c core) Bootstrap(ctx context.Context, idAndSecret string) bool {
	return cluster.Bootstrap(ctx, c.client, idAndSecret)
}

func (c core) APIServers(ctx context.Context) ([]string, error) {
	return cluster.APIServers(ctx, c.client)
}

func (c core) RotateToken(ctx context.Context, old, secret string) error {
	return c.server.rotateToken(ctx, old, secret)
}

func (c core) Members(ctx context.Context) (any, error) { return c.server.members(ctx) }
