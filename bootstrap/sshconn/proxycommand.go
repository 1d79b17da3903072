package sshconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// proxyCommand runs the user's ProxyCommand and speaks over its standard
// streams. Host, user and port have matched their patterns before.
func (l *login) proxyCommand() (net.Conn, error) {
	tok, err := newTokens(l.target, l.s)
	if err != nil {
		return nil, err
	}
	line, err := tok.percent(l.s.proxyCommand)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", "exec "+line)
	if runtime.GOOS == "windows" {
		cmd = exec.Command("cmd.exe", "/c", line)
	}
	cmd.Env = childEnv(os.Environ(), l.d.opts.SecretEnv)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said := &lastWords{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &commandConn{Writer: in, out: out, in: in, cmd: cmd, said: said, reaped: make(chan struct{})}, nil
}

// lastWordsLimit bounds the wait for standard error once standard output has
// ended: a process that the command left behind may hold it open.
const lastWordsLimit = time.Second

// commandConn is a child process as a connection.
type commandConn struct {
	io.Writer
	out    io.ReadCloser
	in     io.Closer
	cmd    *exec.Cmd
	said   *lastWords
	reap   sync.Once
	reaped chan struct{}
}

// Read reports what the command printed to standard error when it ends.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if errors.Is(err, io.EOF) {
		c.wait()
		select {
		case <-c.reaped:
		case <-time.After(lastWordsLimit):
		}
		if text := c.said.text(); text != "" {
			err = fmt.Errorf("proxy command: %s: %w", text, err)
		}
	}
	return n, err
}

// Close ends the child.
func (c *commandConn) Close() error {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill() // it may have ended by itself
	c.wait()
	return nil
}

// wait has the child collected, and what it still says read, in the background.
func (c *commandConn) wait() {
	c.reap.Do(func() {
		go func() {
			_ = c.cmd.Wait() // how it ended is of no interest
			close(c.reaped)
		}()
	})
}

func (c *commandConn) LocalAddr() net.Addr              { return commandAddr{} }
func (c *commandConn) RemoteAddr() net.Addr             { return commandAddr{} }
func (c *commandConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *commandConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *commandConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

type commandAddr struct{}

func (commandAddr) Network() string { return "proxycommand" }
func (commandAddr) String() string  { return "proxycommand" }

// lastWords keeps the beginning of a stream, as one line.
type lastWords struct{ kept capture }

func (w *lastWords) Write(p []byte) (int, error) {
	w.kept.limit = noiseLimit
	_ = w.kept.add(p) // more than the limit is not needed
	return len(p), nil
}

func (w *lastWords) text() string { return strings.Join(strings.Fields(string(w.kept.bytes())), " ") }
