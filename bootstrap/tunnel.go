package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/kube"
)

const apiOnServer = "127.0.0.1:6443"

// Tunnel forwards what connects to l to the API through the server's SSH
// connection, until ctx ends: the way in where only port 22 is open. ready is
// given the kubeconfig that goes through it, with context name, before the first
// connection is taken. TLS is end to end: k3s's certificate carries 127.0.0.1.
func (e *Engine) Tunnel(ctx context.Context, l net.Listener, name string, ready func(kubeconfig []byte) error) error {
	defer func() { _ = l.Close() }() // closed already when ctx has ended
	if e.want.existing() != nil {
		return errors.New("opening a tunnel: the API of an existing cluster is reached by its own kubeconfig, there is no server of gpuctl's to go through")
	}
	c, err := e.api.credentials(ctx)
	if err != nil {
		return err
	}
	server := e.api.order()[0].Name
	probe, err := e.api.through(ctx, "tcp", apiOnServer)
	if err != nil {
		return fmt.Errorf("reaching the API on %s: %w", server, err)
	}
	_ = probe.Close() // it answers, that is all
	kubeconfig, err := kube.Rename(c.Kubeconfig, name, "https://"+l.Addr().String())
	if err != nil {
		return err
	}
	if err := ready(kubeconfig); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		near, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("the tunnel's port was closed: %w", err)
		case err != nil:
			// Out of file descriptors, most often: those in use may end.
			if !pause(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		open.Go(func() {
			if err := forward(ctx, e.api.through, near); err != nil && ctx.Err() == nil {
				e.settings.Sink.Emit(event.Event{Kind: event.Note, Machine: server, Text: "the tunnel: " + err.Error()})
			}
		})
	}
}

// forward joins a local connection with one to the API until either ends.
func forward(ctx context.Context, dial dialFunc, near net.Conn) error {
	defer func() { _ = near.Close() }() // it ends here, whatever it says
	far, err := dial(ctx, "tcp", apiOnServer)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = near.Close(); _ = far.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(far, near) // how it ended shows at the other side
		_ = far.Close()
		close(done)
	}()
	_, _ = io.Copy(near, far)
	_ = near.Close()
	<-done
	return nil
}

// pause reports whether the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
