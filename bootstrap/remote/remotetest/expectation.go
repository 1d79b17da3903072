package remotetest

import (
	"context"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Expectation is one command that a Fake waits for, and its answer.
type Expectation struct {
	what           string
	match          func(remote.Cmd) bool
	min, max, seen int // max < 0: no limit
	stdout, stderr string
	code           int
	err            error
	do             func(ctx context.Context, c remote.Cmd, stdin []byte) (remote.Result, error)
}

// Output makes the command succeed and print this.
func (e *Expectation) Output(stdout string) *Expectation {
	e.stdout = stdout
	return e
}

// Exit makes the command end with this code and stderr, as *remote.ExitError.
func (e *Expectation) Exit(code int, stderr string) *Expectation {
	e.code, e.stderr = code, stderr
	return e
}

// Fail makes the command return this error (CutOffError, SudoError, ...).
func (e *Expectation) Fail(err error) *Expectation {
	e.err = err
	return e
}

// Do answers the command with a function.
func (e *Expectation) Do(do func(ctx context.Context, c remote.Cmd, stdin []byte) (remote.Result, error)) *Expectation {
	e.do = do
	return e
}

// Times makes the command be expected exactly n times.
func (e *Expectation) Times(n int) *Expectation {
	e.min, e.max = n, n
	return e
}

// AnyTimes makes the command be accepted any number of times, also never.
func (e *Expectation) AnyTimes() *Expectation {
	e.min, e.max = 0, -1
	return e
}

func (e *Expectation) answer(ctx context.Context, c remote.Cmd, stdin []byte) (remote.Result, error) {
	if e.do != nil {
		return e.do(ctx, c, stdin)
	}
	res := remote.Result{Stdout: []byte(e.stdout), Stderr: []byte(e.stderr)}
	if e.err != nil {
		return res, e.err
	}
	if e.code != 0 {
		return res, &remote.ExitError{
			Name:   c.Name,
			Code:   e.code,
			Stdout: remote.Tail(res.Stdout, c.Secrets),
			Stderr: remote.Tail(res.Stderr, c.Secrets),
		}
	}
	return res, nil
}
