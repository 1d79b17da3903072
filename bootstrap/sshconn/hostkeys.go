package sshconn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// keyPolicy decides about the host key of one login.
type keyPolicy struct {
	name       string // what known_hosts lists: host:port
	pin        ssh.PublicKey
	db         *knownhosts.HostKeyDB // nil without any file
	base       []string              // algorithms that ssh_config or the library allow
	strict     bool
	acceptNew  func(name string, key ssh.PublicKey) error
	seen       ssh.PublicKey
	firstSeen  bool
	passed     bool
	problem    error
	hint       string
	clusterOwn string // known_hosts file of the cluster
}

// newKeyPolicy reads the known keys of a target.
func newKeyPolicy(t Target, s *settings, o *Options, accept func(string, ssh.PublicKey) error) (*keyPolicy, error) {
	p := &keyPolicy{name: keyName(s), strict: o.Strict, acceptNew: accept, base: s.hostKeyAlgorithms, clusterOwn: o.KnownHosts}
	if len(p.base) == 0 {
		p.base = ssh.SupportedAlgorithms().HostKeys
	}
	if t.HostKey != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(t.HostKey))
		if err != nil {
			return nil, fmt.Errorf("pinned host key: %w", err)
		}
		p.pin = key
		return p, nil
	}
	files := append([]string{o.KnownHosts}, s.knownHosts...)
	p.db = o.shared.knownHosts(files, func(file string, err error) {
		o.logger().Warn("known_hosts file not used", "file", file, "error", err)
	})
	return p, nil
}

// keyName is the name under which known_hosts lists a host. An alias stands without a port.
func keyName(s *settings) string {
	if s.hostKeyAlias != "" {
		return net.JoinHostPort(s.hostKeyAlias, "22")
	}
	return net.JoinHostPort(s.hostName, strconv.Itoa(s.port))
}

// openKnownHosts reads the files that exist. The library skips lines it
// cannot read; a file with no usable line at all is left out with a warning.
func openKnownHosts(files []string, warn func(file string, err error)) *knownhosts.HostKeyDB {
	var usable []string
	for _, f := range files {
		if f == "" {
			continue
		}
		if _, err := os.Stat(f); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if _, err := knownhosts.NewDB(f); err != nil {
			warn(f, err)
			continue
		}
		usable = append(usable, f)
	}
	if len(usable) == 0 {
		return nil
	}
	db, err := knownhosts.NewDB(usable...)
	if err != nil {
		warn(strings.Join(usable, ", "), err)
		return nil
	}
	return db
}

// algorithms orders the host key algorithms: known types first, so that the
// server shows the key that is on file; certificates only where a CA is known.
func (p *keyPolicy) algorithms() []string {
	var known []string
	switch {
	case p.pin != nil:
		known = keyAlgorithms(p.pin.Type())
	case p.db != nil:
		known = p.db.HostKeyAlgorithms(p.name)
	}
	supported := append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...)
	var first, rest []string
	for _, a := range p.base {
		switch {
		case !slices.Contains(supported, a):
		case slices.Contains(known, a):
			first = append(first, a)
		case !strings.Contains(a, "-cert-"):
			rest = append(rest, a)
		}
	}
	return append(first, rest...)
}

// keyAlgorithms are the algorithms that a key of this type can sign with.
func keyAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// check is the ssh.HostKeyCallback. The reason of a refusal stays in problem.
func (p *keyPolicy) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	p.seen = key
	p.problem = p.judge(key)
	p.passed = p.problem == nil
	return p.problem
}

func (p *keyPolicy) judge(key ssh.PublicKey) error {
	offered := key.Type() + " " + ssh.FingerprintSHA256(key)
	if p.pin != nil {
		if !slices.Equal(p.pin.Marshal(), key.Marshal()) {
			p.hint = "the machine may have been rebuilt: correct hostKey of the machine only after checking the new key by another way"
			return fmt.Errorf("the server offers %s, the pinned key is %s %s", offered, p.pin.Type(), ssh.FingerprintSHA256(p.pin))
		}
		return nil
	}
	err := p.lookUp(key)
	var mismatch *xknownhosts.KeyError
	var revoked *xknownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return fmt.Errorf("key %s is revoked by %s:%d", offered, revoked.Revoked.Filename, revoked.Revoked.Line)
	case errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		return p.mismatch(key, mismatch.Want)
	case errors.As(err, &mismatch):
		return p.unknown(key)
	}
	return fmt.Errorf("key %s: %w", offered, err)
}

// lookUp asks known_hosts. The library wants an address of the peer, which it
// does not use when there is a name.
func (p *keyPolicy) lookUp(key ssh.PublicKey) error {
	if p.db == nil {
		return &xknownhosts.KeyError{}
	}
	return p.db.HostKeyCallback()(p.name, &net.TCPAddr{IP: net.IPv4zero, Port: 22}, key)
}

func (p *keyPolicy) unknown(key ssh.PublicKey) error {
	fingerprint := ssh.FingerprintSHA256(key)
	if p.strict {
		p.hint = "add the key to known_hosts, pin it as hostKey, or allow hostKeys: accept-new"
		return fmt.Errorf("the key is unknown: %s %s", key.Type(), fingerprint)
	}
	if err := p.acceptNew(p.name, key); err != nil {
		return fmt.Errorf("recording the new key %s: %w", fingerprint, err)
	}
	p.firstSeen = true
	return nil
}

func (p *keyPolicy) mismatch(key ssh.PublicKey, want []xknownhosts.KnownKey) error {
	slices.SortFunc(want, func(a, b xknownhosts.KnownKey) int { return a.Line - b.Line })
	var same, other []string
	for _, w := range want {
		text := fmt.Sprintf("%s %s (%s:%d)", w.Key.Type(), ssh.FingerprintSHA256(w.Key), w.Filename, w.Line)
		if w.Key.Type() == key.Type() {
			same = append(same, text)
		} else {
			other = append(other, text)
		}
	}
	listed := xknownhosts.Normalize(p.name)
	p.hint = fmt.Sprintf("if the machine was rebuilt and you trust the new key: ssh-keygen -f %s -R %s", want[0].Filename, quoteBrackets(listed))
	if len(same) == 0 {
		return p.changed(key, want, fmt.Sprintf("the known key is %s, the server offers %s only", strings.Join(other, ", "), describe(key)))
	}
	return p.changed(key, want, fmt.Sprintf("the key has changed: the server offers %s, known is %s", describe(key), strings.Join(same, ", ")))
}

// quoteBrackets protects [host]:port from the user's shell.
func quoteBrackets(name string) string {
	if strings.HasPrefix(name, "[") {
		return "'" + name + "'"
	}
	return name
}
