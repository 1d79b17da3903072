package agent

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

// Balancer passes connections to 127.0.0.1:6444 on to the servers, in order of
// preference. An agent talks to the cluster only through it.
type Balancer struct {
	File    string // remembers the addresses
	Default string // host:port of the configured server

	mu      sync.Mutex
	servers []string
}

const balancerName = "k3s-agent-load-balancer"

// Run opens the port and serves until ctx ends.
func (b *Balancer) Run(ctx context.Context, port string) error {
	logrus.Infof("Updated load balancer %s default server: %s", balancerName, b.Default)
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	logrus.Infof("Running load balancer %s 127.0.0.1:%s -> [] [default: %s]", balancerName, port, b.Default)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b.Set(nil)
}

// Set remembers the servers' addresses.
func (b *Balancer) Set(servers []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = servers
	text, err := json.Marshal(map[string]any{"ServerURL": "https://" + b.Default, "ServerAddresses": servers})
	if err != nil {
		return err
	}
	return files.Write(b.File, text, 0o644)
}

func (b *Balancer) serve(in net.Conn) {
	defer in.Close()
	b.mu.Lock()
	servers := append([]string{}, b.servers...)
	b.mu.Unlock()
	for _, address := range append(servers, b.Default) {
		out, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			continue
		}
		defer out.Close()
		go func() {
			io.Copy(out, in)
			out.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(in, out)
		return
	}
}
