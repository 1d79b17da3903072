package charts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// Outcome is what Ensure did.
type Outcome struct {
	// Name and Namespace are those of the release that was brought up to date; they
	// differ from the wanted ones when one was adopted.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
	// Steps are the changes made, in order; empty when nothing had to change.
	Steps []Step `json:"steps,omitempty"`
}

// Changed says whether anything was done.
func (o Outcome) Changed() bool { return len(o.Steps) > 0 }

// maxSteps bounds the mending: remove, install and one repetition are 4.
const maxSteps = 6

// Ensure installs or upgrades a release, only if its version or values differ,
// and waits until its workloads are ready. A stuck or failed release is mended
// first; a release of the same chart elsewhere is adopted or refused with a
// *ForeignError; never is the chart installed twice. It returns a *WaitError when
// the limit is over. Running it again after any error is safe.
func (r *Releaser) Ensure(ctx context.Context, rel Release, say Say) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, rel.limit())
	defer cancel()
	out := Outcome{Name: rel.Name, Namespace: rel.Namespace}
	for range maxSteps {
		state, err := r.observed(ctx, rel, say)
		if err != nil {
			return out, err
		}
		if adopted, theirs, ok := Adopt(rel, state); ok {
			rel, state = adopted, theirs
			out.Name, out.Namespace = rel.Name, rel.Namespace
			say.say("the release %s/%s is there already: it is kept", rel.Namespace, rel.Name)
		} else if len(state.Foreign) > 0 && state.Phase == Absent {
			return out, &ForeignError{Chart: rel.Chart.Name, Found: state.Foreign}
		}
		wanted, err := HashValues(rel.Values)
		if err != nil {
			return out, err
		}
		step, why := Decide(state, rel, wanted, r.now())
		out.Revision = state.Revision
		if step == StepNone {
			return out, r.waitRelease(ctx, rel, say)
		}
		say.say("%s %s: %s", step, rel.Name, why)
		if err := r.take(ctx, step, state, rel, say); err != nil {
			return out, err
		}
		if step != StepWait {
			out.Steps = append(out.Steps, step)
		}
	}
	return out, fmt.Errorf("release %s/%s does not settle after %v", rel.Namespace, rel.Name, out.Steps)
}

// observed is Observe that outlives a restart of the API server.
func (r *Releaser) observed(ctx context.Context, rel Release, say Say) (State, error) {
	var state State
	var refused error
	err := wait(ctx, waitFor{what: "the records of releases", limit: 2 * time.Minute, every: r.every}, say, func(ctx context.Context) (bool, string, error) {
		s, err := r.Observe(ctx, rel)
		if away := (*url.Error)(nil); errors.As(err, &away) {
			return false, "", err
		}
		state, refused = s, err
		return true, "", nil
	})
	if refused != nil {
		return State{}, refused
	}
	return state, err
}

// take does one step.
func (r *Releaser) take(ctx context.Context, step Step, s State, rel Release, say Say) error {
	switch step {
	case StepWait:
		return r.waitUnchanged(ctx, s, rel, say)
	case StepRollback:
		return r.helm(ctx, rel, say, func(cfg *action.Configuration) error {
			back := action.NewRollback(cfg)
			back.Version, back.Timeout, back.DisableHooks = s.LastGood, hookLimit(ctx), true
			return back.Run(rel.Name)
		}, "rolling back")
	case StepRemove:
		return r.remove(ctx, rel, say)
	}
	return r.apply(ctx, step, rel, say)
}

// apply installs or upgrades, types first.
func (r *Releaser) apply(ctx context.Context, step Step, rel Release, say Say) error {
	c, err := r.clients()
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, c.kube, rel.Namespace); err != nil {
		return err
	}
	say.say("fetching chart %s %s", rel.Chart.Name, rel.Chart.Version)
	arch, err := r.fetch(ctx, rel.Chart)
	if err != nil {
		return err
	}
	forTypes, err := arch.load()
	if err != nil {
		return err
	}
	if err := applyCRDs(ctx, c.dynamic, forTypes, rel.Values, say); err != nil {
		return err
	}
	fresh, err := arch.load()
	if err != nil {
		return err
	}
	values, _ := Merge(rel.Values, nil)
	return r.helm(ctx, rel, say, func(cfg *action.Configuration) error {
		return runHelm(ctx, cfg, step, rel, fresh, values)
	}, string(step))
}

