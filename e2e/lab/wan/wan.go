// Package wan puts a long, unreliable line between a client and a machine: a
// TCP relay that delays, cuts and stalls. Kernels of small test hosts lack
// netem, and a cut must hit one line, not a machine.
package wan

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Line is a relay from a local address to a target.
type Line struct {
	listener net.Listener
	target   string
	delay    time.Duration

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	down  bool
	// stalled is closed when no line is stalled.
	stalled chan struct{}
}

// Open listens on a free port of 127.0.0.1 and relays to target (host:port)
// until ctx ends. Each direction is late by half of rtt. Opening a connection
// itself is not delayed.
func Open(ctx context.Context, target string, rtt time.Duration) (*Line, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a line to %s: %w", target, err)
	}
	l := &Line{
		listener: listener, target: target, delay: rtt / 2,
		conns: map[net.Conn]struct{}{}, stalled: make(chan struct{}),
	}
	close(l.stalled)
	context.AfterFunc(ctx, func() {
		listener.Close()
		l.Cut()
	})
	go l.accept(ctx)
	return l, nil
}

// Addr is the host and port to connect to.
func (l *Line) Addr() *net.TCPAddr { return l.listener.Addr().(*net.TCPAddr) }

// Cut resets all connections and those to come, until Restore.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for conn := range l.conns {
		reset(conn)
	}
	clear(l.conns)
}

// Stall keeps all connections open and lets nothing through, until Restore.
func (l *Line) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stalled:
		l.stalled = make(chan struct{})
	default: // stalled already
	}
}

// Restore ends Cut and Stall. Connections that were cut stay cut.
func (l *Line) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
	select {
	case <-l.stalled:
	default:
		close(l.stalled)
	}
}

func (l *Line) accept(ctx context.Context) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.relay(ctx, conn)
	}
}

func (l *Line) relay(ctx context.Context, near net.Conn) {
	if !l.add(near) {
		return
	}
	defer l.drop(near)
	far, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		return
	}
	if !l.add(far) {
		return
	}
	defer l.drop(far)
	var both sync.WaitGroup
	both.Go(func() { l.pump(ctx, far, near) })
	both.Go(func() { l.pump(ctx, near, far) })
	both.Wait()
}

// chunk is data and when it is due at the other end.
type chunk struct {
	data []byte
	due  time.Time
}

// pump copies from one connection to the other, late by the line's delay.
func (l *Line) pump(ctx context.Context, to, from net.Conn) {
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				chunks <- chunk{data[:n], time.Now().Add(l.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		time.Sleep(time.Until(c.due))
		select {
		case <-l.open():
		case <-ctx.Done():
		}
		if _, err := to.Write(c.data); err != nil {
			from.Close()
		}
	}
	l.endOf(to)
}

// endOf passes the end of one direction on, unless the line was cut: then the
// farewell would come before the reset.
func (l *Line) endOf(to net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tcp, ok := to.(*net.TCPConn); ok && !l.down {
		_ = tcp.CloseWrite()
	}
}

func (l *Line) open() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalled
}

func (l *Line) add(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		reset(conn)
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Line) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	conn.Close()
}

// reset closes without the farewell that an orderly close sends.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
