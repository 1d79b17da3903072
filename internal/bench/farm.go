//go:build unix

package bench

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// FarmOptions say how the machines behave.
type FarmOptions struct {
	Machines  int
	RoundTrip time.Duration
	// Together holds every probe's answer back until all machines have been
	// asked: a client that lets one wait for another never gets one.
	Together bool
	// Change makes another machine of one: it gets the answer to a probe and
	// returns the one to send. Nil changes nothing.
	Change func(machine int, answer string) string
}

// Farm is a cluster of simulated machines behind SSH servers.
type Farm struct {
	// Ports are where the machines listen on 127.0.0.1, in the order of their numbers.
	Ports []int
	// HostKey is that of all machines, in authorized_keys form.
	HostKey string

	options   FarmOptions
	scene     scene
	api       *api
	config    *ssh.ServerConfig
	listeners []net.Listener
	asked     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	// scripts are the inputs of each machine's commands.
	scripts map[int][][]byte
	meters  map[int]*meter // of the newest connection
	count   Counts
	busy    map[int]bool
}

// Counts are what the machines saw.
type Counts struct {
	// Connections, Logins and Commands of all machines together.
	Connections, Logins, Commands int
	// MostCommands is the most that one machine was sent.
	MostCommands int
	// MostBusy is how many machines had a command at the same time.
	MostBusy int
	// BytesUp and BytesDown are of the last machine, as on the wire.
	BytesUp, BytesDown int64
	// Forwards are the connections to the API through the server.
	Forwards int
	// Deeds are commands other than the two that only look.
	Deeds int
}

// StartFarm lets n machines listen.
func StartFarm(o FarmOptions) (*Farm, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	f := &Farm{options: o, HostKey: string(ssh.MarshalAuthorizedKey(signer.PublicKey())),
		conns: map[net.Conn]bool{}, scripts: map[int][][]byte{}, meters: map[int]*meter{}, busy: map[int]bool{}}
	if f.scene, err = newScene(o.Machines); err != nil {
		return nil, err
	}
	if f.api, err = startAPI(f.scene); err != nil {
		return nil, err
	}
	f.config = &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	f.config.AddHostKey(signer)
	if o.Together {
		f.asked.Add(o.Machines)
	}
	for i := range o.Machines {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("machine %d: %w", i, err), f.Close())
		}
		f.listeners = append(f.listeners, l)
		f.Ports = append(f.Ports, l.Addr().(*net.TCPAddr).Port)
		go f.accept(l, i)
	}
	return f, nil
}

// Counts returns what the machines have seen so far.
func (f *Farm) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.count
	for _, sent := range f.scripts {
		c.MostCommands = max(c.MostCommands, len(sent))
	}
	if m := f.meters[f.options.Machines-1]; m != nil {
		c.BytesUp, c.BytesDown = m.in.Load(), m.out.Load()
	}
	return c
}

// Scripts returns what the commands of a machine got on standard input.
func (f *Farm) Scripts(machine int) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]byte(nil), f.scripts[machine]...)
}

// Close ends the farm and all connections to it.
func (f *Farm) Close() error {
	var errs []error
	for _, l := range f.listeners {
		errs = append(errs, l.Close())
	}
	f.mu.Lock()
	for c := range f.conns {
		_ = c.Close() // the client may have closed it
	}
	f.mu.Unlock()
	return errors.Join(append(errs, f.api.close())...)
}

func (f *Farm) accept(l net.Listener, machine int) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.count.Connections++
		f.conns[c] = true
		f.mu.Unlock()
		go f.serve(&meter{Conn: lengthen(c, f.options.RoundTrip)}, c, machine)
	}
}

// meter counts bytes as the machine sees them.
type meter struct {
	net.Conn
	in, out atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.in.Add(int64(n))
	return n, err
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.out.Add(int64(n))
	return n, err
}

func (f *Farm) serve(m *meter, raw net.Conn, machine int) {
	defer func() {
		_ = raw.Close() // over in any case
		f.mu.Lock()
		delete(f.conns, raw)
		f.mu.Unlock()
	}()
	conn, channels, requests, err := ssh.NewServerConn(m, f.config)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.count.Logins++
	f.meters[machine] = m
	f.mu.Unlock()
	go ssh.DiscardRequests(requests)
	for nc := range channels {
		switch nc.ChannelType() {
		case "session":
			go f.session(nc, machine)
		case "direct-tcpip":
			go f.forward(nc)
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
	_ = conn.Close() // the client has left
}
