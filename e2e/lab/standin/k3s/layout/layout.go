// Package layout names the files and directories of k3s, as sections 1.2 to
// 1.6 of the recorded facts about k3s list them.
package layout

import "path/filepath"

// Places outside the data directory.
const (
	DefaultDataDir = "/var/lib/rancher/k3s"
	ConfigFile     = "/etc/rancher/k3s/config.yaml"
	Registries     = "/etc/rancher/k3s/registries.yaml"
	Kubeconfig     = "/etc/rancher/k3s/k3s.yaml"
	NodePassword   = "/etc/rancher/node/password"
	NodeID         = "/etc/rancher/node/id"
	RunDir         = "/run/k3s"
	ContainerdRun  = "/run/k3s/containerd"
	ContainerdSock = "/run/k3s/containerd/containerd.sock"
	SubnetFile     = "/run/flannel/subnet.env"
	KubeletDir     = "/var/lib/kubelet"
)

// Ports of one server.
const (
	SupervisorPort = 6443 // supervisor and API behind one listener
	LocalPort      = 6444 // API server on a server, load balancer on an agent
)

// Data is a k3s data directory.
type Data string

// Server is the path of a file below the server directory.
func (d Data) Server(elem ...string) string {
	return filepath.Join(append([]string{string(d), "server"}, elem...)...)
}

// TLS is the path of a file below server/tls.
func (d Data) TLS(elem ...string) string {
	return filepath.Join(append([]string{string(d), "server", "tls"}, elem...)...)
}

// Cred is the path of a file below server/cred.
func (d Data) Cred(elem ...string) string {
	return filepath.Join(append([]string{string(d), "server", "cred"}, elem...)...)
}

// Agent is the path of a file below the agent directory.
func (d Data) Agent(elem ...string) string {
	return filepath.Join(append([]string{string(d), "agent"}, elem...)...)
}

// CNI is the stable directory of CNI plugins.
func (d Data) CNI() string { return filepath.Join(string(d), "data", "cni") }
