package k3s

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

const (
	// ClusterFile says on every machine to which cluster it belongs: a random id, no secret.
	ClusterFile = "/etc/rancher/k3s/gpuctl.id"
	// KnownHostsFile holds the host keys of the cluster's machines, on its server: who
	// trusts the server need not trust each of the others anew.
	KnownHostsFile = "/etc/rancher/k3s/gpuctl.known_hosts"
)

// clusterID reads ClusterFile; what it does not understand is no id.
func clusterID(text []byte) string {
	return regexp.MustCompile(`^[a-z0-9]{8,64}$`).FindString(strings.TrimSpace(string(text)))
}

// ReadClusterID asks a machine to which cluster it belongs; empty where it does not
// say, or is not reached.
func ReadClusterID(ctx context.Context, on remote.Runner) string {
	res, err := on.Run(ctx, remote.Cmd{Name: "read the cluster's id", Script: "cat " + ClusterFile + "\n", Sudo: true, Timeout: 30 * time.Second})
	if err != nil {
		return ""
	}
	return clusterID(res.Stdout)
}

// withEnd gives a text its last line break back.
func withEnd(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	return append(bytes.Clone(text), '\n')
}

// Foreign says that the machine belongs to another cluster than id, by its own
// word. A machine that says nothing is free.
func (s Seen) Foreign(id string) bool {
	file, there := s.Files[ClusterFile]
	return there && id != "" && s.Hash != nil && file.Hash != s.Hash([]byte(id+"\n"))
}

// Owned says that the machine belongs to the cluster, by its own word.
func (s Seen) Owned(id string) bool {
	file, there := s.Files[ClusterFile]
	return there && id != "" && s.Hash != nil && file.Hash == s.Hash([]byte(id+"\n"))
}

// KnownHostsID is the action after which the server has the host keys of all. It is
// the cluster's and no machine's: a machine that joins alone changes it too.
const KnownHostsID = "cluster/known-hosts"

// KnownHostsPlan lays host keys on the server, machine. kept is told what was laid.
func KnownHostsPlan(machine string, have, want []byte, on remote.Runner, kept func([]byte)) []plan.Action {
	if len(want) == 0 || string(have) == string(want) {
		return nil
	}
	reason := KnownHostsFile + " is not up to date"
	if len(have) == 0 {
		reason = KnownHostsFile + " is absent"
	}
	return []plan.Action{{
		ID: KnownHostsID, Title: "keep the machines' host keys for colleagues", Reason: reason,
		Changes: []string{"write " + KnownHostsFile}, Needs: []string{ActionID(machine)}, Timeout: time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			_, err := on.Run(ctx, remote.Cmd{
				Name: "keep host keys", Sudo: true, Timeout: 30 * time.Second,
				Script: layScript + heredoc("stage 0600 "+KnownHostsFile, string(want)) + "swap\n",
			})
			if err != nil {
				return fmt.Errorf("keeping the machines' host keys: %w", err)
			}
			kept(want)
			return nil
		},
	}}
}
