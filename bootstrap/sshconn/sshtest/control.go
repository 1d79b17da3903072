//go:build unix

package sshtest

import "golang.org/x/crypto/ssh"

// Stop closes the listener and all connections.
func (s *Server) Stop() {
	_ = s.listener.Close()
	s.deaf.Store(false)
	s.Cut()
}

// Cut closes all connections and goes on listening.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Heal ends the fault of Options.Greeting.
func (s *Server) Heal() { s.healed.Store(true) }

// Rekey shows another host key from the next connection on, as somebody in between would.
func (s *Server) Rekey(key ssh.Signer) { s.another.Store(&key) }

// GoDeaf makes the server read and write nothing more, without closing: a peer that lost its power.
func (s *Server) GoDeaf() { s.deaf.Store(true) }
