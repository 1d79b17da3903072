package sshconn

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
)

// shared is what the connections of one Dialer read once, so that many machines
// do not cost the square of their number. A nil one shares nothing.
type shared struct {
	// asking bounds the children that read ssh_config: five hundred at once
	// would take gigabytes and no less time.
	asking chan struct{}

	mu    sync.Mutex
	known map[string]knownFiles
	// answers are what ssh said of a host, by user and whether a port was named, where it says the same of each.
	answers map[string]rawConfig

	look  sync.Once
	alike bool
}

// knownFiles are known_hosts files as read when they had this stamp.
type knownFiles struct {
	stamp string
	db    *knownhosts.HostKeyDB
}

func newShared() *shared {
	return &shared{asking: make(chan struct{}, 2*runtime.NumCPU()), known: map[string]knownFiles{}, answers: map[string]rawConfig{}}
}

// knownHosts is openKnownHosts for files that have changed since the last time.
// The database is only read from. Whoever asks meanwhile waits for the answer
// instead of reading the files too.
func (s *shared) knownHosts(files []string, warn func(file string, err error)) *knownhosts.HostKeyDB {
	if s == nil {
		return openKnownHosts(files, warn)
	}
	name, stamp := strings.Join(files, "\x00"), stampOf(files)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.known[name]; ok && have.stamp == stamp {
		return have.db
	}
	db := openKnownHosts(files, warn)
	s.known[name] = knownFiles{stamp, db}
	return db
}

// stampOf changes when a file is written, replaced or removed.
func stampOf(files []string) string {
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			fmt.Fprintf(&b, "%d %d", info.Size(), info.ModTime().UnixNano())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ask returns what ssh says of a host: by a child, of which few run at once, or
// by an earlier answer where ssh says the same of every host. The values of the
// answer are only read from.
func (s *shared) ask(ctx context.Context, program, file string, t Target, run func() (rawConfig, error)) (rawConfig, error) {
	if s == nil {
		return run()
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.look.Do(func() { s.alike = program == usualSSH && alikeConfig(file) })
	if !s.alike {
		return run()
	}
	// The name and the port that ssh was given are those that it answers.
	key := fmt.Sprintf("%s %v", t.User, t.Port != 0)
	host, port := strings.ToLower(t.Host), strconv.Itoa(t.Port)
	s.mu.Lock()
	have, ok := s.answers[key]
	s.mu.Unlock()
	if ok {
		have = maps.Clone(have)
		have["hostname"] = []string{host}
		if t.Port != 0 {
			have["port"] = []string{port}
		}
		return have, nil
	}
	raw, err := run()
	if err == nil && raw.first("hostname") == host && (t.Port == 0 || raw.first("port") == port) {
		s.mu.Lock()
		s.answers[key] = raw
		s.mu.Unlock()
	}
	return raw, err
}