// runHelm calls Helm without its own waiting, which is silent.
func runHelm(ctx context.Context, cfg *action.Configuration, step Step, rel Release, ch *chart.Chart, values map[string]any) error {
	labels := map[string]string{}
	if rel.Owner != "" {
		labels[ownerLabel] = rel.Owner
	}
	if rel.Adopted {
		labels[adoptedLabel] = "true"
	}
	if step == StepInstall {
		in := action.NewInstall(cfg)
		in.ReleaseName, in.Namespace = rel.Name, rel.Namespace
		in.Timeout, in.Labels, in.SkipCRDs, in.DisableOpenAPIValidation = hookLimit(ctx), labels, true, true
		_, err := in.RunWithContext(ctx, ch, values)
		return err
	}
	up := action.NewUpgrade(cfg)
	up.Namespace, up.Timeout, up.Labels = rel.Namespace, hookLimit(ctx), labels
	up.ResetValues, up.SkipCRDs, up.DisableOpenAPIValidation, up.MaxHistory = true, true, true, 10
	_, err := up.RunWithContext(ctx, rel.Name, ch, values)
	return err
}

// remove takes a release away with its records. Types stay, as Helm leaves them.
func (r *Releaser) remove(ctx context.Context, rel Release, say Say) error {
	return r.helm(ctx, rel, say, func(cfg *action.Configuration) error {
		un := action.NewUninstall(cfg)
		un.IgnoreNotFound, un.Timeout, un.DisableHooks = true, hookLimit(ctx), true
		_, err := un.Run(rel.Name)
		return err
	}, "removing")
}

// Uninstall takes a release away and waits until its objects are gone or the
// limit is over. A release that is absent is no error. Custom resource
// definitions and labels that the operator put on nodes stay.
func (r *Releaser) Uninstall(ctx context.Context, rel Release, say Say) error {
	ctx, cancel := context.WithTimeout(ctx, rel.limit())
	defer cancel()
	return r.helm(ctx, rel, say, func(cfg *action.Configuration) error {
		un := action.NewUninstall(cfg)
		un.IgnoreNotFound, un.Timeout, un.Wait = true, hookLimit(ctx), true
		_, err := un.Run(rel.Name)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return nil
		}
		return err
	}, "uninstalling")
}

// helm runs a blocking call of Helm's and says meanwhile what keeps it.
func (r *Releaser) helm(ctx context.Context, rel Release, say Say, call func(*action.Configuration) error, doing string) error {
	c, err := r.clients()
	if err != nil {
		return err
	}
	cfg, err := c.helm(rel.Namespace)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- call(cfg) }()
	tick := time.NewTicker(5 * r.every)
	defer tick.Stop()
	var reason string
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s release %s/%s: %w", doing, rel.Namespace, rel.Name, withReason(err, reason))
			}
			return nil
		case <-ctx.Done():
			return r.cutOff(done, doing, rel, withReason(ctx.Err(), reason))
		case <-tick.C:
			if why := podTrouble(ctx, c.kube, rel.Namespace); why != "" && why != reason {
				reason = why
				say.say("%s %s: %s", doing, rel.Name, why)
			}
		}
	}
}

// cutOff gives Helm a moment to write into its record that it was stopped; a
// record left pending would have to be mended by the next run.
func (r *Releaser) cutOff(done <-chan error, doing string, rel Release, err error) error {
	grace := time.NewTimer(5 * time.Second)
	defer grace.Stop()
	select {
	case <-done: //nolint:errcheck // its own error came of being stopped
	case <-grace.C:
	}
	return fmt.Errorf("%s release %s/%s: %w", doing, rel.Namespace, rel.Name, err)
}

func withReason(err error, reason string) error {
	if reason == "" {
		return err
	}
	return fmt.Errorf("%s: %w", reason, err)
}

// waitUnchanged waits until a pending record changes or is too old to be alive.
func (r *Releaser) waitUnchanged(ctx context.Context, s State, rel Release, say Say) error {
	left := rel.alive() - r.now().Sub(s.Since) + time.Second
	w := waitFor{what: "the operation on release " + rel.Name, limit: left, every: r.every}
	err := wait(ctx, w, say, func(ctx context.Context) (bool, string, error) {
		now, err := r.Observe(ctx, rel)
		if err != nil {
			return false, "", err
		}
		return now.Revision != s.Revision || now.Status != s.Status, "another client's " + now.Status + " is still running", nil
	})
	if err != nil && ctx.Err() == nil {
		return nil // It is old enough now; decide again.
	}
	return err
}

// hookLimit is how long Helm may wait for hooks: what is left of the context.
func hookLimit(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 5 * time.Minute
	}
	return max(time.Until(deadline), time.Second)
}
