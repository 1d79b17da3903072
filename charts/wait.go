package charts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Say reports what is being done or waited for, one line without secrets. Nil says nothing.
type Say func(format string, args ...any)

func (s Say) say(format string, args ...any) {
	if s != nil {
		s(format, args...)
	}
}

// WaitError says that a wait ended before what it waited for was there, and the
// reason that kept it waiting. errors.Is finds the context's error behind it.
type WaitError struct {
	// What was waited for: "operator deployment".
	What string
	// Waited is how long.
	Waited time.Duration
	// Reason is the last one seen; empty when nothing was ever seen.
	Reason string
	// Err is the last error of looking, or the context's.
	Err error
}

func (e *WaitError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "nothing was seen"
	}
	text := fmt.Sprintf("waiting for %s for %s: %s", e.What, e.Waited.Round(time.Second), reason)
	if e.Err != nil && !errors.Is(e.Err, context.DeadlineExceeded) {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *WaitError) Unwrap() error { return e.Err }

type waitFor struct {
	what  string
	limit time.Duration
	every time.Duration
}

// wait looks until the look says done, the limit is over or the context ends. An
// error of a look is kept as the reason and looked past: a single-server API drops
// for a moment when k3s restarts. A new reason is said once.
func wait(ctx context.Context, w waitFor, say Say, look func(context.Context) (done bool, reason string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	start := time.Now()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	var reason string
	var last error
	for {
		done, why, err := look(ctx)
		if done && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil && !outOfTime(err) {
			last = err
			why = "looking failed: " + err.Error()
		} else if err == nil {
			last = nil
		}
		if why != "" && ctx.Err() == nil && why != reason && !outOfTime(err) {
			reason = why
			say.say("%s: %s", w.what, why)
		}
		select {
		case <-ctx.Done():
			return &WaitError{What: w.what, Waited: time.Since(start), Reason: reason, Err: errors.Join(ctx.Err(), last)}
		case <-tick.C:
		}
	}
}

// outOfTime says that a look was not tried, because the limit is too near: that is
// no reason that kept anybody waiting. client-go's limiter has no type for it
// (k8s.io/client-go/rest/request.go#tryThrottle).
func outOfTime(err error) bool {
	return err != nil && (errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "would exceed context deadline"))
}
