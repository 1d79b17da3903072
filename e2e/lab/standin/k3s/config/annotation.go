package config

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"os"
	"strings"
)

const mask = "********"

// NodeArgs is the value of annotation k3s.io/node-args: the merged command
// line with secrets masked.
func (o *Options) NodeArgs() string {
	var out []string
	hide := false
	for _, a := range o.Args {
		if hide {
			out, hide = append(out, mask), false
			continue
		}
		name, value, found := strings.Cut(a, "=")
		out = append(out, name)
		secret := isSecret(strings.TrimLeft(name, "-")) && strings.HasPrefix(name, "-")
		switch {
		case found && secret:
			out = append(out, mask)
		case found && strings.HasPrefix(name, "-"):
			out = append(out, value)
		case found:
			out[len(out)-1] = a
		case secret:
			hide = true
		}
	}
	text, _ := json.Marshal(out)
	return string(text)
}

// NodeEnv is the value of annotation k3s.io/node-env.
func NodeEnv(environ []string) string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "K3S_") {
			continue
		}
		if strings.HasSuffix(name, "_TOKEN") {
			value = mask
		}
		env[name] = value
	}
	text, _ := json.Marshal(env)
	return string(text)
}

// Hash is the value of annotation k3s.io/node-config-hash: it changes with the
// options and the environment.
func (o *Options) Hash() string {
	sum := sha256.Sum256([]byte(strings.Join(o.Args, "\x00") + NodeEnv(os.Environ()) + o.String("token")))
	return base32.StdEncoding.EncodeToString(sum[:])
}

func isSecret(name string) bool {
	switch name {
	case "token", "t", "agent-token", "etcd-s3-secret-key", "etcd-s3-session-token",
		"etcd-s3-access-key", "datastore-endpoint", "vpn-auth":
		return true
	}
	return false
}
