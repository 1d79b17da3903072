package bootstrap

import (
	"context"
	"errors"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// A node that has just come back offers its GPUs while the device plugin of its
// former life is still on its way out, and the kubelet then refuses pods until
// the new one has registered (kubernetes#125579, seen in the lab). That passes
// within a minute; what does not pass is a failure.
const (
	admissionPause = 20 * time.Second
	admissionTries = 4
)

// whileRefused tries a proof again as long as the kubelet refuses the test pod.
func whileRefused(ctx context.Context, pause time.Duration, say plan.Say, prove func(last bool) error) error {
	for try := 1; ; try++ {
		err := prove(try == admissionTries)
		if try == admissionTries || !refusedAtAdmission(err) {
			return err
		}
		say("the kubelet refuses the test pod while the device plugin comes up (%v); once more in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

func refusedAtAdmission(err error) bool {
	var not *notProven
	return errors.As(err, &not) && string(not.DiagCode()) == smoke.CodeAdmission
}
