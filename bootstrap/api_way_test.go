package bootstrap

import (
	"context"
	"errors"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// threeWays is an API behind three servers of which nothing is known yet.
func threeWays(t *testing.T) *api {
	t.Helper()
	w := serversOf(t, 3, 0, "")
	e := &Engine{want: w, fleet: newFleet(w.machines, func(context.Context, inventory.Machine) (remote.Host, string, error) {
		return nil, "", errors.New("not here")
	}, event.SinkFunc(func(event.Event) {}))}
	e.api = newAPI(e)
	return e.api
}

func TestTheAPIIsReachedThroughAnyServer(t *testing.T) {
	a := threeWays(t)
	dropped := make(chan string, 3)
	drop := func(late string) { dropped <- late }
	var asked []string
	got, err := race(t.Context(), a, func(_ context.Context, m inventory.Machine) (string, error) {
		if asked = append(asked, m.Name); m.Name == "s1" {
			return "", errors.New("refused")
		}
		return m.Name, nil
	}, drop)
	if err != nil || got != "s2" || len(asked) != 2 {
		t.Fatalf("%q of %v: %v", got, asked, err)
	}
	if first := a.order()[0].Name; first != "s2" {
		t.Errorf("the next question goes to %s first", first)
	}
	// One that is silent until it is too late keeps nobody waiting, and its answer is dropped.
	done := make(chan struct{})
	got, err = race(t.Context(), a, func(ctx context.Context, m inventory.Machine) (string, error) {
		if m.Name == "s2" {
			<-done
			return "late", nil
		}
		return m.Name, nil
	}, drop)
	close(done)
	if err != nil || got != "s1" {
		t.Errorf("%q: %v", got, err)
	}
	if late := <-dropped; late != "late" {
		t.Errorf("dropped %q", late)
	}
}

func TestWhatAllServersSay(t *testing.T) {
	a := threeWays(t)
	_, err := race(t.Context(), a, func(_ context.Context, m inventory.Machine) (int, error) {
		if m.Name == "s2" {
			return 0, errors.New("filtered")
		}
		return 0, k3s.ErrNoCredentials
	}, func(int) {})
	if err == nil || err.Error() != "filtered" {
		t.Errorf("%v", err)
	}
	if _, err = race(t.Context(), a, func(context.Context, inventory.Machine) (int, error) { return 0, k3s.ErrNoCredentials }, func(int) {}); !errors.Is(err, k3s.ErrNoCredentials) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("over"))
	if _, err = race(ctx, a, func(ctx context.Context, _ inventory.Machine) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, func(int) {}); err == nil {
		t.Error("an end that is none")
	}
}
