package k3s

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag/nearest"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// agentKeys are the long flags of "k3s agent" (pkg/cli/cmds/agent.go, 1.31 to
// 1.37). An agent that meets any other key in its configuration exits and is
// restarted for ever; a server only warns and ignores it.
const agentKeys = `server token token-file node-name with-node-id node-ip node-external-ip node-internal-dns
node-external-dns node-label node-taint lb-server-port selinux protect-kernel-defaults docker
container-runtime-endpoint image-service-endpoint default-runtime private-registry pause-image snapshotter
flannel-iface flannel-conf flannel-cni-conf vpn-auth vpn-auth-file resolv-conf kubelet-arg kube-proxy-arg
image-credential-provider-bin-dir image-credential-provider-config disable-apiserver-lb
disable-default-registry-endpoint nonroot-devices enable-pprof bind-address airgap-extra-registry data-dir
debug prefer-bundled-bin v vmodule log alsologtostderr config rootless`

// serverOnlyKeys are the flags of "k3s server" beyond those it shares with the agent (pkg/cli/cmds/server.go).
const serverOnlyKeys = `agent-token agent-token-file cluster-init cluster-reset cluster-reset-restore-path
datastore-endpoint datastore-cafile datastore-certfile datastore-keyfile https-listen-port supervisor-port
apiserver-port apiserver-bind-address advertise-address advertise-port tls-san tls-san-security cluster-cidr
service-cidr cluster-dns cluster-domain service-node-port-range flannel-backend flannel-ipv6-masq
flannel-external-ip egress-selector-mode servicelb-namespace write-kubeconfig write-kubeconfig-mode
write-kubeconfig-group write-kubeconfig-name disable disable-scheduler disable-cloud-controller
disable-kube-proxy disable-network-policy disable-helm-controller disable-apiserver disable-controller-manager
disable-etcd disable-agent kube-apiserver-arg etcd-arg kube-controller-manager-arg kube-scheduler-arg
kube-cloud-controller-manager-arg helm-controller-arg default-local-storage-path embedded-registry
supervisor-metrics secrets-encryption secrets-encryption-provider system-default-registry helm-job-image
etcd-expose-metrics etcd-disable-snapshots etcd-snapshot-name etcd-snapshot-schedule-cron
etcd-snapshot-retention etcd-snapshot-reconcile-interval etcd-snapshot-dir etcd-snapshot-compress etcd-s3
etcd-s3-endpoint etcd-s3-endpoint-ca etcd-s3-skip-ssl-verify etcd-s3-access-key etcd-s3-secret-key
etcd-s3-session-token etcd-s3-bucket etcd-s3-bucket-lookup-type etcd-s3-region etcd-s3-folder
etcd-s3-retention etcd-s3-proxy etcd-s3-config-secret etcd-s3-insecure etcd-s3-timeout`

// agentOnlyKeys are flags of the agent that a server does not have.
const agentOnlyKeys = `disable-apiserver-lb`

// listKeys may be given more than once: values of several files add up when the key ends in "+".
const listKeys = `tls-san disable node-label node-taint node-ip node-external-ip node-internal-dns
node-external-dns cluster-cidr service-cidr cluster-dns kubelet-arg kube-proxy-arg kube-apiserver-arg etcd-arg
kube-controller-manager-arg kube-scheduler-arg kube-cloud-controller-manager-arg helm-controller-arg
airgap-extra-registry`

