package k3s

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Wordings of k3s's source at v1.36.3 and of k3s-io/k3s#13498, #10408, #5163.
func TestClassifyOfServersAndNetworks(t *testing.T) {
	for line, code := range map[string]diag.Code{
		`level=fatal msg="etcd cluster join failed: context deadline exceeded"`:                                                                                         "etcd-join-failed",
		`level=error msg="failed to run etcd: etcd cluster join failed: duplicate node name found, please use a unique name for this node"`:                             "etcd-duplicate-name",
		`level=fatal msg="starting kubernetes: preparing server: this server is not a member of the etcd cluster. Found [a=https://10.0.0.9:2380]"`:                     "etcd-not-member",
		`level=info msg="This node has been removed from the cluster - please restart k3s to rejoin the cluster"`:                                                       "etcd-not-member",
		`level=fatal msg="starting kubernetes: preparing server: failed to validate server configuration: critical configuration value mismatch between servers"`:       "server-options-differ",
		`level=fatal msg="/var/lib/rancher/k3s/server/cred/ipsec.psk newer than datastore and could cause a cluster outage. Remove the file(s) from disk and restart"`:  "datastore-older-than-disk",
		`E0601 server.go:1 "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [node-role.kubernetes.io/gpu]"`:                                    "node-labels-refused",
		`level=fatal msg="flannel exited: failed to get the interface: unable to find interface eth7"`:                                                                  "interface-missing",
		`level=fatal msg="Error: cluster-cidr, service-cidr and node-ip must share the same IP version (IPv4, IPv6 or dual-stack)"`:                                     "address-families",
		`level=error msg="Failed to connect: x509: certificate has expired or is not yet valid: current time 2022-07-22T18:55:59+12:00 is before 2022-07-22T07:45:55Z"`: "clock-wrong",
		`level=error msg="Failed to connect: x509: certificate has expired or is not yet valid: current time 2026-01-06T00:00:00Z is after 2025-10-30T22:37:33Z"`:       "certificates-expired",
		`level=fatal msg="Error: preparing server: server time isn't set properly: clock is not synchronized"`:                                                          "clock-wrong",
	} {
		if got, _ := Classify([]string{line}); got != code {
			t.Errorf("%s: %q, want %q", line, got, code)
		}
	}
}

func TestExitCodesOfTheStart(t *testing.T) {
	for exit, code := range map[int]diag.Code{34: "server-alone", 33: "k3s-start-timeout", 31: "k3s-crash-loop"} {
		o := &startOutput{journal: []string{`level=info msg="waiting for something"`}}
		p, ok := diag.Explain(o.startError("k3s", exit))
		if !ok || p.Code != code {
			t.Errorf("exit %d: %s, want %s", exit, p.Code, code)
		}
	}
}
