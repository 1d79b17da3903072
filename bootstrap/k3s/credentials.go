package k3s

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Credentials are what a server says about itself: secrets, all of them. Keep them in
// memory or in files of mode 0600.
type Credentials struct {
	// Kubeconfig is the admin kubeconfig as k3s wrote it; its server is 127.0.0.1.
	Kubeconfig []byte
	// AgentToken and ServerToken are in the full form K10<hash of the CA>::user:secret.
	AgentToken, ServerToken string
	// ClusterID is whose server this is; empty on one that does not say it. No secret.
	ClusterID string
	// KnownHosts are the host keys of the cluster's machines as lines of known_hosts, with
	// the machine's name as comment; empty where none were kept. No secret.
	KnownHosts []byte
}

// String keeps the secrets out of logs.
func (Credentials) String() string { return "********" }

// GoString keeps the secrets out of %#v.
func (Credentials) GoString() string { return "********" }

// ErrNoCredentials says that k3s has not yet written its kubeconfig or tokens.
var ErrNoCredentials = errors.New("no credentials on the server yet")

// ReadCredentials brings the admin kubeconfig and the join tokens of a server
// back in one command. It works while k3s is stopped. The error is
// ErrNoCredentials where k3s never started.
func ReadCredentials(ctx context.Context, on remote.Runner, dataDir string) (Credentials, error) {
	if dataDir == "" {
		dataDir = DefaultDataDir
	}
	mark := "gpuctl-" + randomHex(8)
	res, err := on.Run(ctx, remote.Cmd{
		Name: "read cluster credentials", Script: credentialsScript, Args: []string{dataDir, mark},
		Sudo: true, Timeout: 30 * time.Second,
	})
	if remote.ExitCode(err) == 51 {
		return Credentials{}, ErrNoCredentials
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("reading cluster credentials: %w", err)
	}
	return parseCredentials(res.Stdout, mark)
}

func parseCredentials(out []byte, mark string) (Credentials, error) {
	parts := map[string][]byte{}
	for _, chunk := range bytes.Split(out, []byte(mark+" ")) {
		name, body, ok := bytes.Cut(chunk, []byte("\n"))
		if ok {
			parts[string(name)] = bytes.TrimSpace(body)
		}
	}
	c := Credentials{
		Kubeconfig: parts["kubeconfig"], AgentToken: string(parts["agent-token"]), ServerToken: string(parts["server-token"]),
	}
	c.ClusterID, c.KnownHosts = clusterID(parts["cluster"]), withEnd(parts["known-hosts"])
	if _, complete := parts["end"]; !complete || len(c.Kubeconfig) == 0 {
		return Credentials{}, errors.New("reading cluster credentials: the answer is not complete")
	}
	for _, token := range []string{c.AgentToken, c.ServerToken} {
		if !fullToken(token) {
			return Credentials{}, errors.New("reading cluster credentials: a token is not of the form K10<hash>::user:secret")
		}
	}
	return c, nil
}

// FullToken says whether a token carries the hash of the cluster's CA: with it
// whoever joins knows whom.
func FullToken(s string) bool { return fullToken(s) }

func fullToken(s string) bool {
	return regexp.MustCompile(`^K10[0-9a-f]{64}::[a-z]+:[^\s]+$`).MatchString(s)
}

// secretOf returns the part of a token that is the password.
func secretOf(token string) string {
	if !fullToken(token) {
		return token
	}
	_, rest, _ := strings.Cut(token, "::")
	_, secret, _ := strings.Cut(rest, ":")
	return secret
}

// randomHex returns n random bytes in hex. A hex token can be mistaken for
// neither a full token (K10...) nor a bootstrap token (6.16 characters).
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}
