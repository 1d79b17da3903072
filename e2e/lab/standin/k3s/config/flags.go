package config

// Kind is the type of a flag's value.
type Kind int

const (
	String Kind = iota // one value, the last one given counts
	Bool               // present means true
	List               // may be repeated
)

// Role says which command knows a flag.
type Role int

const (
	Server Role = 1 << iota
	Agent
	Both = Server | Agent
)

// Flag is one option of `k3s server` or `k3s agent`.
type Flag struct {
	Name    string
	Short   string // one letter, or empty
	Env     string
	Kind    Kind
	Role    Role
	Default string
	Split   bool // k3s itself splits the values at commas
}

// Flags are the options that k3s knows. The stand-in reads only some of them
// and takes the others without effect, so that a configuration which k3s
// accepts is accepted here too, and one that k3s refuses is refused.
// Source: k3s pkg/cli/cmds/{server,agent,root,log,config}.go.
func Flags() []Flag {
	flags := []Flag{
		{Name: "config", Short: "c", Env: "K3S_CONFIG_FILE", Role: Both},
		{Name: "data-dir", Short: "d", Env: "K3S_DATA_DIR", Role: Both, Default: "/var/lib/rancher/k3s"},
		{Name: "token", Short: "t", Env: "K3S_TOKEN", Role: Both},
		{Name: "token-file", Env: "K3S_TOKEN_FILE", Role: Both},
		{Name: "server", Short: "s", Env: "K3S_URL", Role: Both},
		{Name: "agent-token", Env: "K3S_AGENT_TOKEN", Role: Server},
		{Name: "agent-token-file", Env: "K3S_AGENT_TOKEN_FILE", Role: Server},
		{Name: "cluster-init", Env: "K3S_CLUSTER_INIT", Kind: Bool, Role: Server},
		{Name: "cluster-reset", Env: "K3S_CLUSTER_RESET", Kind: Bool, Role: Server},
		{Name: "cluster-reset-restore-path", Env: "K3S_CLUSTER_RESET_RESTORE_PATH", Role: Server},
		{Name: "tls-san", Kind: List, Role: Server, Split: true},
		{Name: "cluster-cidr", Kind: List, Role: Server, Split: true, Default: "10.42.0.0/16"},
		{Name: "service-cidr", Kind: List, Role: Server, Split: true, Default: "10.43.0.0/16"},
		{Name: "cluster-dns", Kind: List, Role: Server, Split: true},
		{Name: "cluster-domain", Role: Server, Default: "cluster.local"},
		{Name: "service-node-port-range", Role: Server, Default: "30000-32767"},
		{Name: "flannel-backend", Role: Server, Default: "vxlan"},
		{Name: "write-kubeconfig", Short: "o", Env: "K3S_KUBECONFIG_OUTPUT", Role: Server},
		{Name: "write-kubeconfig-mode", Env: "K3S_KUBECONFIG_MODE", Role: Server},
		{Name: "write-kubeconfig-group", Env: "K3S_KUBECONFIG_GROUP", Role: Server},
		{Name: "disable", Kind: List, Role: Server, Split: true},
		{Name: "advertise-address", Role: Server},
		{Name: "system-default-registry", Env: "K3S_SYSTEM_DEFAULT_REGISTRY", Role: Server},
		{Name: "secrets-encryption", Kind: Bool, Role: Server},
		{Name: "kube-apiserver-arg", Kind: List, Role: Server},
		{Name: "kube-controller-manager-arg", Kind: List, Role: Server},
		{Name: "kube-scheduler-arg", Kind: List, Role: Server},
		{Name: "etcd-arg", Kind: List, Role: Server},

		{Name: "node-name", Env: "K3S_NODE_NAME", Role: Both},
		{Name: "with-node-id", Kind: Bool, Role: Both},
		{Name: "node-ip", Short: "i", Kind: List, Role: Both, Split: true},
		{Name: "node-external-ip", Kind: List, Role: Both, Split: true},
		{Name: "node-label", Kind: List, Role: Both},
		{Name: "node-taint", Kind: List, Role: Both},
		{Name: "default-runtime", Role: Both},
		{Name: "private-registry", Role: Both, Default: "/etc/rancher/k3s/registries.yaml"},
		{Name: "pause-image", Role: Both, Default: "rancher/mirrored-pause:3.6"},
		{Name: "snapshotter", Role: Both, Default: "overlayfs"},
		{Name: "flannel-iface", Role: Both},
		{Name: "resolv-conf", Env: "K3S_RESOLV_CONF", Role: Both},
		{Name: "protect-kernel-defaults", Kind: Bool, Role: Both},
		{Name: "kubelet-arg", Kind: List, Role: Both},
		{Name: "kube-proxy-arg", Kind: List, Role: Both},
		{Name: "debug", Env: "K3S_DEBUG", Kind: Bool, Role: Both},
		{Name: "disable-default-registry-endpoint", Kind: Bool, Role: Both},
		{Name: "lb-server-port", Env: "K3S_LB_SERVER_PORT", Role: Both, Default: "6444"},
		{Name: "disable-kube-proxy", Kind: Bool, Role: Server},
		{Name: "disable-scheduler", Kind: Bool, Role: Server},
		{Name: "disable-cloud-controller", Kind: Bool, Role: Server},
	}
	for _, n := range ignoredStrings {
		flags = append(flags, Flag{Name: n, Role: Server})
	}
	for _, n := range ignoredBools {
		flags = append(flags, Flag{Name: n, Kind: Bool, Role: Server})
	}
	for _, n := range ignoredLists {
		flags = append(flags, Flag{Name: n, Kind: List, Role: Server})
	}
	for _, n := range ignoredBothStrings {
		flags = append(flags, Flag{Name: n, Role: Both})
	}
	for _, n := range ignoredBothBools {
		flags = append(flags, Flag{Name: n, Kind: Bool, Role: Both})
	}
	return flags
}

