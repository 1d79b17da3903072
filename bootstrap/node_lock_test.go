package bootstrap

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// keepsLock lets the server be locked whatever else dial makes of it.
func keepsLock(server string, dial Dialer) Dialer {
	return func(ctx context.Context, m inventory.Machine) (remote.Host, string, error) {
		host, way, err := dial(ctx, m)
		if m.Name == server {
			return lockable{host, err}, way, nil
		}
		return host, way, err
	}
}

// lockable is a server without flock, or one that is reached for the lock alone.
type lockable struct {
	remote.Host
	err error
}

func (l lockable) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	switch {
	case c.Script == holdScript:
		_, err := io.WriteString(c.Stdout, "absent\n")
		return remote.Result{}, err
	case l.err != nil:
		return remote.Result{}, l.err
	}
	return l.Host.Run(ctx, c)
}

func (l lockable) Close() error { return nil }

// heldServer is a server whose lock somebody else has.
type heldServer struct{ remote.Host }

func (heldServer) Run(_ context.Context, c remote.Cmd) (remote.Result, error) {
	if c.Script != holdScript {
		return remote.Result{}, errors.New("not here")
	}
	if _, err := io.WriteString(c.Stdout, "ann@laptop, since noon\n"); err != nil {
		return remote.Result{}, err
	}
	return remote.Result{}, &remote.ExitError{Name: c.Name, Code: heldCode}
}

func (heldServer) Close() error { return nil }

func TestNodeCommandsHeedTheLockOfTheCluster(t *testing.T) {
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, apiNode("server-1", true, 0), apiNode("gpu-1", false, time.Hour))
	e.fleet.on("server-1").host = heldServer{}
	r, err := e.RemoveNodes(t.Context(), RemoveOptions{Nodes: []string{"gpu-1"}, Gone: true})
	var held *HeldError
	if !errors.As(err, &held) || held.Holder != "ann@laptop, since noon" || len(r.Removed) > 0 || !nodeThere(t, set, "gpu-1") {
		t.Errorf("%v, removed %v", err, r.Removed)
	}
	if _, err := e.CordonNodes(t.Context(), []string{"gpu-1"}, true); !errors.As(err, &held) {
		t.Errorf("cordon: %v", err)
	}
}
