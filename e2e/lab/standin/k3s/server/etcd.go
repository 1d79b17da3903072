package server

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"os"
)

// EtcdClient connects to the etcd of the server whose data is in data.
func EtcdClient(data layout.Data) (*clientv3.Client, error) {
	return etcdClient(data, "https://127.0.0.1:2379")
}

// etcdClient connects to any of the etcds at endpoints, in the name of the server whose data is in data.
func etcdClient(data layout.Data, endpoints ...string) (*clientv3.Client, error) {
	pair, err := tls.LoadX509KeyPair(data.TLS("etcd/client.crt"), data.TLS("etcd/client.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(data.TLS("etcd/server-ca.crt"))
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		DialTimeout: 5 * time.Second,
		TLS:         &tls.Config{RootCAs: pki.Pool(ca), Certificates: []tls.Certificate{pair}},
		Logger:      zap.NewNop(),
	})
}

// members is the list of /db/info.
func (s *Server) members(ctx context.Context) (any, error) {
	c, err := EtcdClient(s.Data)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := c.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for _, m := range list.Members {
		one := map[string]any{"ID": m.ID, "name": m.Name, "peerURLs": m.PeerURLs, "clientURLs": m.ClientURLs}
		if m.IsLearner {
			one["isLearner"] = true
		}
		all = append(all, one)
	}
	return all, nil
}
