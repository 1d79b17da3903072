package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
)

// confirm returns what asks for consent to a plan: nothing is asked with --yes,
// or when no action of the plan needs consent.
func (s *session) confirm() func(context.Context, bootstrap.PlanResult) error {
	return func(ctx context.Context, p bootstrap.PlanResult) error {
		var asks []bootstrap.ActionView
		for _, a := range p.Actions {
			if a.Consent != "" {
				asks = append(asks, a)
			}
		}
		if len(asks) == 0 || s.flags.yes {
			return nil
		}
		return s.ask(ctx, asks)
	}
}

func (s *session) ask(ctx context.Context, asks []bootstrap.ActionView) error {
	w := &writer{w: s.err}
	w.linef("\nThis needs your consent:")
	for _, a := range asks {
		where := a.Machine
		if where == "" {
			where = "cluster"
		}
		w.linef("  %-9s  %s: %s (%s)", a.Consent, where, a.Title, a.Reason)
	}
	if w.err != nil {
		return w.err
	}
	if !s.terminal.in {
		return fmt.Errorf("%d actions of the plan: %w", len(asks), plan.ErrConsent)
	}
	if _, err := fmt.Fprint(s.err, "Go on? [y/N] "); err != nil {
		return err
	}
	answer, err := readLine(ctx, bufio.NewReader(s.in))
	if err != nil {
		return err
	}
	if !agreed(answer) {
		return fmt.Errorf("you said no: %w", plan.ErrConsent)
	}
	return nil
}

// readLine reads until a line break, the end of input or the end of ctx. In the
// last case the goroutine stays until input comes, which is the end of the process.
func readLine(ctx context.Context, r *bufio.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := r.ReadString('\n')
		if line != "" {
			err = nil
		}
		got <- result{line, err}
	}()
	select {
	case g := <-got:
		if g.err != nil {
			return "", fmt.Errorf("reading the answer: %w", g.err)
		}
		return g.line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
