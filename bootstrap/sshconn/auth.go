package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// keyOffer is the list of keys for one login and what became of each.
type keyOffer struct {
	keys  []*tracedKey
	notes []remote.Attempt // keys and agents that could not be used
	agent io.Closer
	have  map[string]bool // public keys already in the list
}

// Fates of a key.
const (
	notOffered = iota
	offered
	signed
)

// tracedKey is a key that remembers how far it got.
type tracedKey struct {
	what string
	mu   sync.Mutex
	fate int
}

func (k *tracedKey) reached(fate int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fate = max(k.fate, fate)
}

func (k *tracedKey) got() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fate
}

// tracedSigner: the library asks for the public key when it offers the key,
// and for a signature when the server would take it.
type tracedSigner struct {
	ssh.AlgorithmSigner
	key *tracedKey
}

func (s tracedSigner) PublicKey() ssh.PublicKey {
	s.key.reached(offered)
	return s.AlgorithmSigner.PublicKey()
}

func (s tracedSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s.key.reached(signed)
	return s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
}

// tracedMultiSigner also says which algorithms the key can sign with.
type tracedMultiSigner struct {
	tracedSigner
	algorithms []string
}

func (s tracedMultiSigner) Algorithms() []string { return s.algorithms }

// newKeyOffer collects the keys in the order of ssh: named identities first,
// each from the agent if it holds it, else from its file; then the agent's
// other keys; then ssh's default files. IdentitiesOnly leaves the agent's others out.
func (d *Dialer) newKeyOffer(ctx context.Context, s *settings) (*keyOffer, []ssh.Signer) {
	o := &keyOffer{have: map[string]bool{}}
	inAgent := o.openAgent(ctx, s.agent)
	certs := o.certificates(s)
	var signers []ssh.Signer
	add := func(what string, key ssh.Signer) {
		blob := string(key.PublicKey().Marshal())
		if !o.have[blob] {
			o.have[blob] = true
			signers = append(signers, o.trace(what, key))
		}
	}
	identities := func(named bool) {
		for _, id := range s.identities {
			if id.named != named {
				continue
			}
			d.identity(ctx, o, id, inAgent, certs, add)
		}
	}
	identities(true)
	if !s.identitiesOnly {
		for _, k := range inAgent {
			add("agent key", k)
		}
	}
	identities(false)
	return o, signers
}

// identity adds the keys of one identity file.
func (d *Dialer) identity(ctx context.Context, o *keyOffer, id identity, inAgent []ssh.Signer, certs []*ssh.Certificate, add func(string, ssh.Signer)) {
	f := d.keys.read(ctx, id.path, false)
	found := false
	if f.public != nil {
		for _, k := range inAgent {
			if samePublic(k.PublicKey(), f.public) {
				found = true
				addWithCerts(k, id.path+" (in the agent)", certs, add)
			}
		}
	}
	if found {
		return
	}
	if id.named {
		f = d.keys.read(ctx, id.path, true)
	}
	if f.warn != "" {
		d.warnOnce(id.path, f.warn)
		o.note("key "+id.path, f.warn)
	}
	switch {
	case f.signer != nil:
		addWithCerts(f.signer, id.path, certs, add)
	case id.named || !errors.Is(f.err, os.ErrNotExist):
		o.note("key "+id.path, "not usable: "+f.err.Error())
	}
}

func addWithCerts(key ssh.Signer, what string, certs []*ssh.Certificate, add func(string, ssh.Signer)) {
	for _, c := range certs {
		if samePublic(c, key.PublicKey()) {
			if signer, err := ssh.NewCertSigner(c, key); err == nil {
				add(what+" with certificate "+c.KeyId, signer)
			}
		}
	}
	add(what, key)
}

// certificates reads CertificateFile and the -cert.pub beside each identity.
func (o *keyOffer) certificates(s *settings) []*ssh.Certificate {
	var certs []*ssh.Certificate
	read := func(path string, named bool) {
		pub, err := readPublic(path)
		cert, ok := pub.(*ssh.Certificate)
		switch {
		case ok:
			certs = append(certs, cert)
		case named && err != nil:
			o.note("certificate "+path, "not usable: "+withoutPath(err).Error())
		case named:
			o.note("certificate "+path, "not usable: it holds a plain key")
		}
	}
	for _, path := range s.certificates {
		read(path, true)
	}
	for _, id := range s.identities {
		read(strings.TrimSuffix(id.path, ".pub")+"-cert.pub", false)
	}
	return certs
}

func (o *keyOffer) openAgent(ctx context.Context, socket string) []ssh.Signer {
	if socket == "" {
		return nil
	}
	conn, err := dialAgent(ctx, socket)
	if err != nil {
		o.note("agent "+socket, "no answer: "+err.Error())
		return nil
	}
	keys, err := agent.NewClient(conn).Signers()
	if err != nil {
		o.note("agent "+socket, err.Error())
		_ = conn.Close() // of no use
		return nil
	}
	o.agent = conn
	return keys
}

func (o *keyOffer) note(what, answer string) {
	a := remote.Attempt{What: what, Answer: answer}
	if !slices.Contains(o.notes, a) {
		o.notes = append(o.notes, a)
	}
}

func (o *keyOffer) trace(what string, key ssh.Signer) ssh.Signer {
	t := &tracedKey{what: fmt.Sprintf("key %s %s %s", what, key.PublicKey().Type(), ssh.FingerprintSHA256(key.PublicKey()))}
	o.keys = append(o.keys, t)
	switch k := key.(type) {
	case ssh.MultiAlgorithmSigner:
		return tracedMultiSigner{tracedSigner{k, t}, k.Algorithms()}
	case ssh.AlgorithmSigner:
		return tracedSigner{k, t}
	}
	return key
}

// close ends the connection to the agent.
func (o *keyOffer) close() {
	if o.agent != nil {
		_ = o.agent.Close() // only read from
	}
}

// count returns how many keys got at least that far.
func (o *keyOffer) count(fate int) int {
	n := 0
	for _, k := range o.keys {
		if k.got() >= fate {
			n++
		}
	}
	return n
}

// attempts says what each key got.
func (o *keyOffer) attempts(loggedIn bool) []remote.Attempt {
	out := slices.Clone(o.notes)
	for _, k := range o.keys {
		answer := "not offered: the login had ended"
		switch k.got() {
		case offered:
			answer = "not accepted"
		case signed:
			answer = "accepted"
			if !loggedIn {
				answer = "accepted, yet the login was refused"
			}
		}
		out = append(out, remote.Attempt{What: k.what, Answer: answer})
	}
	return out
}

// samePublic compares the plain keys, also of certificates.
func samePublic(a, b ssh.PublicKey) bool {
	return bytes.Equal(plainKey(a).Marshal(), plainKey(b).Marshal())
}

func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if c, ok := k.(*ssh.Certificate); ok {
		return c.Key
	}
	if a, ok := k.(*agent.Key); ok {
		if parsed, err := ssh.ParsePublicKey(a.Blob); err == nil {
			return plainKey(parsed)
		}
	}
	return k
}
