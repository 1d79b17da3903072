package host

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed firewall.sh
var firewallScript string

// Files of firewalld's zones that gpuctl owns.
const (
	// PathZoneNodes lets the cluster's machines to the ports they need.
	PathZoneNodes = "/etc/firewalld/zones/gpuctl.xml"
	// PathZonePods lets pods and services everywhere on the machine.
	PathZonePods = "/etc/firewalld/zones/gpuctl-pods.xml"
)

// Open is what a machine's own firewall shall let in.
type Open struct {
	// Machines are the addresses of the other machines; Ports what they may
	// reach ("6443/tcp"); Pods the networks of pods and services.
	Machines, Ports, Pods []string
}

// UFWRules are the rules that ufw shall have, as "ufw show added" prints them
// without the first word. They carry a comment, by which they are known again.
func UFWRules(o Open) []string {
	var out []string
	for _, from := range o.Machines {
		for _, port := range o.Ports {
			number, proto, _ := strings.Cut(port, "/")
			out = append(out, fmt.Sprintf("allow from %s to any port %s proto %s comment 'gpuctl'", from, number, proto))
		}
	}
	for _, pods := range o.Pods {
		out = append(out, fmt.Sprintf("allow from %s comment 'gpuctl'", pods))
	}
	return out
}

// ZoneFiles are the files of firewalld, by path. A zone of sources takes in
// what comes from them, whatever zone the interface is in; SSH stays open.
func ZoneFiles(o Open) map[string][]byte {
	var nodes, pods bytes.Buffer
	nodes.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- Written by gpuctl. -->\n<zone>\n  <short>gpuctl</short>\n  <service name=\"ssh\"/>\n")
	for _, port := range o.Ports {
		number, proto, _ := strings.Cut(port, "/")
		fmt.Fprintf(&nodes, "  <port port=\"%s\" protocol=\"%s\"/>\n", number, proto)
	}
	for _, from := range o.Machines {
		fmt.Fprintf(&nodes, "  <source address=\"%s\"/>\n", from)
	}
	nodes.WriteString("</zone>\n")
	pods.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- Written by gpuctl. -->\n<zone target=\"ACCEPT\">\n  <short>gpuctl-pods</short>\n")
	for _, from := range o.Pods {
		fmt.Fprintf(&pods, "  <source address=\"%s\"/>\n", from)
	}
	pods.WriteString("</zone>\n")
	return map[string][]byte{PathZoneNodes: nodes.Bytes(), PathZonePods: pods.Bytes()}
}

// FirewallID is the action after which the machine's firewall lets the cluster in.
func FirewallID(machine string) string { return machine + "/host-firewall" }

// opened says whether an active firewall has all the rules that are asked for.
func opened(want Want, seen Facts) (reasons []string) {
	f := seen.Firewall.Value
	if want.Open == nil || !seen.Firewall.Has() {
		return nil
	}
	if f.UFW {
		rules := UFWRules(*want.Open)
		missing, more := 0, 0
		for _, r := range rules {
			if !slices.Contains(f.Rules, r) {
				missing++
			}
		}
		for _, r := range f.Rules {
			if !slices.Contains(rules, r) {
				more++
			}
		}
		if missing+more > 0 {
			reasons = append(reasons, fmt.Sprintf("ufw lacks %d rules and has %d of a cluster that was", missing, more))
		}
	}
	if f.Firewalld {
		zones := ZoneFiles(*want.Open)
		reasons = append(reasons, fileReason(want.Key, seen, PathZoneNodes, zones[PathZoneNodes])...)
		reasons = append(reasons, fileReason(want.Key, seen, PathZonePods, zones[PathZonePods])...)
	}
	return reasons
}

// firewallAction opens an active ufw or firewalld for the cluster, and for nobody else.
func firewallAction(want Want, seen Facts, on remote.Runner) (plan.Action, bool) {
	reasons := opened(want, seen)
	if len(reasons) == 0 {
		return plan.Action{}, false
	}
	o := *want.Open
	changes := []string{
		"from " + strings.Join(o.Machines, ", ") + ": " + strings.Join(o.Ports, " "),
		"from pods and services, " + strings.Join(o.Pods, ", ") + ": everything",
	}
	if len(o.Machines) == 0 {
		changes = changes[1:]
	}
	return plan.Action{
		ID: FirewallID(want.Machine), Machine: want.Machine, Title: "open the firewall for the cluster",
		Reason: strings.Join(reasons, "; "), Changes: changes, Timeout: 3 * time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error { return setFirewall(ctx, on, seen.Firewall.Value, &o) },
	}, true
}

// ResetPlan closes again what gpuctl opened. It is pure; needs are IDs to wait for.
func ResetPlan(machine string, seen Facts, on remote.Runner, needs ...string) []plan.Action {
	f := seen.Firewall.Value
	_, zone := seen.Files.Value[PathZoneNodes]
	if len(f.Rules) == 0 && !zone {
		return nil
	}
	return []plan.Action{{
		ID: FirewallID(machine), Machine: machine, Title: "close the firewall again", Needs: needs,
		Reason: "it has rules of gpuctl", Timeout: 3 * time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			return setFirewall(ctx, on, Firewall{UFW: len(f.Rules) > 0, Firewalld: zone}, nil)
		},
	}}
}

// setFirewall replaces gpuctl's rules by those of o, or by none.
func setFirewall(ctx context.Context, on remote.Runner, f Firewall, o *Open) error {
	var rules string
	nodes, pods := []byte{}, []byte{}
	if o != nil {
		rules = strings.Join(UFWRules(*o), "\n") + "\n"
		nodes, pods = ZoneFiles(*o)[PathZoneNodes], ZoneFiles(*o)[PathZonePods]
	}
	which := []string{}
	if f.UFW {
		which = append(which, "ufw")
	}
	if f.Firewalld {
		which = append(which, "firewalld")
	}
	_, err := on.Run(ctx, remote.Cmd{
		Name: "set firewall rules", Script: firewallScript, Sudo: true, Timeout: 2 * time.Minute,
		Args:  append([]string{strconv.Itoa(len(rules)), strconv.Itoa(len(nodes))}, which...),
		Stdin: strings.NewReader(rules + string(nodes) + string(pods)),
	})
	if err != nil {
		return fmt.Errorf("setting firewall rules: %w", err)
	}
	return nil
}
