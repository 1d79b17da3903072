package sshconn

import (
	"net"
	"sync/atomic"
)

// Stats counts what a connection, or all connections of a Dialer, cost.
type Stats struct {
	// Connections is the number of SSH connections that got as far as a login.
	Connections int64
	// Commands is the number of commands sent, those that end others included.
	Commands int64
	// BytesUp and BytesDown are bytes on the wire, encryption included.
	BytesUp, BytesDown int64
}

type counters struct {
	connections, commands, up, down atomic.Int64
}

func (c *counters) snapshot() Stats {
	return Stats{
		Connections: c.connections.Load(),
		Commands:    c.commands.Load(),
		BytesUp:     c.up.Load(),
		BytesDown:   c.down.Load(),
	}
}

func (s Stats) plus(o Stats) Stats {
	return Stats{
		Connections: s.Connections + o.Connections,
		Commands:    s.Commands + o.Commands,
		BytesUp:     s.BytesUp + o.BytesUp,
		BytesDown:   s.BytesDown + o.BytesDown,
	}
}

// greetingBytes is how much of the peer's first words is kept to say what answered.
const greetingBytes = 256

// wire is the transport under one SSH connection. It counts bytes and keeps
// the peer's first ones.
type wire struct {
	net.Conn
	stats    *counters
	greeting [greetingBytes]byte
	greeted  atomic.Int64
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.stats.down.Add(int64(n))
	if have := w.greeted.Load(); n > 0 && have < greetingBytes {
		w.greeted.Store(have + int64(copy(w.greeting[have:], p[:n])))
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.stats.up.Add(int64(n))
	return n, err
}

// heard returns the peer's first bytes. Called once reading has ended or failed.
func (w *wire) heard() []byte { return w.greeting[:w.greeted.Load()] }
