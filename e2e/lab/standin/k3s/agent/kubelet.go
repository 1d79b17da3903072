package agent

import (
	"context"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/host"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// startKubelet writes the kubelet's defaults and starts it.
func (n *Node) startKubelet(ctx context.Context) error {
	dir := n.Data.Agent("etc/kubelet.conf.d")
	defaults, err := n.kubeletDefaults()
	if err != nil {
		return err
	}
	if err := files.Write(dir+"/00-k3s-defaults.conf", defaults, 0o600); err != nil {
		return err
	}
	if err := files.Dir(layout.KubeletDir, 0o750); err != nil {
		return err
	}
	flags := map[string]string{
		"cloud-provider":    "external",
		"config-dir":        dir,
		"hostname-override": n.ID.Name,
		"kubeconfig":        n.Data.Agent("kubelet.kubeconfig"),
		"node-ip":           n.ID.NodeIPs(),
		"node-labels":       strings.Join(n.Options.List("node-label"), ","),
	}
	if taints := n.Options.List("node-taint"); len(taints) > 0 {
		flags["register-with-taints"] = strings.Join(taints, ",")
	}
	if n.Options.Bool("protect-kernel-defaults") {
		flags["protect-kernel-defaults"] = "true"
	}
	args := config.Extra(flags, n.Options.List("kubelet-arg"))
	return n.Group.Run(ctx, process.Child{Name: "kubelet", Args: args})
}

// kubeletDefaults are the settings of k3s pkg/daemons/agent, and those that the
// environment asks for.
func (n *Node) kubeletDefaults() ([]byte, error) {
	resolv, err := host.ResolvConf(n.Options.String("resolv-conf"), n.Data.Agent("etc/resolv.conf"))
	if err != nil {
		return nil, err
	}
	no, yes := false, true
	c := kubeletconfig.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration"},
		CgroupDriver:             n.Env.CgroupDriver(),
		ClusterDNS:               []string{n.cluster.ClusterDNS},
		ClusterDomain:            n.cluster.ClusterDomain,
		ContainerRuntimeEndpoint: "unix://" + layout.ContainerdSock,
		EvictionHard:             map[string]string{"imagefs.available": "5%", "nodefs.available": "5%"},
		EvictionMinimumReclaim:   map[string]string{"imagefs.available": "10%", "nodefs.available": "10%"},
		FailSwapOn:               &no,
		HealthzBindAddress:       "127.0.0.1",
		ReadOnlyPort:             0,
		ResolverConfig:           &resolv,
		SerializeImagePulls:      &no,
		StaticPodPath:            n.Data.Agent("pod-manifests"),
		TLSCertFile:              n.Data.Agent("serving-kubelet.crt"),
		TLSPrivateKeyFile:        n.Data.Agent("serving-kubelet.key"),
	}
	c.Authentication.Anonymous.Enabled = &no
	c.Authentication.Webhook.Enabled = &yes
	c.Authentication.X509.ClientCAFile = n.Data.Agent("client-ca.crt")
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	if n.Env.CgroupV1 {
		c.FailCgroupV1 = &no
	}
	if n.Env.NoResource {
		c.FeatureGates = map[string]bool{"KubeletInUserNamespace": true}
	}
	return yaml.Marshal(c)
}

// startProxy starts kube-proxy.
func (n *Node) startProxy(ctx context.Context) error {
	if n.cluster.DisableKubeProxy {
		return nil
	}
	flags := map[string]string{
		"cluster-cidr":                      n.cluster.ClusterCIDR,
		"healthz-bind-address":              "127.0.0.1",
		"hostname-override":                 n.ID.Name,
		"kubeconfig":                        n.Data.Agent("kubeproxy.kubeconfig"),
		"proxy-mode":                        "iptables",
		"conntrack-max-per-core":            "0",
		"conntrack-tcp-timeout-close-wait":  "0s",
		"conntrack-tcp-timeout-established": "0s",
	}
	if n.Env.ConntrackFixed {
		flags["conntrack-min"] = "0"
	}
	return n.Group.Run(ctx, process.Child{Name: "kube-proxy", Args: config.Extra(flags, n.Options.List("kube-proxy-arg"))})
}
