// Package k3s installs, joins, changes and removes k3s on one machine: what
// its files say (pure rendering), what is pending (pure planning) and the
// scripts that make it so.
//
// Facts come from k3s-io/k3s install.sh, pkg/cli/cmds, pkg/configfilearg,
// pkg/agent/containerd and docs.k3s.io, releases 1.31 to 1.37, and from
// watching k3s v1.36.3 run.
package k3s

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Paths of k3s's own and of the files this package lays beside them.
const (
	BinDir          = "/usr/local/bin"
	Binary          = BinDir + "/k3s"
	ConfigDir       = "/etc/rancher/k3s"
	UserConfig      = ConfigDir + "/config.yaml"
	DropInDir       = UserConfig + ".d"
	OwnConfig       = DropInDir + "/50-gpuctl.yaml"
	RegistriesFile  = ConfigDir + "/registries.yaml"
	ServerTokenFile = ConfigDir + "/gpuctl-server-token"
	AgentTokenFile  = ConfigDir + "/gpuctl-agent-token"
	Kubeconfig      = ConfigDir + "/k3s.yaml"
	DefaultDataDir  = "/var/lib/rancher/k3s"

	containerdSocket = "/run/k3s/containerd/containerd.sock"

	unitDir = "/etc/systemd/system"
	// unproven keeps workloads away from GPUs that have not passed their smoke test.
	unproven = "gpuctl.dev/unproven=:NoSchedule"
)

// Datastores a first server can start with.
const (
	Etcd   = "etcd"
	SQLite = "sqlite"
)

// Proxy is the HTTP proxy k3s and containerd use; empty fields are not set.
type Proxy struct{ HTTP, HTTPS, No string }

// Want is what k3s shall be on one machine.
type Want struct {
	// Machine is the name in plans; NodeName the name in Kubernetes (the same unless said).
	Machine, NodeName string
	Role              inventory.Role
	// ClusterID tells this cluster from all others; empty lays no ClusterFile.
	ClusterID string
	// Version is a release tag: "v1.36.3+k3s1".
	Version string
	// SHA256 of the binary for this machine's architecture, in hex; empty when the set does not know the version.
	SHA256 string
	// Source is the base URL of releases; <Source>/<version>/k3s is fetched.
	Source string
	// Mirror is how to be let into Source.
	Mirror source.Source
	// Bundle is the offline bundle that the binary comes from; empty means Source.
	Bundle string
	// ServerURL is "https://host:6443" of a server to join; empty on the first server only.
	ServerURL string
	// AgentToken is the token agents must have, where it is already known; drift shows then.
	AgentToken string
	// OnlyServer: there is no other server, whose members of etcd would count.
	OnlyServer bool
	// Datastore of the first server: Etcd or SQLite.
	Datastore string
	// NodeIP, ExternalIP, Interface and Backend are the network; empty leaves k3s's default. NodeIP may be one of each family, with a comma between.
	NodeIP, ExternalIP, Interface, Backend string
	// FlannelExternal: nodes reach each other by their external addresses (servers).
	FlannelExternal bool
	// Why says where the network's values come from, a line for each; for people, never written.
	Why []string
	// Chosen is the same in short, for whoever reads only the plan.
	Chosen []string
	// EmbeddedRegistry lets nodes give each other images (servers).
	EmbeddedRegistry bool
	// TLSSANs are names and addresses to add to the API's certificate (servers).
	TLSSANs []string
	// Disable lists packaged components to leave out (servers).
	Disable []string
	// Labels and Taints are set when the node registers; Unproven adds the taint that the smoke test takes away.
	Labels   map[string]string
	Taints   []string
	Unproven bool
	// DataDir is where k3s keeps its data; empty means DefaultDataDir.
	DataDir string
	// Mount is where a disk with that data is mounted, which k3s must wait for; empty means none.
	Mount string
	// Extra are the user's own keys for this role (config.server or config.agent).
	Extra map[string]any
	Proxy Proxy
	// ImageMirror is the base URL that serves the well-known registries under their names; empty means none.
	ImageMirror string
	// Registries is the user's own registries.yaml, merged under the mirror.
	Registries []byte
	// Beside are files that Registries names: certificates of registries and keys for them.
	Beside []File
	// Secrets stand in Extra, Registries and Beside; they are masked in what a machine says.
	Secrets []string
}

// Server reports whether the machine runs the control plane.
func (w Want) Server() bool { return w.Role == inventory.Server }

// First reports whether the machine starts the cluster instead of joining one.
func (w Want) First() bool { return w.Server() && w.ServerURL == "" }

// Unit is the systemd unit's name without suffix: "k3s" or "k3s-agent".
func (w Want) Unit() string {
	if w.Server() {
		return "k3s"
	}
	return "k3s-agent"
}

// Data returns the data directory.
func (w Want) Data() string {
	if w.DataDir == "" {
		return DefaultDataDir
	}
	return path.Clean(w.DataDir)
}

func (w Want) node() string {
	if w.NodeName != "" {
		return w.NodeName
	}
	return w.Machine
}

// Check returns why the wish cannot be carried out, all reasons at once.
func (w Want) Check() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if w.Machine == "" {
		fail("machine has no name")
	}
	if _, ok := minor(w.Version); !ok {
		fail("k3s version %q is not of the form v1.36.3+k3s1", w.Version)
	}
	// A server: without a token, or an agent without a URL, starts something
	// that is not a member of the cluster (k3s-io/k3s pkg/cluster/managed.go).
	if !w.Server() && w.ServerURL == "" {
		fail("an agent needs the URL of a server")
	}
	if w.ServerURL != "" && !strings.HasPrefix(w.ServerURL, "https://") {
		fail("server URL %q must begin with https://", w.ServerURL)
	}
	if w.First() && w.Datastore != Etcd && w.Datastore != SQLite {
		fail("datastore %q is neither etcd nor sqlite", w.Datastore)
	}
	if !safeDataDir(w.Data()) {
		fail("data directory %q must be absolute and a folder of its own, such as /data/k3s", w.DataDir)
	}
	for _, v := range []string{w.Proxy.HTTP, w.Proxy.HTTPS, w.Proxy.No, w.Data(), w.Version, w.ServerURL} {
		if strings.ContainsAny(v, "'\"\\\n ") {
			fail("%q must not contain quotes, backslashes or spaces", v)
		}
	}
	if _, err := w.registries(); err != nil {
		fail("kubernetes.registries: %w", err)
	}
	return append(errs, CheckConfig(w.Role, w.Extra)...)
}

// safeDataDir keeps a reset from emptying a folder that others use: the data
// directory must be absolute and at least two levels deep, or new at the root.
func safeDataDir(dir string) bool {
	if !path.IsAbs(dir) || dir == "/" {
		return false
	}
	if strings.Count(dir, "/") > 1 {
		return !slices.Contains([]string{"/var/lib", "/var/log", "/usr/local", "/usr/lib", "/usr/bin", "/home/ubuntu"}, dir)
	}
	return strings.Contains(dir, "k3s")
}

// minor returns 36 for "v1.36.3+k3s1".
func minor(version string) (int, bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v1."), ".", 2)
	if !strings.HasPrefix(version, "v1.") || len(parts) != 2 || !strings.Contains(parts[1], "+k3s") {
		return 0, false
	}
	n, err := strconv.Atoi(parts[0])
	return n, err == nil
}