// The options below are taken without effect.
var (
	ignoredStrings = [...]string{
		"datastore-endpoint", "datastore-cafile", "datastore-certfile",
		"datastore-keyfile", "https-listen-port", "supervisor-port", "apiserver-port",
		"apiserver-bind-address", "advertise-port", "egress-selector-mode", "servicelb-namespace",
		"write-kubeconfig-name", "default-local-storage-path", "secrets-encryption-provider",
		"helm-job-image", "etcd-snapshot-name", "etcd-snapshot-schedule-cron",
		"etcd-snapshot-retention", "etcd-snapshot-reconcile-interval", "etcd-snapshot-dir",
		"etcd-s3-endpoint", "etcd-s3-endpoint-ca", "etcd-s3-access-key", "etcd-s3-secret-key",
		"etcd-s3-session-token", "etcd-s3-bucket", "etcd-s3-bucket-lookup-type", "etcd-s3-region",
		"etcd-s3-folder", "etcd-s3-retention", "etcd-s3-proxy", "etcd-s3-config-secret", "etcd-s3-timeout",
		"tls-san-security", "kine-tls",
	}
	ignoredBools = [...]string{
		"flannel-ipv6-masq", "flannel-external-ip", "disable-network-policy", "disable-helm-controller",
		"disable-apiserver", "disable-controller-manager", "disable-etcd", "disable-agent",
		"embedded-registry", "supervisor-metrics", "rootless", "etcd-expose-metrics",
		"etcd-disable-snapshots", "etcd-snapshot-compress", "etcd-s3", "etcd-s3-skip-ssl-verify",
		"etcd-s3-insecure",
	}
	ignoredLists = [...]string{
		"kube-cloud-controller-manager-arg", "helm-controller-arg",
	}
	ignoredBothStrings = [...]string{
		"bind-address", "container-runtime-endpoint", "image-service-endpoint", "flannel-conf",
		"flannel-cni-conf", "vpn-auth", "vpn-auth-file", "image-credential-provider-bin-dir",
		"image-credential-provider-config", "airgap-extra-registry", "v", "vmodule", "log",
		"node-internal-dns", "node-external-dns",
	}
	ignoredBothBools = [...]string{
		"selinux", "docker", "disable-apiserver-lb", "nonroot-devices", "enable-pprof",
		"prefer-bundled-bin", "alsologtostderr",
	}
)
