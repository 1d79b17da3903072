package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag/nearest"
)

// where checks that there is exactly one list of machines.
func (k checker) where(s *Spec) {
	from := s.MachinesFrom
	switch {
	case from != nil && len(s.Machines) > 0:
		k.problem("spec.machinesFrom", "stands beside spec.machines; give one of the two")
	case from != nil && from.Terraform == nil:
		k.problem("spec.machinesFrom", "names no place; terraform is known")
	case from != nil:
		k.terraform(*from.Terraform)
	case len(s.Machines) == 0 && s.Kubernetes.Existing == nil && !k.failed("spec.machines"):
		k.problem("spec.machines", "no machine; give at least one, or machinesFrom")
	}
}

func (k checker) machines(s *Spec) {
	groups := map[string]bool{}
	var known []string
	for _, g := range s.Groups {
		groups[g.Name] = true
		known = append(known, g.Name)
	}
	for i := range s.Machines {
		m := &s.Machines[i]
		field := fmt.Sprintf("spec.machines[%d]", i)
		k.machine(m, field)
		if m.Group != "" && !groups[m.Group] {
			hint := "; no group is defined"
			if near := nearest.Of(m.Group, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			} else if len(known) > 0 {
				hint = "; known are " + strings.Join(known, ", ")
			}
			k.problem(field+".group", "there is no group %q%s", m.Group, hint)
		}
	}
	k.unique(s)
	if s.Kubernetes.Existing == nil {
		k.roles(s)
	}
}

func (k checker) machine(m *Machine, field string) {
	m.Name = strings.ToLower(m.Name) // as k3s does with host names
	if err := CheckNodeName(m.Name); err != nil && m.Host != "" {
		k.problem(field+".name", "%v", err)
	}
	if _, given := k.at[field+".host"]; given && m.Host == "" && !k.failed(field+".host") {
		k.problem(field+".host", "is empty")
	}
	k.host(m.Host, field+".host")
	k.port(m.Port, field+".port")
	k.match(k.user, m.User, field+".user", userRule)
	k.match(k.file, m.IdentityFile, field+".identityFile", "a path without control characters")
	k.jump(m.Jump, field+".jump")
	k.match(k.hostKey, m.HostKey, field+".hostKey", `a key as ssh-keyscan prints it, without the host: "ssh-ed25519 AAAA..."`)
	if _, err := netip.ParseAddr(m.PrivateAddress); m.PrivateAddress != "" && err != nil {
		k.problem(field+".privateAddress", "%q is not an IP address", m.PrivateAddress)
	}
	k.dataDir(m.DataDir, field+".dataDir")
	k.dataDisk(m.DataDisk, m.DataDir, field+".dataDisk")
	if m.GPUs != nil && (*m.GPUs < 0 || *m.GPUs > 1024) {
		k.problem(field+".gpus", "%d is no number of GPUs (0 to 1024)", *m.GPUs)
	}
	k.match(k.file, m.GPUModel, field+".gpuModel", "a part of a model's name")
}

// unique refuses two machines of one name, and one machine given twice.
func (k checker) unique(s *Spec) {
	byName, byPlace := map[string]int{}, map[string]int{}
	for i, m := range s.Machines {
		if m.Host == "" {
			continue
		}
		field := fmt.Sprintf("spec.machines[%d]", i)
		if j, twice := byName[m.Name]; twice {
			k.problem(field+".name", "%s and %s (spec.machines[%d]) would both be the node %q; give one another name",
				m.Host, s.Machines[j].Host, j, m.Name)
		}
		byName[m.Name] = i
		port := m.Port
		if port == 0 {
			port = s.SSH.Port
		}
		place := net.JoinHostPort(strings.ToLower(m.Host), strconv.Itoa(port)) + " by " + or(m.Jump, s.SSH.Jump)
		if j, twice := byPlace[place]; twice {
			k.problem(field+".host", "%s is the machine of spec.machines[%d] again", m.Host, j)
		}
		byPlace[place] = i
	}
}

// maxServers: each further member makes every write of etcd wait for more of
// them, and five bear the loss of two (https://etcd.io/docs/v3.6/faq).
const maxServers = 5

// roles does not refuse an even number of servers: a cluster may have come down
// to it. Whether one is about to be made shows only in what the machines are.
func (k checker) roles(s *Spec) {
	machines := s.Machines
	var servers []string
	for _, m := range machines {
		if m.Role == "server" {
			servers = append(servers, m.Name)
		}
	}
	switch {
	case len(servers) > maxServers:
		k.problem("spec.machines", "%s have role server: etcd serves with three or five, more only make it slower", strings.Join(servers, ", "))
	case len(servers) > 1 && s.Kubernetes.Datastore == "sqlite":
		k.problem("spec.kubernetes.datastore", "sqlite serves one server; %s need etcd", strings.Join(servers, ", "))
	case len(servers) == 0 && len(machines) > 0 && !k.anyRoleFailed(len(machines)):
		k.problem("spec.machines", "no machine has role: server; say which one runs the control plane")
	}
}

func (k checker) anyRoleFailed(n int) bool {
	for i := range n {
		if k.failed(fmt.Sprintf("spec.machines[%d].role", i)) {
			return true
		}
	}
	return false
}
