package k3s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"sort"
	"strings"
)

// header marks files that are wholly ours, so that they can be told from a user's.
const header = "# Managed by gpuctl: changes made here are overwritten.\n"

// File is one file this package owns on a machine.
type File struct {
	Path string
	// Mode is what chmod takes: "0600".
	Mode    string
	Content string
	// AtStart says that k3s reads the file only when it starts.
	AtStart bool
}

// Files returns every file whose content follows from the wish alone. Tokens
// and registries.yaml are not among them: the first are secrets made on or
// read from a server, the second may be the user's.
func Files(w Want) []File {
	unit := w.Unit()
	files := []File{
		{OwnConfig, "0600", Config(w), true},
		{unitDir + "/" + unit + ".service", "0644", unitFile(w), true},
		{unitDir + "/" + unit + ".service.d/10-gpuctl.conf", "0644", unitDropIn(w), true},
		{unitDir + "/" + unit + ".service.env", "0600", envFile(w), true},
		{kubeletFile(w), "0600", kubeletConfig(), true},
		{BinDir + "/k3s-killall.sh", "0755", killallScript(w), false},
		{uninstallPath(w), "0755", uninstallScript(w), false},
	}
	if w.ClusterID != "" {
		files = append(files, File{ClusterFile, "0644", w.ClusterID + "\n", false})
	}
	return append(files, w.Beside...)
}

// Config renders the drop-in that carries everything gpuctl sets. Lists end in
// "+", so that they add to a user's config.yaml instead of replacing it.
func Config(w Want) string {
	values := map[string]any{
		"node-name":  w.node(),
		"token-file": tokenFile(w),
	}
	lists := map[string][]string{"node-label": registerLabels(w.Labels), "node-taint": taints(w)}
	set := func(key, value string) {
		if value != "" {
			values[key] = value
		}
	}
	set("node-ip", w.NodeIP)
	set("node-external-ip", w.ExternalIP)
	set("flannel-iface", w.Interface)
	set("server", w.ServerURL)
	if w.Data() != DefaultDataDir {
		values["data-dir"] = w.Data()
	}
	if !hasDropIns(w) {
		lists["kubelet-arg"] = []string{"config=" + kubeletFile(w)}
	}
	if w.Server() {
		values["agent-token-file"] = AgentTokenFile
		values["secrets-encryption"] = true
		set("flannel-backend", w.Backend)
		if w.First() && w.Datastore == Etcd {
			values["cluster-init"] = true
		}
		if w.ExternalIP != "" && w.FlannelExternal {
			values["flannel-external-ip"] = true
		}
		if w.ExternalIP != "" && w.NodeIP != "" && !w.FlannelExternal {
			// k3s would advertise the external address to the nodes, which a provider's firewall may close.
			values["advertise-address"], _, _ = strings.Cut(w.NodeIP, ",")
		}
		if w.EmbeddedRegistry {
			values["embedded-registry"] = true
		}
		lists["tls-san"], lists["disable"] = w.TLSSANs, w.Disable
	}
	mergeExtra(values, lists, w.Extra)
	return header + renderConfig(values, lists)
}

// mergeExtra adds the user's keys: lists add up, plain values win over gpuctl's.
func mergeExtra(values map[string]any, lists map[string][]string, extra map[string]any) {
	for _, key := range sortedKeys(extra) {
		texts, err := scalars(extra[key])
		if err != nil {
			continue // CheckConfig has refused it before
		}
		name := strings.TrimSuffix(key, "+")
		if IsList(name) {
			lists[name] = append(lists[name], texts...)
			if v, ok := values[name].(string); ok {
				lists[name] = append([]string{v}, lists[name]...)
				delete(values, name)
			}
			continue
		}
		switch v := extra[key].(type) {
		case bool, int, int64, uint64:
			values[name] = v
		default:
			values[name] = texts[0]
		}
	}
}

