package host

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// parseNetwork reads one-line output of ip(8). Interfaces that a pod network
// makes (veth and the like) are left out.
func parseNetwork(text string) (Network, error) {
	var n Network
	index := map[string]int{}
	for _, line := range lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		f := strings.Fields(rest)
		switch {
		case kind == "link" && len(f) > 2:
			if i, ok := link(f); ok {
				index[i.Name] = len(n.Interfaces)
				n.Interfaces = append(n.Interfaces, i)
			}
		case kind == "addr" && len(f) > 3:
			at, ok := index[f[1]]
			p, err := netip.ParsePrefix(f[3])
			if ok && err == nil {
				n.Interfaces[at].Addresses = append(n.Interfaces[at].Addresses, p.String())
			}
		case kind == "route4" && n.Default4 == "":
			n.Default4 = after(f, "dev")
		case kind == "route6" && n.Default6 == "":
			n.Default6 = after(f, "dev")
		case kind == "ns" && len(f) > 0:
			n.Nameservers = append(n.Nameservers, f[0])
		case kind == "resolved":
			n.ResolvedFile = true
		case kind == "ipv6":
			n.HasIPv6 = true
		}
	}
	if len(n.Interfaces) == 0 {
		return n, errors.New("ip printed no interface")
	}
	return n, nil
}

func link(f []string) (Interface, bool) {
	name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
	for _, prefix := range []string{"lo", "veth", "cali", "lxc"} {
		if name == prefix || (prefix != "lo" && strings.HasPrefix(name, prefix)) {
			return Interface{}, false
		}
	}
	flags := strings.Split(strings.Trim(f[2], "<>"), ",")
	up := false
	for _, s := range flags {
		up = up || s == "UP"
	}
	mtu, _ := strconv.Atoi(after(f, "mtu"))
	return Interface{Name: name, MTU: mtu, Up: up}, true
}

// after returns the word that follows a keyword, "" without one.
func after(words []string, keyword string) string {
	for i := 0; i+1 < len(words); i++ {
		if words[i] == keyword {
			return words[i+1]
		}
	}
	return ""
}

func parseFirewall(text string) (Firewall, error) {
	var f Firewall
	for _, line := range lines(text) {
		w := strings.Fields(line)
		switch {
		case line == "ufw":
			f.UFW = true
		case line == "firewalld":
			f.Firewalld = true
		case len(w) > 1 && w[0] == "rule":
			f.Rules = append(f.Rules, strings.Join(w[1:], " "))
		case len(w) > 1 && w[0] == "nftdrop":
			f.NFTDrop = append(f.NFTDrop, strings.Join(w[1:], " "))
		case len(w) == 3 && w[0] == "-P" && w[1] == "INPUT":
			f.InputPolicy = w[2]
		case len(w) == 3 && w[0] == "-P" && w[1] == "FORWARD":
			f.ForwardPolicy = w[2]
		case len(w) > 3 && w[0] == "-A" && w[1] == "INPUT" && w[2] == "-j" && (w[3] == "REJECT" || w[3] == "DROP"):
			// Nothing but the target: it refuses all that no rule before it took.
			f.InputRejects = true
		}
	}
	return f, nil
}

// parsePorts reads ss(8) with or without its first column. Only listeners
// count: a client's connection to port 6443 is none.
func parsePorts(text string) ([]Listener, error) {
	var out []Listener
	for _, line := range lines(text) {
		f := strings.Fields(line)
		proto := "tcp"
		if len(f) > 0 && (f[0] == "tcp" || f[0] == "udp") {
			proto, f = f[0], f[1:]
		}
		if len(f) < 4 || (f[0] != "LISTEN" && (proto != "udp" || f[0] != "UNCONN")) {
			continue
		}
		at := strings.LastIndexByte(f[3], ':')
		if at < 0 {
			continue
		}
		port, err := strconv.ParseUint(f[3][at+1:], 10, 16)
		if err != nil {
			continue
		}
		l := Listener{Proto: proto, Address: strings.Trim(f[3][:at], "[]"), Port: int(port)}
		l.Process, l.PID = user(line)
		out = append(out, l)
	}
	return out, nil
}

// user reads the first of users:(("k3s-server",pid=11,fd=3),...).
func user(line string) (string, int) {
	_, rest, ok := strings.Cut(line, `users:(("`)
	if !ok {
		return "", 0
	}
	name, rest, ok := strings.Cut(rest, `",pid=`)
	if !ok {
		return "", 0
	}
	digits, _, _ := strings.Cut(rest, ",")
	return name, int(number(digits))
}
