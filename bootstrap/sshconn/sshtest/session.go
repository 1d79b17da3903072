//go:build unix

package sshtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// session runs one command as sshd does: a session of its own under the login shell.
func (s *Server) session(nc ssh.NewChannel) {
	n := s.Sessions.Add(1)
	defer s.Sessions.Add(-1)
	if limit := s.opts.MaxSessions; limit > 0 && n > limit {
		_ = nc.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	for {
		m := s.MaxSessions.Load()
		if n <= m || s.MaxSessions.CompareAndSwap(m, n) {
			break
		}
	}
	defer ch.Close()
	for r := range reqs {
		var req struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &req) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		if r.WantReply {
			_ = r.Reply(true, nil)
		}
		gone := make(chan struct{})
		go func() {
			ssh.DiscardRequests(reqs)
			close(gone)
		}()
		s.mu.Lock()
		s.lines = append(s.lines, req.Command)
		s.mu.Unlock()
		s.exec(ch, gone, req.Command)
		return
	}
}

// drainTime is how long a command's output may follow its end before the exit
// code is sent all the same; sshd sends it at once and the output after it.
const drainTime = 100 * time.Millisecond

func (s *Server) exec(ch ssh.Channel, gone <-chan struct{}, line string) {
	cmd := exec.Command(s.opts.Shell, "-c", line)
	path := os.Getenv("PATH")
	if s.opts.Path != "" {
		path = s.opts.Path + ":" + path
	}
	cmd.Env = append([]string{"PATH=" + path, "HOME=/tmp", "USER=tester", "SHELL=" + s.opts.Shell,
		fmt.Sprintf("SSH_CONNECTION=127.0.0.1 1 %s %d", s.Host(), s.Port())}, s.opts.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_, _ = io.WriteString(ch, s.opts.Noise)
	_, _ = io.WriteString(ch.Stderr(), s.opts.NoiseErr)
	// Pipes of our own: Wait must not wait for readers of a child's streams.
	in, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	if err := cmd.Start(); err != nil {
		_, _ = io.WriteString(ch.Stderr(), err.Error())
		s.status(ch, 127)
		return
	}
	_ = outW.Close()
	_ = errW.Close()
	go func() {
		_, _ = io.Copy(in, ch)
		_ = in.Close()
	}()
	drained := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(ch, outR) })
	both.Go(func() { _, _ = io.Copy(ch.Stderr(), errR) })
	go func() {
		both.Wait()
		close(drained)
	}()
	err = cmd.Wait()
	select {
	case <-drained:
	case <-time.After(drainTime):
	}
	_, _ = io.WriteString(ch, s.opts.After)
	s.exit(ch, err)
	select {
	case <-drained:
	case <-gone:
	}
	_ = outR.Close()
	_ = errR.Close()
}

func (s *Server) exit(ch ssh.Channel, err error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		s.status(ch, 0)
		return
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		signal := struct {
			Name   string
			Core   bool
			Text   string
			Locale string
		}{Name: signalName(ws.Signal())}
		_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(signal))
		return
	}
	s.status(ch, exit.ExitCode())
}

func (s *Server) status(ch ssh.Channel, code int) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
}

func signalName(sig syscall.Signal) string {
	switch sig {
	case syscall.SIGKILL:
		return "KILL"
	case syscall.SIGTERM:
		return "TERM"
	}
	return sig.String()
}

// faultConn is a connection with the server's faults.
type faultConn struct {
	net.Conn
	server *Server
	read   atomic.Int64
}

func (c *faultConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wait()
	total := c.read.Add(int64(n))
	if limit := c.server.opts.CutAfter; limit > 0 && total > limit {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *faultConn) Write(p []byte) (int, error) {
	c.wait()
	return c.Conn.Write(p)
}

// wait holds back for as long as the server is deaf.
func (c *faultConn) wait() {
	for c.server.deaf.Load() {
		time.Sleep(5 * time.Millisecond)
	}
}
