package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuctl/gpuctl/internal/kube"
)

// ReapOptions say when a node counts as lost.
type ReapOptions struct {
	// After is how long a node must not have been Ready, by the cluster's own clock.
	After time.Duration
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// ReapNodes removes agents that have not been Ready for a time and whose
// machines do not answer. Servers, nodes that are Ready and machines that can
// be reached stay: those are for apply to mend.
func (e *Engine) ReapNodes(ctx context.Context, o ReapOptions) (RemoveResult, error) {
	s, err := e.observeAPI(ctx)
	if err != nil {
		return RemoveResult{Removed: []string{}}, err
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return RemoveResult{Removed: []string{}}, err
	}
	now, err := client.Clock(ctx, s.cluster.state)
	if err != nil {
		return RemoveResult{Removed: []string{}}, err
	}
	lost := s.cluster.state.Gone(now, o.After)
	remove := RemoveOptions{Gone: true, Confirm: o.Confirm, Drain: kube.DrainOptions{}}
	for _, n := range lost {
		remove.Nodes = append(remove.Nodes, n.Name)
	}
	seen, err := e.observeNodes(ctx, remove.Nodes)
	if err != nil {
		return RemoveResult{Removed: []string{}}, err
	}
	dead, alive := reapable(lost, seen, now)
	if remove.Nodes = dead; len(dead) == 0 {
		result := RemoveResult{Removed: []string{}}
		seen.unreached = nil
		result.ApplyResult, err = e.onNodes(ctx, seen, book{}, nil, nil, alive)
		return result, err
	}
	result, err := e.RemoveNodes(ctx, remove)
	return result, errors.Join(append([]error{err}, alive...)...)
}

// reapable splits lost nodes into those to remove and the reasons why others
// stay. It is pure.
func reapable(lost []kube.Node, s sight, now time.Time) (dead []string, alive []error) {
	for _, n := range lost {
		since := now.Sub(n.Since).Round(time.Second)
		if _, reached := s.facts[n.Name]; reached {
			alive = append(alive, &StaysError{Node: n.Name,
				Reason: fmt.Sprintf("its node has not been Ready for %s, but its machine answers: gpuctl apply mends it, gpuctl node remove takes it out", since)})
			continue
		}
		if fresh, joined := s.cluster.state.Node(n.Name); joined && !fresh.Ready {
			dead = append(dead, n.Name)
		}
	}
	return dead, alive
}
