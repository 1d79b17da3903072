package agent

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

// Balancer passes connections to 127.0.0.1:6444 on to the servers, in order of
// preference. An agent talks to the cluster only through it. A server that does
// not answer loses its connections, so that they are made anew to another.
// Source: k3s pkg/agent/loadbalancer.
type Balancer struct {
	File    string // remembers the addresses
	Default string // host:port of the configured server

	mu      sync.Mutex
	servers []string
	down    map[string]bool
	open    map[net.Conn]string // connections to servers, by their address
}

const (
	balancerName = "k3s-agent-load-balancer"
	checkEvery   = 2 * time.Second
)

// remembered is the file.
type remembered struct {
	ServerURL       string
	ServerAddresses []string
}

// Run opens the port and serves until ctx ends.
func (b *Balancer) Run(ctx context.Context, port string) error {
	b.down, b.open = map[string]bool{}, map[net.Conn]string{}
	logrus.Infof("Updated load balancer %s default server: %s", balancerName, b.Default)
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	var known remembered
	if text, err := os.ReadFile(b.File); err == nil && json.Unmarshal(text, &known) == nil && known.ServerURL == "https://"+b.Default {
		b.servers = known.ServerAddresses
	}
	logrus.Infof("Running load balancer %s 127.0.0.1:%s -> %v [default: %s]", balancerName, port, b.servers, b.Default)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	go b.check(ctx)
	return b.write()
}

// Set remembers the servers' addresses.
func (b *Balancer) Set(servers []string) error {
	b.mu.Lock()
	same := slices.Equal(b.servers, servers)
	b.servers = servers
	b.mu.Unlock()
	if same {
		return nil
	}
	logrus.Infof("Updated load balancer %s server addresses -> %v [default: %s]", balancerName, servers, b.Default)
	return b.write()
}

func (b *Balancer) write() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := json.Marshal(remembered{"https://" + b.Default, b.servers})
	if err != nil {
		return err
	}
	return files.Write(b.File, text, 0o644)
}

// order lists the servers, those that do not answer last.
func (b *Balancer) order() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.servers)
	if !slices.Contains(all, b.Default) {
		all = append(all, b.Default)
	}
	slices.SortStableFunc(all, func(x, y string) int {
		switch {
		case b.down[x] == b.down[y]:
			return 0
		case b.down[x]:
			return 1
		}
		return -1
	})
	return all
}

// check looks whether the servers answer, until ctx ends.
func (b *Balancer) check(ctx context.Context) {
	for sleep(ctx, checkEvery) {
		for _, address := range b.order() {
			conn, err := net.DialTimeout("tcp", address, 2*time.Second)
			if err == nil {
				conn.Close()
			}
			b.mark(address, err)
		}
	}
}

func (b *Balancer) mark(address string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		delete(b.down, address)
		return
	}
	if !b.down[address] {
		logrus.Infof("Server %s@ACTIVE*->FAILED from failed dial", address)
	}
	b.down[address] = true
	for conn, to := range b.open {
		if to == address {
			conn.Close()
		}
	}
}

func (b *Balancer) serve(in net.Conn) {
	defer in.Close()
	for _, address := range b.order() {
		out, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err != nil {
			b.mark(address, err)
			continue
		}
		b.track(out, address)
		defer b.track(out, "")
		defer out.Close()
		go func() {
			io.Copy(out, in)
			out.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(in, out)
		return
	}
}

// track remembers to which server a connection goes; "" forgets it.
func (b *Balancer) track(conn net.Conn, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if address == "" {
		delete(b.open, conn)
		return
	}
	b.open[conn] = address
}
