//go:build unix

package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Site is a user's directory: gpuctl.yaml, a key, and the known_hosts of the
// cluster as the first run left it.
type Site struct {
	File, KnownHosts, Key string
}

// NewSite fills a directory for a farm.
func NewSite(dir string, ports []int, hostKey string) (Site, error) {
	s := Site{File: filepath.Join(dir, "gpuctl.yaml"), KnownHosts: filepath.Join(dir, "known_hosts"), Key: filepath.Join(dir, "id")}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return s, err
	}
	block, err := ssh.MarshalPrivateKey(private, "bench")
	if err != nil {
		return s, err
	}
	var known strings.Builder
	for _, p := range ports {
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s\n", p, strings.TrimSpace(hostKey))
	}
	return s, errors.Join(
		os.WriteFile(s.Key, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(s.KnownHosts, []byte(known.String()), 0o600),
		os.WriteFile(s.File, []byte(Configuration(ports, s.Key)), 0o600),
	)
}

// Cost is what a run cost the client, as the product itself counts it.
type Cost struct {
	// Seconds is wall time from reading gpuctl.yaml to the last connection closed.
	Seconds float64 `json:"seconds"`
	// CPU and ChildCPU are seconds of this process and of its children (ssh -G).
	CPU      float64 `json:"cpu"`
	ChildCPU float64 `json:"childCPU"`
	// RestKiB is resident before, PeakKiB at most.
	RestKiB int64 `json:"restKiB"`
	PeakKiB int64 `json:"peakKiB"`
	// Of the machine that cost most.
	Connections int   `json:"connections"`
	Commands    int   `json:"commands"`
	BytesUp     int64 `json:"bytesUp"`
	BytesDown   int64 `json:"bytesDown"`
}

// Run runs a command of the product that must find nothing to do: "check" or "apply".
// sshConfig is sshconn.Options.ConfigFile: empty asks the system's ssh, "none" nobody.
func Run(ctx context.Context, what string, site Site, sshConfig string) (Cost, error) {
	before := usage()
	c, err := config.Load(site.File)
	if err != nil {
		return Cost{}, err
	}
	set, err := charts.Load(c.Spec.Set)
	if err != nil {
		return Cost{}, err
	}
	dialer := sshconn.NewDialer(sshconn.Options{KnownHosts: site.KnownHosts, ConfigFile: sshConfig})
	e, err := bootstrap.New(bootstrap.Settings{
		Config: c, Set: set, Inventory: c.Inventory(), Dial: dialWith(dialer), Sink: event.Discard(),
		Key: rand.Text(), Owner: "bench", KnownHosts: site.KnownHosts,
	})
	if err != nil {
		return Cost{}, err
	}
	traffic, err := run(ctx, e, what)
	err = errors.Join(err, e.Close(), dialer.Close())
	cost := usage().since(before)
	for _, t := range traffic {
		cost.Connections, cost.Commands = max(cost.Connections, t.Connections), max(cost.Commands, t.Commands)
		cost.BytesUp, cost.BytesDown = max(cost.BytesUp, t.BytesUp), max(cost.BytesDown, t.BytesDown)
	}
	return cost, err
}

func run(ctx context.Context, e *bootstrap.Engine, what string) (map[string]bootstrap.Traffic, error) {
	if what == "check" {
		_, err := e.Check(ctx, bootstrap.CheckOptions{NoPairs: true})
		return nil, err
	}
	refuse := func(_ context.Context, p bootstrap.PlanResult) error {
		var why []string
		for _, a := range p.Actions {
			why = append(why, a.ID+": "+a.Reason)
		}
		return fmt.Errorf("the farm is not as gpuctl wants it: %s", strings.Join(why, "\n"))
	}
	r, err := e.Apply(ctx, bootstrap.ApplyOptions{Confirm: refuse})
	var blocked *bootstrap.BlockedError
	if errors.As(err, &blocked) {
		err = fmt.Errorf("%w: %s", err, blocked.Findings[0].Evidence)
	}
	return r.Traffic, err
}

// dialWith connects as cmd/gpuctl does.
func dialWith(d *sshconn.Dialer) bootstrap.Dialer {
	return func(ctx context.Context, m inventory.Machine) (remote.Host, string, error) {
		c, err := d.Dial(ctx, sshconn.Target{
			Name: m.Name, Host: m.Host, Port: m.Port, User: m.User,
			IdentityFile: m.IdentityFile, Jump: m.Jump, HostKey: m.HostKey,
		})
		if err != nil {
			return nil, "", err
		}
		return c, c.Info().Address, nil
	}
}

// reading is what the process had used at one moment.
type reading struct {
	at         time.Time
	cpu, child time.Duration
	rest, peak int64
}

func (r reading) since(b reading) Cost {
	return Cost{
		Seconds: r.at.Sub(b.at).Seconds(), CPU: (r.cpu - b.cpu).Seconds(), ChildCPU: (r.child - b.child).Seconds(),
		RestKiB: b.rest, PeakKiB: r.peak,
	}
}
