package config

import (
	"fmt"
	"regexp"
	"strings"
)

// maxNodeName is the length of a label value: the node's name is also the value
// of its kubernetes.io/hostname label.
const maxNodeName = 63

// CheckNodeName says why a name cannot be a node's name in Kubernetes: lower
// case letters, digits, '-' and '.', each part between dots starting and ending
// with a letter or digit. The error carries a name that would do, if there is one.
// Upper case is refused here; NodeName maps it.
func CheckNodeName(name string) error {
	if name != "" && name == NodeName(name) {
		return nil
	}
	if fixed := NodeName(name); fixed != "" {
		return fmt.Errorf("%q cannot be a node name in Kubernetes; %q can", name, fixed)
	}
	return fmt.Errorf("%q cannot be a node name in Kubernetes (lower case letters, digits, '-' and '.', at most %d)", name, maxNodeName)
}

// NodeName makes a valid node name of a host name: lower case, other characters
// replaced by '-', each part trimmed. It returns "" when nothing is left.
func NodeName(host string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(host) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	name := trimParts(b.String())
	if len(name) > maxNodeName {
		name = trimParts(name[:maxNodeName])
	}
	return name
}

func trimParts(s string) string {
	var parts []string
	for _, p := range strings.Split(s, ".") {
		if p = strings.Trim(p, "-"); p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ".")
}

// patterns of what may reach ssh, a shell's argument list or a URL. None may
// start with '-': it would be read as an option.
type patterns struct {
	user, host, name, iface, hostKey, version, file, env *regexp.Regexp
}

func newPatterns() patterns {
	return patterns{
		user:    regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,63}\$?$`),
		host:    regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$`),
		name:    regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`),
		iface:   regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$`),
		hostKey: regexp.MustCompile(`^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( .*)?$`),
		version: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,63}$`),
		file:    regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`),
		env:     regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
	}
}
