// Package host reads what k3s wants to know of the machine it runs on, and
// sets what k3s sets on it.
package host

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Identity is how a node shows itself to the cluster.
type Identity struct {
	Name       string
	IPs        []net.IP
	ExternalIP []net.IP
	// Iface is the interface that carries pod traffic, empty for the one of
	// the first address.
	Iface string
}

// Identify resolves node name and addresses from the options.
func Identify(o *config.Options) (Identity, error) {
	id := Identity{Iface: o.String("flannel-iface")}
	name := o.String("node-name")
	if name == "" {
		hostname, err := os.Hostname()
		if err != nil {
			return id, err
		}
		name = hostname
	}
	id.Name = strings.ToLower(name)
	if o.Bool("with-node-id") {
		suffix, err := nodeID()
		if err != nil {
			return id, err
		}
		id.Name += "-" + suffix
	}
	var err error
	if id.IPs, err = addresses(o.List("node-ip")); err != nil {
		return id, err
	}
	if id.ExternalIP, err = addresses(o.List("node-external-ip")); err != nil {
		return id, err
	}
	if len(id.IPs) == 0 {
		ip, err := defaultIP(id.Iface)
		if err != nil {
			return id, err
		}
		id.IPs = []net.IP{ip}
	}
	return id, nil
}

// IP is the node's first address.
func (id Identity) IP() net.IP { return id.IPs[0] }

// NodeIPs is the node's addresses as the kubelet takes them.
func (id Identity) NodeIPs() string { return join(id.IPs) }

// ExternalIPs is the node's outer addresses, joined by commas.
func (id Identity) ExternalIPs() string { return join(id.ExternalIP) }

func join(ips []net.IP) string {
	var texts []string
	for _, ip := range ips {
		texts = append(texts, ip.String())
	}
	return strings.Join(texts, ",")
}

func addresses(texts []string) ([]net.IP, error) {
	var ips []net.IP
	for _, t := range texts {
		ip := net.ParseIP(t)
		if ip == nil {
			return nil, fmt.Errorf("invalid ip format '%s'", t)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

// defaultIP is the first address of iface, else of the default route's interface.
func defaultIP(iface string) (net.IP, error) {
	if iface == "" {
		return utilnet.ChooseHostInterface()
	}
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("unable to find interface %s: %w", iface, err)
	}
	addrs, err := link.Addrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil {
			return ip, nil
		}
	}
	return nil, fmt.Errorf("unable to find an address of interface %s", iface)
}

// nodeID reads or makes /etc/rancher/node/id.
func nodeID() (string, error) {
	text, err := os.ReadFile(layout.NodeID)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := hexBytes(4)
	return id, writeNode(layout.NodeID, id, 0o644)
}

// Password reads or makes the node's password in /etc/rancher/node/password.
func Password() (string, error) {
	text, err := os.ReadFile(layout.NodePassword)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	password := hexBytes(16)
	return password, writeNode(layout.NodePassword, password, 0o600)
}

func writeNode(path, text string, mode os.FileMode) error {
	if err := files.Dir("/etc/rancher/node", 0o755); err != nil {
		return err
	}
	return files.Write(path, []byte(text+"\n"), mode)
}

func hexBytes(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
