package bootstrap

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Dialer connects to a machine. Errors are *remote.ConnectError; how says in
// words how the machine was reached ("ubuntu@203.0.113.7:22").
type Dialer func(ctx context.Context, m inventory.Machine) (h remote.Host, how string, err error)

// fleet holds one connection per machine: made when first needed, made again
// after it was lost, shared by everything that runs on the machine.
type fleet struct {
	dial    Dialer
	sink    event.Sink
	members map[string]*member
	// env are variables of every command: the proxy for downloads.
	env atomic.Pointer[map[string]string]
}

// setEnv changes the variables of the commands from now on.
func (f *fleet) setEnv(env map[string]string) { f.env.Store(&env) }

type member struct {
	machine inventory.Machine
	fleet   *fleet

	mu    sync.Mutex // guards host and stats, held while dialling: the others wait for that connection
	host  remote.Host
	stats Traffic
}

func newFleet(machines []inventory.Machine, dial Dialer, sink event.Sink) *fleet {
	f := &fleet{dial: dial, sink: sink, members: map[string]*member{}}
	for _, m := range machines {
		f.members[m.Name] = &member{machine: m, fleet: f}
	}
	return f
}

// on returns the machine's runner. The machine is of the inventory.
func (f *fleet) on(name string) *member { return f.members[name] }

// close ends all connections.
func (f *fleet) close() error {
	var errs []error
	for _, m := range f.members {
		m.mu.Lock()
		if m.host != nil {
			m.retire(m.host)
			errs = append(errs, m.host.Close())
			m.host = nil
		}
		m.mu.Unlock()
	}
	return errors.Join(errs...)
}

// traffic is what each machine was asked for so far.
func (f *fleet) traffic() map[string]Traffic {
	all := map[string]Traffic{}
	for name, m := range f.members {
		m.mu.Lock()
		t := m.stats
		if m.host != nil {
			t = t.plus(statsOf(m.host))
		}
		m.mu.Unlock()
		if t.Connections > 0 {
			all[name] = t
		}
	}
	return all
}

// hostKeys are the keys that the machines showed, as lines of known_hosts; a
// connection that does not tell is left out.
func (f *fleet) hostKeys() map[string]string {
	all := map[string]string{}
	for name, m := range f.members {
		m.mu.Lock()
		if h, ok := m.host.(interface{ KnownHost() string }); ok && h.KnownHost() != "" {
			all[name] = h.KnownHost()
		}
		m.mu.Unlock()
	}
	return all
}

// connect returns the machine's connection.
func (m *member) connect(ctx context.Context) (remote.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.host != nil {
		return m.host, nil
	}
	h, how, err := m.fleet.dial(ctx, m.machine)
	if err != nil {
		return nil, err
	}
	m.fleet.sink.Emit(event.Event{Kind: event.MachineConnected, Machine: m.machine.Name, Text: how})
	m.host = h
	return h, nil
}

// forget drops a connection that proved dead, unless a newer one took its place.
func (m *member) forget(h remote.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.host == h {
		m.retire(h)
		m.host = nil
		_ = h.Close() // it is lost already; what it says adds nothing
	}
}

func (m *member) retire(h remote.Host) { m.stats = m.stats.plus(statsOf(h)) }

// Run runs a command, connecting first where needed. A command that was cut off
// is not repeated: its result is unknown.
func (m *member) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	h, err := m.connect(ctx)
	if err != nil {
		return remote.Result{}, err
	}
	if env := m.fleet.env.Load(); env != nil {
		c.Env = withEnv(*env, c.Env)
	}
	res, err := h.Run(ctx, c)
	if err != nil && isLost(h) {
		m.forget(h)
	}
	return res, err
}

// withEnv adds variables to those that a command sets itself.
func withEnv(base, own map[string]string) map[string]string {
	if len(base) == 0 {
		return own
	}
	env := maps.Clone(base)
	maps.Copy(env, own)
	return env
}

// Dial opens a connection as seen from the machine.
func (m *member) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	h, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	c, err := h.Dial(ctx, network, address)
	if err != nil && isLost(h) {
		m.forget(h)
	}
	return c, err
}

// isLost says whether the connection itself is gone; a command that failed or
// ran out of its own time leaves the connection as it is.
func isLost(h remote.Host) bool {
	l, ok := h.(interface{ Lost() error })
	return ok && l.Lost() != nil
}

func (t Traffic) plus(o Traffic) Traffic {
	return Traffic{
		Connections: t.Connections + o.Connections, Commands: t.Commands + o.Commands,
		BytesUp: t.BytesUp + o.BytesUp, BytesDown: t.BytesDown + o.BytesDown,
	}
}

// statsOf asks a connection what went over it; a connection that does not count says nothing.
func statsOf(h remote.Host) Traffic {
	c, ok := h.(interface{ Stats() sshconn.Stats })
	if !ok {
		return Traffic{}
	}
	s := c.Stats()
	return Traffic{Connections: int(s.Connections), Commands: int(s.Commands), BytesUp: s.BytesUp, BytesDown: s.BytesDown}
}
