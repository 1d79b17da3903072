// Command coredns is CoreDNS with the plugins that the packaged Corefile of
// k3s names, and none of the others: that leaves the cloud SDKs out.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// Order matters: a query passes the plugins in this order.
	dnsserver.Directives = []string{
		"reload", "ready", "health", "prometheus", "errors", "log", "cache",
		"loadbalance", "hosts", "kubernetes", "loop", "forward",
	}
	coremain.Run()
}