func renderConfig(values map[string]any, lists map[string][]string) string {
	var lines []string
	for key, v := range values {
		lines = append(lines, key+": "+quote(v)+"\n")
	}
	for key, items := range lists {
		items = unique(items)
		if len(items) == 0 {
			continue
		}
		var b strings.Builder
		b.WriteString(key + "+:\n")
		for _, item := range items {
			b.WriteString("  - " + quote(item) + "\n")
		}
		lines = append(lines, b.String())
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// quote writes a scalar as JSON does, which every YAML reads the same way;
// unquoted text would be up to YAML 1.1's octals, "yes" and "on".
func quote(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return strings.TrimSpace(b.String())
}

func tokenFile(w Want) string {
	if w.Server() {
		return ServerTokenFile
	}
	return AgentTokenFile
}

func taints(w Want) []string {
	out := append([]string(nil), w.Taints...)
	if w.Unproven && !w.Server() {
		out = append(out, unproven)
	}
	return out
}

// registerLabels returns the labels a node may give itself, as key=value,
// sorted. NodeRestriction refuses the registration of a kubelet that brings
// others of Kubernetes' own domains; those are set through the API.
func registerLabels(labels map[string]string) []string {
	var out []string
	for _, key := range sortedKeys(labels) {
		domain, _, _ := strings.Cut(key, "/")
		own := domain != key && (within(domain, "kubernetes.io") || within(domain, "k8s.io"))
		if own && !within(domain, "node.kubernetes.io") && !within(domain, "kubelet.kubernetes.io") {
			continue
		}
		out = append(out, key+"="+labels[key])
	}
	return out
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// hasDropIns reports whether this k3s reads A/etc/kubelet.conf.d (1.32 and later).
func hasDropIns(w Want) bool {
	n, _ := minor(w.Version)
	return n >= 32
}

func kubeletFile(w Want) string {
	if hasDropIns(w) {
		return w.Data() + "/agent/etc/kubelet.conf.d/50-gpuctl.conf"
	}
	return ConfigDir + "/gpuctl-kubelet.conf"
}

// kubeletConfig makes the kubelet end pods in order when the machine shuts
// down, so that a reboot for a driver does not cut training jobs off.
func kubeletConfig() string {
	return header + `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 60s
shutdownGracePeriodCriticalPods: 20s
`
}

// unitFile is the unit of the official install script (install.sh, release 1.33 and later).
func unitFile(w Want) string {
	command := "agent"
	if w.Server() {
		command = "server"
	}
	return `[Unit]
Description=Lightweight Kubernetes
Documentation=https://k3s.io
Wants=network-online.target
After=network-online.target

[Install]
WantedBy=multi-user.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-` + unitDir + "/" + w.Unit() + `.service.env
KillMode=process
Delegate=yes
User=root
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStartPre=-/sbin/modprobe br_netfilter
ExecStartPre=-/sbin/modprobe overlay
ExecStart=` + Binary + ` \
    ` + command + ` \

`
}

// unitDropIn lifts the limit that RDMA and pinned CUDA memory meet in pods; containers inherit it.
// A data disk that does not come up must not let k3s start a cluster anew in the folder below it.
func unitDropIn(w Want) string {
	text := header
	if w.Mount != "" {
		text += "[Unit]\nRequiresMountsFor=" + w.Mount + "\n"
	}
	return text + "[Service]\nLimitMEMLOCK=infinity\n"
}

func envFile(w Want) string {
	var b strings.Builder
	put := func(name, value string) {
		if value != "" {
			b.WriteString(name + "='" + value + "'\n")
		}
	}
	if w.Data() != DefaultDataDir {
		put("K3S_DATA_DIR", w.Data())
	}
	put("HTTP_PROXY", w.Proxy.HTTP)
	put("HTTPS_PROXY", w.Proxy.HTTPS)
	put("NO_PROXY", noProxy(w))
	return b.String()
}

// noProxy keeps the cluster's own traffic off the proxy: k3s adds service and
// pod networks by itself, but not the address of the server it joins.
func noProxy(w Want) string {
	if w.Proxy.HTTP == "" && w.Proxy.HTTPS == "" {
		return ""
	}
	out := []string{"localhost", "127.0.0.0/8", "10.42.0.0/16", "10.43.0.0/16"}
	if u, err := url.Parse(w.ServerURL); err == nil && u.Hostname() != "" {
		out = append(out, u.Hostname())
	}
	if strings.Contains(w.NodeIP, ":") {
		out = append(out, "::1", "fd00:42::/56", "fd00:43::/112") // k3s's own networks of IPv6
	}
	out = append(out, strings.Split(w.NodeIP, ",")...)
	return strings.Join(unique(append(out, strings.Split(w.Proxy.No, ",")...)), ",")
}

func unique(items []string) []string {
	seen := map[string]bool{"": true}
	var out []string
	for _, s := range items {
		if s = strings.TrimSpace(s); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