// reserved says why a key may not be passed through: it has a place of its own
// in gpuctl.yaml, or would undo what the tool relies on. Other keys give "".
func reserved(key string) string {
	return map[string]string{
		"token":                      "the cluster's tokens are made and kept on the machines",
		"token-file":                 "the cluster's tokens are made and kept on the machines",
		"agent-token":                "the cluster's tokens are made and kept on the machines",
		"agent-token-file":           "the cluster's tokens are made and kept on the machines",
		"server":                     "the server to join follows from machines[].role",
		"node-name":                  "use machines[].name",
		"data-dir":                   "use machines[].dataDir",
		"cluster-init":               "use kubernetes.datastore",
		"cluster-reset":              "a reset is done once by hand, never by configuration",
		"cluster-reset-restore-path": "a restore is done once by hand, never by configuration",
		"config":                     "the configuration file is fixed",
		"with-node-id":               "node names must be those of machines[].name",
		"rootless":                   "GPU nodes need root",
		"docker":                     "the NVIDIA runtime is wired into k3s's own containerd",
		"container-runtime-endpoint": "the NVIDIA runtime is wired into k3s's own containerd",
		"write-kubeconfig":           "the admin kubeconfig is read from " + Kubeconfig,
		"disable-agent":              "servers are nodes here",
	}[key]
}

// KnownKeys returns the configuration keys k3s accepts in a role, sorted.
func KnownKeys(role inventory.Role) []string {
	keys := strings.Fields(agentKeys)
	if role == inventory.Server {
		keys = append(keys, strings.Fields(serverOnlyKeys)...)
		keys = without(keys, strings.Fields(agentOnlyKeys))
	}
	sort.Strings(keys)
	return keys
}

// IsList reports whether a key takes several values.
func IsList(key string) bool { return slices.Contains(strings.Fields(listKeys), key) }

// CheckConfig returns what is wrong with the user's own keys for a role: keys
// k3s does not know (with the nearest name), keys that belong to gpuctl, and
// values that are neither a scalar nor a list of scalars.
func CheckConfig(role inventory.Role, extra map[string]any) []error {
	var errs []error
	known := KnownKeys(role)
	for _, key := range sortedKeys(extra) {
		name := strings.TrimSuffix(key, "+")
		switch {
		case !slices.Contains(known, name):
			errs = append(errs, unknownKey(role, name, known))
			continue
		case reserved(name) != "":
			errs = append(errs, fmt.Errorf("config.%s.%s is set by gpuctl: %s", role, name, reserved(name)))
			continue
		}
		values, err := scalars(extra[key])
		if _, quoted := extra[key].(string); name == "write-kubeconfig-mode" && !quoted {
			// YAML reads 0644 as octal, k3s then sees 420 and makes the file r---w---- .
			errs = append(errs, fmt.Errorf("config.%s.%s must be quoted: \"0644\"", role, name))
		} else if err != nil {
			errs = append(errs, fmt.Errorf("config.%s.%s: %w", role, name, err))
		} else if len(values) > 1 && !IsList(name) && !strings.HasPrefix(name, "vmodule") {
			errs = append(errs, fmt.Errorf("config.%s.%s takes one value, not a list", role, name))
		}
	}
	return errs
}

func unknownKey(role inventory.Role, name string, known []string) error {
	if role == inventory.Agent && slices.Contains(KnownKeys(inventory.Server), name) {
		return fmt.Errorf("config.agent.%s is a key for servers; a k3s agent does not start with it", name)
	}
	if near := nearest.Of(name, known); near != "" {
		return fmt.Errorf("config.%s.%s is not a k3s key; did you mean %s?", role, name, near)
	}
	return fmt.Errorf("config.%s.%s is not a k3s key", role, name)
}

// scalars turns a configuration value into the texts k3s will see.
func scalars(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return []string{""}, nil
	case []any:
		var out []string
		for _, item := range v {
			one, err := scalars(item)
			if err != nil || len(one) != 1 {
				return nil, fmt.Errorf("a list may hold plain values only")
			}
			out = append(out, one[0])
		}
		return out, nil
	case []string:
		return v, nil
	case string:
		return []string{v}, nil
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}, nil
	case bool, int, int64, uint64:
		return []string{fmt.Sprint(v)}, nil
	}
	return nil, fmt.Errorf("must be a plain value or a list of them, not %T", v)
}

func without(list, drop []string) []string {
	var out []string
	for _, l := range list {
		if !slices.Contains(drop, l) {
			out = append(out, l)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
