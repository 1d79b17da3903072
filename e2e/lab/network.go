package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/dockerd"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// firstHost is the first machine's last octet; the gateway has 1.
const firstHost = 10

// Network returns a further network of the lab and makes it if it is not
// there. Machines of different networks do not reach each other; a machine in
// both is the way from one to the other. The mirror answers in all of them.
func (l *Lab) Network(ctx context.Context, name string) (machine.Network, error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return machine.Network{}, err
	}
	defer unlock()
	return l.network(ctx, "-"+name)
}

func (l *Lab) findMain(ctx context.Context) (err error) {
	l.Main, err = l.network(ctx, "")
	return err
}

func (l *Lab) network(ctx context.Context, suffix string) (machine.Network, error) {
	n := machine.Network{Name: "gpuctl-" + l.ID + suffix}
	var err error
	if n.Gateway, err = l.gateway(ctx, n.Name); err == nil {
		return n, keepSources(ctx, n.Gateway)
	}
	taken, err := l.takenSubnets(ctx)
	if err != nil {
		return n, err
	}
	for third := range 256 {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, byte(third), 0}), 24)
		if overlaps(subnet, taken) {
			continue
		}
		n.Gateway = subnet.Addr().Next().String()
		_, err = l.Engine.Run(ctx, "network", "create", "--label", dockerd.Label+"="+l.ID,
			"--opt", "com.docker.network.bridge.enable_ip_masquerade=false",
			"--subnet", subnet.String(), "--gateway", n.Gateway, n.Name)
		if err == nil {
			return n, keepSources(ctx, n.Gateway)
		}
		if !strings.Contains(err.Error(), "overlap") {
			return n, err
		}
	}
	return n, fmt.Errorf("making network %s: no /24 in 10.88.0.0/16 is free: %w", n.Name, err)
}

// keepSources removes masquerading of a lab network: machines go nowhere but to
// each other and the mirror. An engine that was killed leaves its rules, and one
// of a network that had the same addresses then hides which machine a packet is
// from. Only root can, and has an engine of its own that was killed.
func keepSources(ctx context.Context, gateway string) error {
	program, err := exec.LookPath("iptables")
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	subnet := netip.PrefixFrom(netip.MustParseAddr(gateway), 24).Masked().String()
	rules, err := exec.CommandContext(ctx, program, "-w", "-t", "nat", "-S", "POSTROUTING").Output()
	if err != nil {
		return nil // no such table: nothing is masqueraded
	}
	for _, rule := range strings.Split(string(rules), "\n") {
		words := strings.Fields(rule)
		if !strings.Contains(rule, "-s "+subnet+" ") || !slices.Contains(words, "MASQUERADE") {
			continue
		}
		words[0] = "-D"
		if out, err := exec.CommandContext(ctx, program, append([]string{"-w", "-t", "nat"}, words...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("removing %q: %w: %s", rule, err, out)
		}
	}
	return nil
}

func (l *Lab) gateway(ctx context.Context, network string) (string, error) {
	out, err := l.Engine.Run(ctx, "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Gateway}}{{end}}", network)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(out); err != nil {
		return "", fmt.Errorf("gateway of network %s: %w", network, err)
	}
	return out, nil
}

// takenSubnets are those of the engine's networks and the host's interfaces.
func (l *Lab) takenSubnets(ctx context.Context) ([]netip.Prefix, error) {
	ids, err := l.Engine.Lines(ctx, "network", "ls", "--quiet")
	if err != nil {
		return nil, err
	}
	lines, err := l.Engine.Lines(ctx, append([]string{"network", "inspect", "--format", "{{range .IPAM.Config}}{{println .Subnet}}{{end}}"}, ids...)...)
	if err != nil {
		return nil, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading the host's addresses: %w", err)
	}
	for _, a := range addresses {
		lines = append(lines, a.String())
	}
	var taken []netip.Prefix
	for _, line := range lines {
		if p, err := netip.ParsePrefix(line); err == nil {
			taken = append(taken, p.Masked())
		}
	}
	return taken, nil
}

func overlaps(p netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if p.Overlaps(t) {
			return true
		}
	}
	return false
}

// freeAddress is the lowest address of n's /24 that is in no use.
func freeAddress(n machine.Network, used []string) (string, error) {
	gateway, err := netip.ParseAddr(n.Gateway)
	if err != nil {
		return "", fmt.Errorf("choosing an address in network %s: %w", n.Name, err)
	}
	inUse := map[string]bool{}
	for _, u := range used {
		inUse[u] = true
	}
	octets := gateway.As4()
	for last := firstHost; last < 255; last++ {
		octets[3] = byte(last)
		if a := netip.AddrFrom4(octets).String(); !inUse[a] {
			return a, nil
		}
	}
	return "", fmt.Errorf("choosing an address in network %s: all are in use", n.Name)
}

func (l *Lab) removeNetworks(ctx context.Context) error {
	ids, err := l.Engine.Lines(ctx, "network", "ls", "--quiet", "--filter", "label="+dockerd.Label+"="+l.ID)
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = l.Engine.Run(ctx, append([]string{"network", "rm"}, ids...)...)
	return err
}
