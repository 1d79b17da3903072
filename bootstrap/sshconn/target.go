package sshconn

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Target says which machine to connect to. Zero values mean "as ssh_config
// says"; a value that is set wins over ssh_config.
type Target struct {
	// Name is how messages call the machine; empty means Host.
	Name string
	// Host is an address, a DNS name or an ssh_config alias.
	Host string
	Port int
	User string
	// IdentityFile is tried before the keys of ssh_config and the agent. A
	// public key file means "the key of the agent with this public half".
	IdentityFile string
	// Jump is a ProxyJump chain, "[user@]host[:port],..."; "none" goes directly.
	Jump string
	// HostKey pins the host key, in authorized_keys form ("ssh-ed25519 AAAA...").
	HostKey string
}

// Options are the settings that all connections of a cluster share.
type Options struct {
	// KnownHosts is the known_hosts file of this cluster. It is made (0600)
	// and appended to when a new key is accepted; empty keeps nothing.
	KnownHosts string
	// Strict refuses machines whose key is not known.
	Strict bool
	// OnNewHostKey is told of each key that was accepted for the first time.
	OnNewHostKey func(Info)
	// ConfigFile is read instead of the user's and the system's ssh_config; "none" reads no file.
	ConfigFile string
	// SudoPassword gives the sudo password of a machine, asked for at most
	// once per connection and only when sudo wants one; empty means there is
	// none. Info.FirstSeen tells it to ask the user before trusting the machine.
	SudoPassword func(ctx context.Context, machine Info) (string, error)
	// Passphrase gives the passphrase of a locked key file; nil or an empty answer leaves it locked.
	Passphrase func(ctx context.Context, file string) ([]byte, error)
	// Keepalive is the pause between signs of life; 0 means 15 s. A peer silent for three times that is lost.
	Keepalive time.Duration
	// ConnectTimeout bounds one try on one hop; 0 means ssh_config's ConnectTimeout, else 20 s.
	ConnectTimeout time.Duration
	// RetryFor is how long failures that can heal are tried again; 0 tries once.
	RetryFor time.Duration
	// OnRetry is told why a try failed and when the next one comes.
	OnRetry func(machine string, err error, next time.Duration)
	// SecretEnv names variables of gpuctl's own environment that hold secrets
	// of the configuration; child processes do not get them.
	SecretEnv []string
	// Logger gets warnings; nil drops them.
	Logger *slog.Logger

	// shared is the Dialer's.
	shared *shared
}

const defaultConnectTimeout = 20 * time.Second

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

func (o *Options) keepalive() time.Duration {
	if o.Keepalive > 0 {
		return o.Keepalive
	}
	return defaultKeepalive
}

// Hosts and users may come from files that others wrote. They are words of
// command lines (ssh -G, ProxyCommand), so they match these or go nowhere. The
// lengths are checked apart: counted repetitions take milliseconds to compile,
// which every start of the program would pay.
var (
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?$`)
	zonePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`)
)

const (
	maxHost = 253
	maxUser = 64
)

// CheckHost refuses what is neither a name nor an IP address.
func CheckHost(host string) error {
	if len(host) <= maxHost && hostPattern.MatchString(host) {
		return nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("%q is no host name or IP address", host)
	}
	if z := addr.Zone(); z != "" && !zonePattern.MatchString(z) {
		return fmt.Errorf("%q has an unusable zone", host)
	}
	return nil
}

// CheckUser refuses what cannot be a login name.
func CheckUser(user string) error {
	if len(user) > maxUser || !userPattern.MatchString(user) {
		return fmt.Errorf("%q is no login name", user)
	}
	return nil
}

// check validates t before any of it is used.
func (t Target) check() error {
	if err := CheckHost(t.Host); err != nil {
		return err
	}
	if t.User != "" {
		if err := CheckUser(t.User); err != nil {
			return err
		}
	}
	if t.Port < 0 || t.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", t.Port)
	}
	_, err := parseJump(t.Jump)
	return err
}

func (t Target) name() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Host
}

// parseJump reads a ProxyJump chain; nil means no hop.
func parseJump(chain string) ([]Target, error) {
	if chain == "" || strings.EqualFold(chain, "none") {
		return nil, nil
	}
	var hops []Target
	for part := range strings.SplitSeq(chain, ",") {
		hop, err := parseHop(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("jump host %q: %w", part, err)
		}
		hops = append(hops, hop)
	}
	return hops, nil
}

// parseHop reads "[user@]host[:port]" or "ssh://[user@]host[:port]".
func parseHop(s string) (Target, error) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	var t Target
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		t.User, s = s[:i], s[i+1:]
		if err := CheckUser(t.User); err != nil {
			return Target{}, err
		}
	}
	port := ""
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Target{}, fmt.Errorf("no closing bracket")
		}
		t.Host, s = s[1:end], s[end+1:]
		if s != "" && s[0] != ':' {
			return Target{}, fmt.Errorf("%q after the bracket", s)
		}
		port = strings.TrimPrefix(s, ":")
	case strings.Count(s, ":") == 1:
		t.Host, port, _ = strings.Cut(s, ":")
	default:
		t.Host = s
	}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return Target{}, fmt.Errorf("port %q is not between 1 and 65535", port)
		}
		t.Port = n
	}
	return t, CheckHost(t.Host)
}
