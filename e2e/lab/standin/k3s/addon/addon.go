// Package addon holds the packaged components that the stand-in deploys:
// CoreDNS and the RuntimeClasses. k3s's others (traefik, metrics-server,
// local-storage, servicelb) are not imitated.
package addon

import (
	_ "embed"
	"strings"
)

//go:embed coredns.yaml
var coredns string

//go:embed runtimes.yaml
var runtimes string

// Values are what differs between clusters.
type Values struct {
	ClusterDNS    string
	ClusterDomain string
	Registry      string // put before image names, may be empty
}

// Manifests returns the manifests by the name that the option disable knows.
func Manifests(v Values) map[string]string {
	registry := ""
	if v.Registry != "" {
		registry = v.Registry + "/"
	}
	replace := strings.NewReplacer(
		"%{CLUSTER_DNS}%", v.ClusterDNS,
		"%{CLUSTER_DOMAIN}%", v.ClusterDomain,
		"%{SYSTEM_DEFAULT_REGISTRY}%", registry,
	)
	return map[string]string{"coredns": replace.Replace(coredns), "runtimes": runtimes}
}
