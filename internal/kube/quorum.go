package kube

import (
	"fmt"
	"slices"
	"strings"
)

// QuorumError says that removing servers would stop the API for good.
type QuorumError struct{ Reason string }

func (e *QuorumError) Error() string { return "removing servers: " + e.Reason }

// RemovalOrder says in which order servers may be removed, dead ones first,
// each after the members of etcd are the nodes that are left. servers are all
// servers of the cluster and whether they are healthy. The error is a
// *QuorumError where a step would leave less than a majority of the members
// at that moment. warning is set where the rest survives no failure.
func RemovalOrder(servers map[string]bool, remove []string) (order []string, warning string, err error) {
	var dead, healthy []string
	for _, name := range remove {
		switch up, known := servers[name]; {
		case !known:
			return nil, "", &QuorumError{name + " is not a server of this cluster"}
		case up:
			healthy = append(healthy, name)
		default:
			dead = append(dead, name)
		}
	}
	if len(remove) >= len(servers) {
		return nil, "", &QuorumError{"no server would be left; that is gpuctl reset"}
	}
	slices.Sort(dead)
	slices.Sort(healthy)
	order = append(dead, healthy...)
	members, up := len(servers), 0
	for _, isUp := range servers {
		if isUp {
			up++
		}
	}
	for _, name := range order {
		// The member leaves by a vote of the members of now; then the rest must still have a majority.
		if up < members/2+1 {
			return nil, "", &QuorumError{fmt.Sprintf("only %d of %d servers are healthy, there is no majority to remove %s", up, members, name)}
		}
		if servers[name] {
			up--
		}
		members--
		if up < members/2+1 {
			return nil, "", &QuorumError{fmt.Sprintf("without %s %d of %d servers would be healthy, less than a majority; mend or remove %s first", name, up, members, strings.Join(down(servers, order), ", "))}
		}
	}
	if members == 2 {
		warning = "2 servers survive no failure: add a third, or go down to one"
	}
	return order, warning, nil
}

func down(servers map[string]bool, gone []string) []string {
	var out []string
	for name, up := range servers {
		if !up && !slices.Contains(gone, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
