package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/state"
	"github.com/gpuctl/gpuctl/internal/ui"
	"github.com/gpuctl/gpuctl/provision"
)

// Exit codes, part of the interface for scripts.
const (
	exitOK          = 0
	exitUnexpected  = 1
	exitUsage       = 2
	exitFindings    = 3
	exitUnreachable = 4
	exitAction      = 5
	exitSmoke       = 6
	exitLocked      = 7
	exitCancelled   = 130
)

// usageError is a wrong command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// remoteExit carries the exit code of a command that ran on a machine.
type remoteExit struct{ code int }

func (e *remoteExit) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode maps an error to the exit code. Where several failed the most telling
// wins: 130, 7, 2, 4, 3, 5, 6, 1.
func exitCode(err error) int {
	var remote *remoteExit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &remote):
		return remote.code
	case errors.Is(err, errInterrupted):
		return exitCancelled
	case is[*state.LockedError](err), is[*bootstrap.HeldError](err):
		return exitLocked
	case is[*usageError](err), is[*config.InvalidError](err), errors.Is(err, config.ErrConfigDiffers), is[*bootstrap.NotANodeError](err), is[*provision.BinaryError](err):
		return exitUsage
	case unreachable(err):
		return exitUnreachable
	case errors.Is(err, bundle.ErrBundle), errors.Is(err, bundle.ErrSignature):
		return exitFindings
	case is[*bootstrap.BlockedError](err), errors.Is(err, plan.ErrConsent), is[*bootstrap.StaysError](err), is[*kube.QuorumError](err):
		return exitFindings
	case is[*collectError](err), is[*plan.ActionError](err), is[*provision.RunError](err):
		return exitAction
	case is[*bootstrap.SmokeError](err):
		return exitSmoke
	}
	return exitUnexpected
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// unreachable: the machine was not reached or refused the login or root rights.
func unreachable(err error) bool {
	return is[*bootstrap.APIError](err) || is[*remote.ConnectError](err) || is[*remote.SudoError](err) || is[*remote.ForwardingError](err)
}

// interrupted is what a command came to that Ctrl-C ended. What was cut short
// complains in many voices; people need one word, the record has the rest.
type interrupted struct{ err error }

func (e *interrupted) Error() string   { return errInterrupted.Error() }
func (e *interrupted) Unwrap() []error { return []error{errInterrupted, e.err} }

// explainEnd is err, or the interruption that caused it.
func explainEnd(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return &interrupted{err}
	}
	return err
}

// printError tells people what went wrong and what helps; with -o json a
// program gets the same on standard output unless a result is there already.
func (a *app) printError(err error) {
	var exit *remoteExit
	if errors.As(err, &exit) {
		return // the command on the machine has spoken for itself
	}
	red := a.style(a.terminal.err)
	_, _ = fmt.Fprintln(a.err, ui.Problem(red, err.Error(), hints(err)))
	if a.json() && !a.printed {
		data, _ := json.Marshal(map[string]any{"error": err.Error(), "exitCode": exitCode(err), "hints": hints(err)})
		_, _ = fmt.Fprintln(a.out, string(data))
	}
}

// hints are steps that help, one a line.
func hints(err error) []string {
	var connect *remote.ConnectError
	var locked *state.LockedError
	for _, of := range []func(error) []string{nodeHints, provisionHints} {
		if steps := of(err); steps != nil {
			return steps
		}
	}
	switch {
	case errors.As(err, &connect) && connect.Hint != "":
		return []string{connect.Hint}
	case errors.Is(err, plan.ErrConsent):
		return []string{"look at it with: gpuctl plan", "agree to it with: --yes"}
	case errors.As(err, &locked), is[*bootstrap.HeldError](err):
		return []string{"wait for the other run, or end it; its lock goes with it"}
	case is[*bootstrap.APIError](err):
		return []string{"look with: kubectl --kubeconfig FILE --context NAME get nodes, with kubernetes.existing's file and context"}
	case errors.Is(err, config.ErrConfigDiffers):
		return []string{"apply the file as it is with: gpuctl apply", "or write another one with: -f other.yaml"}
	case errors.Is(err, errInterrupted):
		return []string{"nothing is lost: the next gpuctl apply looks at the machines and goes on"}
	case is[*usageError](err) && strings.Contains(err.Error(), "unknown"):
		return []string{"gpuctl --help"}
	}
	return nil
}
