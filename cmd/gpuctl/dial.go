package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// How long a machine that does not answer is tried again: a rented machine may
// still boot when one begins to make a cluster of it; a look is not worth waiting.
const (
	patience = 5 * time.Minute
	briefly  = 10 * time.Second
)

// dialOptions are what gpuctl.yaml, the state and the user say about SSH.
func dialOptions(d engineDeps) sshconn.Options {
	ssh := d.Config.Spec.SSH
	o := sshconn.Options{
		KnownHosts:   d.State.KnownHosts(),
		Strict:       ssh.HostKeys == "strict",
		SudoPassword: d.Ask.sudoPassword,
		Passphrase:   d.Ask.passphrase,
		RetryFor:     d.RetryFor,
		OnRetry:      tellRetries(d.Sink),
		Logger:       d.Log,
		OnNewHostKey: func(i sshconn.Info) {
			d.Sink.Emit(event.Event{Kind: event.Note, Machine: i.Host,
				Text: fmt.Sprintf("new host key %s %s, pinned in %s", i.KeyType, i.Fingerprint, d.State.KnownHosts())})
		},
	}
	o.SecretEnv = d.Config.SecretEnv()
	return o
}

// tellRetries says why a machine is tried again, once per reason.
func tellRetries(sink event.Sink) func(string, error, time.Duration) {
	var mu sync.Mutex
	last := map[string]string{}
	return func(machine string, err error, _ time.Duration) {
		mu.Lock()
		told := last[machine] == err.Error()
		last[machine] = err.Error()
		mu.Unlock()
		if !told {
			sink.Emit(event.Event{Kind: event.Note, Machine: machine, Text: "not reached yet, trying again: " + err.Error()})
		}
	}
}

// dialWith connects to machines of the inventory.
func dialWith(d *sshconn.Dialer) bootstrap.Dialer {
	return func(ctx context.Context, m inventory.Machine) (remote.Host, string, error) {
		c, err := d.Dial(ctx, targetOf(m))
		if err != nil {
			return nil, "", err
		}
		info := c.Info()
		return c, info.Address + ", host key " + info.Fingerprint, nil
	}
}

func targetOf(m inventory.Machine) sshconn.Target {
	return sshconn.Target{
		Name: m.Name, Host: m.Host, Port: m.Port, User: m.User,
		IdentityFile: m.IdentityFile, Jump: m.Jump, HostKey: m.HostKey,
	}
}
