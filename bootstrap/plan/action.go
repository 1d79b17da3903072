// Package plan holds what is going to change and runs it: actions with needs,
// an executor that walks their graph, and a report of what became of each.
// It knows nothing of machines, SSH or Kubernetes.
package plan

import (
	"context"
	"time"
)

// Say reports what an action is doing or waiting for, one line without secrets.
// The last line said becomes the reason if the action then runs out of time.
type Say func(format string, args ...any)

// Consent names a change that a user must have agreed to before it is made.
type Consent string

const (
	ConsentReboot    Consent = "reboot"
	ConsentDriver    Consent = "driver"
	ConsentDrain     Consent = "drain"
	ConsentUninstall Consent = "uninstall"
	ConsentDatastore Consent = "datastore"
	ConsentRestart   Consent = "restart"
)

// Action is one change. Everything but Apply is data, so that a plan can be
// printed, compared and tested without touching anything.
type Action struct {
	// ID is unique in a run and stable between runs: "gpu-1/k3s-agent". Others need it by this name.
	ID string `json:"id"`
	// Machine is the name of the machine that changes; empty for the cluster.
	Machine string `json:"machine,omitempty"`
	// Title says what changes, as an order: "install k3s v1.36.3+k3s1 (agent)".
	Title string `json:"title"`
	// Reason says why it is pending: "k3s is absent", "config differs: node-ip".
	Reason string `json:"reason"`
	// Changes are the exact versions, files and sizes; secrets and values of other
	// machines stand as references ("token@server-1").
	Changes []string `json:"changes,omitempty"`
	// Chosen is what was chosen from what was seen of the machines, with the reason,
	// a line for each: an address, an interface. It is told wherever the plan is.
	Chosen []string `json:"chosen,omitempty"`
	// Needs are IDs of actions that must be done first. An ID that is not in the
	// plan is already satisfied.
	Needs []string `json:"needs,omitempty"`
	// After are IDs that must have ended, well or badly, before this one starts:
	// a gate over the whole cluster does not fall with one bad machine.
	After []string `json:"after,omitempty"`
	// Barrier: after it the machine (and the cluster) is observed and planned again.
	Barrier bool `json:"barrier,omitempty"`
	// Ahead: the action only prepares for one that needs it, and observing shows
	// nothing of it before that one is done. Done once in a run it is done.
	Ahead bool `json:"ahead,omitempty"`
	// Consent, when set, must be among the consents given.
	Consent Consent `json:"consent,omitempty"`
	// Timeout bounds Apply; 0 means 10 minutes.
	Timeout time.Duration `json:"-"`
	// Apply makes the change and proves its own post-condition. It is idempotent.
	Apply func(ctx context.Context, say Say) error `json:"-"`
}
