package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Target is what a user types to name a machine.
type Target struct {
	User string
	Host string
	Port int // 0 means not said
}

// ParseTarget reads host, user@host, user@host:port, ssh://user@host:port,
// [v6]:port and a bare IPv6 address. A host may be a Host of ssh_config.
func ParseTarget(text string) (Target, error) {
	rest, isURL := strings.CutPrefix(text, "ssh://")
	if isURL {
		rest = strings.TrimSuffix(rest, "/")
	} else if strings.Contains(rest, "://") {
		return Target{}, errors.New("only ssh:// URLs name a machine")
	}
	var t Target
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		t.User, rest = rest[:at], rest[at+1:]
		if !newPatterns().user.MatchString(t.User) {
			return Target{}, fmt.Errorf("user %q is not allowed: %s", t.User, userRule)
		}
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return Target{}, err
	}
	t.Host = host
	if !isAddress(host) && !newPatterns().host.MatchString(host) {
		return Target{}, fmt.Errorf("host %q is not allowed: an IP address, a DNS name or a Host of ssh_config", host)
	}
	if port == "" {
		return t, nil
	}
	if t.Port, err = strconv.Atoi(port); err != nil || t.Port < 1 || t.Port > 65535 || strconv.Itoa(t.Port) != port {
		return Target{}, fmt.Errorf("port %q is not a TCP port (1 to 65535)", port)
	}
	return t, nil
}

func splitPort(s string) (host, port string, err error) {
	switch {
	case strings.HasPrefix(s, "["):
		if strings.HasSuffix(s, "]") {
			return s[1 : len(s)-1], "", nil
		}
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", "", fmt.Errorf("%q is not [address]:port", s)
		}
		return host, port, nil
	case strings.Count(s, ":") > 1:
		return s, "", nil // a bare IPv6 address has no port
	}
	host, port, found := strings.Cut(s, ":")
	if found && port == "" {
		return "", "", fmt.Errorf("%q ends after the colon", s)
	}
	return host, port, nil
}
