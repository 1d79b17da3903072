package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// sshGTimeout bounds `ssh -G`, which may run the user's "Match exec" commands.
const sshGTimeout = 20 * time.Second

// rawConfig is ssh_config for one host: keys in lower case, values in order.
type rawConfig map[string][]string

func (r rawConfig) first(key string) string {
	if v := r[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// word is first without the values that mean "not set".
func (r rawConfig) word(key string) string {
	if v := r.first(key); !strings.EqualFold(v, "none") {
		return v
	}
	return ""
}

// settings is all that is needed to connect to one host.
type settings struct {
	alias, hostName, user string
	port                  int
	identities            []identity
	certificates          []string
	identitiesOnly        bool
	agent                 string // socket; empty means no agent
	jump                  []Target
	proxyCommand          string
	knownHosts            []string
	hostKeyAlias          string
	hostKeyAlgorithms     []string // nil means the library's
	connectTimeout        time.Duration
}

// identity is a private key file to try. named is false for ssh's defaults,
// which may be missing or locked without a word.
type identity struct {
	path  string
	named bool
}

// Resolved is how a target will be connected to, for plans and messages.
type Resolved struct {
	HostName, User string
	Port           int
	// IdentityFiles are the files tried, in order; Jump the chain of hops, ProxyCommand the command instead of one.
	IdentityFiles []string
	Jump          []string
	ProxyCommand  string
}

// readConfig asks OpenSSH itself, so that Match, Include and patterns mean
// what they mean to ssh. Where there is no ssh, the user's file is parsed.
func readConfig(ctx context.Context, t Target, o *Options) (rawConfig, error) {
	if o.ConfigFile == "none" {
		return rawConfig{}, nil
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return parseConfigFile(t.Host, o.ConfigFile)
	}
	args := []string{"-G"}
	if o.ConfigFile != "" {
		args = append(args, "-F", o.ConfigFile)
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	if t.Port != 0 {
		args = append(args, "-p", strconv.Itoa(t.Port))
	}
	return o.shared.ask(ctx, program, o.ConfigFile, t, func() (rawConfig, error) {
		return runSSHG(ctx, program, append(args, "--", t.Host), o)
	})
}

// runSSHG runs `ssh -G`; the last argument is the host.
func runSSHG(ctx context.Context, program string, args []string, o *Options) (rawConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, sshGTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = childEnv(os.Environ(), o.SecretEnv)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ssh -G %s: %w: %s", args[len(args)-1], err, strings.TrimSpace(stderr.String()))
	}
	return parseSSHG(out), nil
}

// parseSSHG reads the output of `ssh -G`: a keyword, a blank, the value.
// Lines of another form are dropped.
func parseSSHG(out []byte) rawConfig {
	raw := rawConfig{}
	for line := range bytes.Lines(out) {
		key, value, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		if key == "" || !ok {
			continue
		}
		key = strings.ToLower(key)
		raw[key] = append(raw[key], value)
	}
	return raw
}

// configKeys are the keywords read without an ssh program.
var configKeys = []string{
	"HostName", "Port", "User", "IdentityFile", "IdentitiesOnly", "IdentityAgent", "CertificateFile", "ProxyJump",
	"ProxyCommand", "UserKnownHostsFile", "GlobalKnownHostsFile", "HostKeyAlias", "HostKeyAlgorithms", "ConnectTimeout",
}

// parseConfigFile reads the user's ssh_config alone; the system's holds crypto
// policies for OpenSSH. A Match criterion that cannot be evaluated is an error;
// a # inside a word, which ssh takes as it is, begins a comment here.
func parseConfigFile(host, file string) (rawConfig, error) {
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return rawConfig{}, nil // no home, no ssh_config
		}
		file = filepath.Join(home, ".ssh", "config")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return rawConfig{}, nil
	}
	if err != nil {
		return nil, err
	}
	parsed, err := ssh_config.DecodeBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	raw := rawConfig{}
	for _, k := range configKeys {
		values, err := parsed.GetAll(host, k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(values) > 0 {
			raw[strings.ToLower(k)] = values
		}
	}
	return raw, nil
}

// resolve joins a target with ssh_config.
func resolve(ctx context.Context, t Target, o *Options) (*settings, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	raw, err := readConfig(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return newSettings(t, raw, o)
}

func newSettings(t Target, raw rawConfig, o *Options) (*settings, error) {
	s := &settings{alias: t.Host, hostName: t.Host, user: t.User, port: t.Port}
	if s.user == "" {
		s.user = raw.word("user")
	}
	if s.user == "" {
		s.user = localUser()
	}
	if s.port == 0 {
		s.port, _ = strconv.Atoi(raw.first("port")) // ssh has checked it; 0 falls to the default
	}
	if s.port == 0 {
		s.port = 22
	}
	if h := raw.word("hostname"); h != "" {
		s.hostName = strings.ReplaceAll(strings.ReplaceAll(h, "%h", t.Host), "%%", "%")
	}
	if err := CheckHost(s.hostName); err != nil {
		return nil, fmt.Errorf("ssh_config: HostName: %w", err)
	}
	if err := CheckUser(s.user); err != nil {
		return nil, fmt.Errorf("ssh_config: User: %w", err)
	}
	s.hostKeyAlias = raw.word("hostkeyalias")
	s.identitiesOnly = strings.EqualFold(raw.first("identitiesonly"), "yes")
	s.connectTimeout = o.ConnectTimeout
	if n, err := strconv.Atoi(raw.first("connecttimeout")); err == nil && n > 0 && s.connectTimeout == 0 {
		s.connectTimeout = time.Duration(n) * time.Second
	}
	if s.connectTimeout == 0 {
		s.connectTimeout = defaultConnectTimeout
	}
	if a := raw.first("hostkeyalgorithms"); a != "" && !strings.ContainsAny(a[:1], "+-^") {
		s.hostKeyAlgorithms = strings.Split(a, ",")
	}
	if err := s.route(t, raw); err != nil {
		return nil, err
	}
	return s, s.files(t, raw)
}

// route decides between a jump chain, a proxy command and the direct way.
func (s *settings) route(t Target, raw rawConfig) error {
	chain := t.Jump
	if chain == "" {
		chain = raw.word("proxyjump")
		s.proxyCommand = raw.word("proxycommand")
	}
	hops, err := parseJump(chain)
	if err != nil {
		return err
	}
	s.jump = hops
	if len(hops) > 0 {
		s.proxyCommand = ""
	}
	return nil
}

var defaultIdentity = regexp.MustCompile(`^~/\.ssh/id_(rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss)$`)

// files expands the paths of keys, certificates, agent and known hosts.
func (s *settings) files(t Target, raw rawConfig) error {
	tok, err := newTokens(t, s)
	if err != nil {
		return err
	}
	if t.IdentityFile != "" {
		s.identities = append(s.identities, identity{path: tok.tilde(t.IdentityFile), named: true})
	}
	files := raw["identityfile"]
	if len(files) == 0 {
		files = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	}
	// ssh -G prints its defaults when no file is configured; one default alone was written by the user.
	named := len(files) == 1
	for _, f := range files {
		named = named || !defaultIdentity.MatchString(f)
	}
	for _, f := range files {
		if strings.EqualFold(f, "none") {
			continue
		}
		path, err := tok.expand(f)
		if err != nil {
			return fmt.Errorf("IdentityFile %s: %w", f, err)
		}
		s.identities = append(s.identities, identity{path: path, named: named})
	}
	for _, f := range raw["certificatefile"] {
		path, err := tok.expand(f)
		if err != nil {
			return fmt.Errorf("CertificateFile %s: %w", f, err)
		}
		s.certificates = append(s.certificates, path)
	}
	for _, list := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		for _, f := range strings.Fields(raw.first(list)) {
			if path, err := tok.expand(f); err == nil && !strings.EqualFold(f, "none") {
				s.knownHosts = append(s.knownHosts, path)
			}
		}
	}
	if len(raw) == 0 {
		s.knownHosts = append(s.knownHosts, tok.tilde("~/.ssh/known_hosts"))
	}
	s.agent, err = agentSocket(raw.first("identityagent"), tok)
	return err
}

func localUser() string {
	if u, err := user.Current(); err == nil {
		name := u.Username
		return name[strings.LastIndexByte(name, '\\')+1:] // DOMAIN\user on Windows
	}
	return os.Getenv("USER")
}
