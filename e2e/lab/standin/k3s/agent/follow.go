package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
)

// Follow keeps the balancer's list of servers as the cluster has it, until ctx
// ends. It logs in with the node's own certificate. k3s watches endpoints.
func (n *Node) Follow(ctx context.Context, b *Balancer) {
	for ok := true; ok; ok = sleep(ctx, 3*time.Second) {
		servers, err := n.servers(ctx)
		if err != nil || len(servers) == 0 {
			continue // the list of before is better than none
		}
		_ = b.Set(servers) // a list that cannot be written is lost with the process only
	}
}

func (n *Node) servers(ctx context.Context) ([]string, error) {
	ca, err := os.ReadFile(n.Data.Agent("server-ca.crt"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(n.Data.Agent("client-kubelet.crt"), n.Data.Agent("client-kubelet.key"))
	if err != nil {
		return nil, err
	}
	a := &access{url: n.URL, client: httpClient(&tls.Config{RootCAs: pki.Pool(ca), Certificates: []tls.Certificate{pair}})}
	data, err := a.do(ctx, http.MethodGet, "/v1-k3s/apiservers", nil, nil)
	if err != nil {
		return nil, err
	}
	var servers []string
	return servers, json.Unmarshal(data, &servers)
}
