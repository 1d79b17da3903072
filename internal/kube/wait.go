package kube

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitError says that a wait reached its limit, and what it still waited for.
type WaitError struct {
	Limit time.Duration
	// Reason is the last one the condition gave.
	Reason string
	// Err is the context's error.
	Err error
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("not within %s: %s", e.Limit, e.Reason)
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }

// Condition looks once. It returns done, or the reason why not yet. An error
// ends the wait, except one that says that the API is not there now.
type Condition func(ctx context.Context) (done bool, reason string, err error)

// Wait looks every so often until the condition is done or the limit has
// passed; then it returns a *WaitError with the last reason. say, which may be
// nil, gets each new reason. A cancelled context ends it with the context's error.
func Wait(ctx context.Context, every, limit time.Duration, cond Condition, say func(format string, args ...any)) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := "nothing was seen yet"
	err := retry.Do(bounded, retry.NewConstant(every), func(ctx context.Context) error {
		done, reason, err := cond(ctx)
		if done && err == nil {
			return nil
		}
		if err != nil {
			if !IsNoAPI(err) {
				return err
			}
			reason = err.Error()
		}
		if reason != last && say != nil {
			say("%s", reason)
		}
		last = reason
		return retry.RetryableError(errors.New(reason))
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		return &WaitError{Limit: limit, Reason: last, Err: bounded.Err()}
	}
	return err
}

// NodeReady is the condition that a node is Ready.
func (c *Client) NodeReady(name string) Condition {
	return func(ctx context.Context) (bool, string, error) {
		n, err := c.node(ctx, name)
		if apierrors.IsNotFound(err) {
			return false, "node " + name + " has not registered yet", nil
		}
		if err != nil {
			return false, "", err
		}
		return n.Ready, "node " + name + " is not Ready: " + n.Reason, nil
	}
}

// NodeAt is the condition that a node is Ready and its kubelet of a release.
func (c *Client) NodeAt(name, version string) Condition {
	ready := c.NodeReady(name)
	return func(ctx context.Context) (bool, string, error) {
		n, err := c.node(ctx, name)
		if err == nil && n.Kubelet != version {
			return false, "the kubelet of node " + name + " is still " + n.Kubelet, nil
		}
		return ready(ctx)
	}
}

// NodeGPUs is the condition that a node's allocatable nvidia.com resources are
// exactly as planned; resources named with 0 must be absent or 0.
func (c *Client) NodeGPUs(name string, want map[string]int64) Condition {
	return func(ctx context.Context) (bool, string, error) {
		n, err := c.node(ctx, name)
		if apierrors.IsNotFound(err) {
			return false, "node " + name + " has not registered yet", nil
		}
		if err != nil {
			return false, "", err
		}
		var off []string
		for resource, count := range want {
			if n.Allocatable[resource] != count {
				off = append(off, fmt.Sprintf("%d of %d %s", n.Allocatable[resource], count, resource))
			}
		}
		sort.Strings(off)
		return len(off) == 0, "node " + name + " offers " + strings.Join(off, ", "), nil
	}
}

// APIReady is the condition that the API server answers that it is ready.
func (c *Client) APIReady() Condition {
	return func(ctx context.Context) (bool, string, error) {
		_, err := c.set.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
		return err == nil, "", err
	}
}

func (c *Client) node(ctx context.Context, name string) (Node, error) {
	n, err := c.set.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Node{}, err
	}
	return nodeOf(n), nil
}
