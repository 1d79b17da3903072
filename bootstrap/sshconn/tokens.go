package sshconn

import (
	"crypto/sha1" //nolint:gosec // %C of ssh_config is defined as SHA-1; it names a file, nothing more
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// tokens expands the %-tokens, variables and tildes of ssh_config values.
// `ssh -G` prints most of them raw. See TOKENS in ssh_config(5).
type tokens struct {
	home   string
	values map[byte]string
}

func newTokens(t Target, s *settings) (*tokens, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	local, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this computer: %w", err)
	}
	short, _, _ := strings.Cut(local, ".")
	key := s.hostName
	if s.hostKeyAlias != "" {
		key = s.hostKeyAlias
	}
	port, jump := strconv.Itoa(s.port), ""
	if len(s.jump) > 0 {
		jump = s.jump[len(s.jump)-1].Host
	}
	sum := sha1.Sum([]byte(local + s.hostName + port + s.user + jump)) //nolint:gosec // as above
	return &tokens{home: home, values: map[byte]string{
		'%': "%", 'h': s.hostName, 'n': t.Host, 'p': port, 'r': s.user, 'u': localUser(), 'd': home,
		'i': strconv.Itoa(os.Getuid()), 'l': local, 'L': short, 'k': key, 'j': jump, 'C': hex.EncodeToString(sum[:]),
	}}, nil
}

// tilde replaces a leading "~/" by the home directory.
func (t *tokens) tilde(s string) string {
	if s == "~" || strings.HasPrefix(s, "~/") {
		return t.home + s[1:]
	}
	return s
}

var envToken = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// expand replaces the tilde, variables and tokens of a path, and drops quotes around it.
func (t *tokens) expand(s string) (string, error) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	var missing error
	expanded, err := t.percent(t.tilde(s))
	if err != nil {
		return "", err
	}
	expanded = envToken.ReplaceAllStringFunc(expanded, func(v string) string {
		name := v[2 : len(v)-1]
		value, ok := os.LookupEnv(name)
		if !ok {
			missing = fmt.Errorf("environment variable %s is not set", name)
		}
		return value
	})
	return expanded, missing
}

// percent replaces the %-tokens alone, as in ProxyCommand.
func (t *tokens) percent(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", fmt.Errorf("%q ends in the middle of a token", s)
		}
		v, ok := t.values[s[i]]
		if !ok {
			return "", fmt.Errorf("unknown token %%%c in %q", s[i], s)
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// agentSocket returns the path of the agent, empty for none. setting is
// IdentityAgent: empty, "none", "SSH_AUTH_SOCK", "$VARIABLE" or a path.
func agentSocket(setting string, t *tokens) (string, error) {
	setting = strings.Trim(setting, `"`)
	switch {
	case setting == "" || setting == "SSH_AUTH_SOCK":
		if sock := os.Getenv("SSH_AUTH_SOCK"); sock != "" {
			return sock, nil
		}
		return platformAgent(), nil
	case strings.EqualFold(setting, "none"):
		return "", nil
	case strings.HasPrefix(setting, "$") && !strings.HasPrefix(setting, "${"):
		return os.Getenv(setting[1:]), nil
	}
	path, err := t.expand(setting)
	if err != nil {
		return "", fmt.Errorf("IdentityAgent %s: %w", setting, err)
	}
	return path, nil
}

// secretName matches variables that look like secrets of this program or of
// the configuration it reads; keys of cloud tools are left, because a
// ProxyCommand may need them.
var (
	secretName = regexp.MustCompile(`(?i)^(GPUCTL_|TF_VAR_)|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|API_?KEY|PRIVATE_?KEY`)
	cloudName  = regexp.MustCompile(`^(AWS|GOOGLE|CLOUDSDK|AZURE|ARM|OCI|CLOUDFLARE|TELEPORT)_`)
)

// childEnv is the environment of ssh and proxy commands.
func childEnv(env, secrets []string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		drop := secretName.MatchString(name) && !cloudName.MatchString(name)
		for _, s := range secrets {
			drop = drop || name == s
		}
		if !drop {
			out = append(out, kv)
		}
	}
	return out
}
