package sshconn

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// sudoMode is how one becomes root on a machine.
type sudoMode string

// The words are those that decide.sh prints.
const (
	sudoUnknown  sudoMode = ""
	sudoRoot     sudoMode = "root"     // the user is uid 0
	sudoFree     sudoMode = "free"     // sudo asks for nothing
	sudoPassword sudoMode = "password" // sudo wants the password, and has taken it once
	sudoNeeded   sudoMode = "needed"   // sudo wants a password, none is given
	sudoRefused  sudoMode = "refused"  // sudo did not take the password or forbids
	sudoAbsent   sudoMode = "absent"   // no sudo
)

// sudoState is what a connection has learned of sudo. The first command that
// needs root finds out; others wait for its word, not for its end.
type sudoState struct {
	// turn holds one token while the mode is being found out.
	turn chan struct{}

	mu       sync.Mutex
	mode     sudoMode
	detail   string
	password string
	asked    bool
}

func newSudoState() *sudoState {
	s := &sudoState{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// begin returns the mode. Where it is unknown the caller has the turn and must call decide or release.
func (s *sudoState) begin(ctx context.Context) (sudoMode, error) {
	if m := s.known(); m != sudoUnknown {
		return m, nil
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return sudoUnknown, ctx.Err()
	}
	m := s.known()
	if m != sudoUnknown {
		s.turn <- struct{}{}
	}
	return m, nil
}

func (s *sudoState) known() sudoMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// learn keeps what the machine said and gives the turn back.
func (s *sudoState) learn(m sudoMode) {
	s.mu.Lock()
	s.mode = m
	s.mu.Unlock()
	s.turn <- struct{}{}
}

// release gives the turn back with nothing learned.
func (s *sudoState) release() { s.turn <- struct{}{} }

// sudoTurn is one command's right to find out how to become root.
type sudoTurn struct {
	state  *sudoState
	canAsk bool

	mu      sync.Mutex
	pending bool // a password is needed and can be asked for
	over    bool
}

// heard takes the machine's word. "needed" is not the last one while a password can be asked for.
func (t *sudoTurn) heard(m sudoMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if m == sudoNeeded && t.canAsk && !t.pending {
		t.pending = true
		return
	}
	t.pending, t.over = false, true
	t.state.learn(m)
}

func (t *sudoTurn) mustAsk() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending
}

// end gives the turn back where nothing was learned.
func (t *sudoTurn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.over = true
		t.state.release()
	}
}

// askPassword returns the password of this machine, asked for once per connection.
func (c *Conn) askPassword(ctx context.Context) (string, error) {
	s := c.sudo
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked || c.opts.SudoPassword == nil {
		return s.password, nil
	}
	p, err := c.opts.SudoPassword(ctx, c.Info())
	if err != nil {
		return "", fmt.Errorf("sudo password: %w", err)
	}
	if err := checkPassword(p); err != nil {
		return "", err
	}
	s.password, s.asked = p, true
	return p, nil
}

// sudoError turns a mode in which nothing ran into the error, nil for the others.
func (c *Conn) sudoError(name string, m sudoMode, detail string) error {
	s := c.sudo
	s.mu.Lock()
	defer s.mu.Unlock()
	if detail == "" {
		detail = s.detail
	}
	detail = strings.TrimSpace(string(remote.Redact([]byte(detail), []string{s.password})))
	e := &remote.SudoError{Host: c.host, User: c.user, Name: name, Detail: detail}
	switch m {
	case sudoNeeded:
		e.Kind = neededKind(detail)
	case sudoAbsent:
		e.Kind = remote.SudoAbsent
	case sudoRefused:
		e.Kind = refusedKind(detail)
	default:
		return nil
	}
	s.detail = detail
	return e
}

// neededKind is why sudo -n did not open root. Its exit code says that it did not;
// a few words say that no password would help either.
func neededKind(text string) remote.SudoKind {
	switch {
	case strings.Contains(text, "command not found"):
		return remote.SudoAbsent
	case refusedKind(text) == remote.SudoNotAllowed:
		return remote.SudoNotAllowed
	}
	return remote.SudoPasswordNeeded
}

// refusedKind tells a wrong password from a rule that forbids: sudo's exit
// code is 1 for both, so its words (LC_ALL=C) decide. sudo and sudo-rs.
func refusedKind(text string) remote.SudoKind {
	for _, w := range []string{"sudoers", "may not run sudo", "is not allowed to", "I'm afraid I can't do that", "must have a tty"} {
		if strings.Contains(text, w) {
			return remote.SudoNotAllowed
		}
	}
	return remote.SudoWrongPassword
}
