// Package remotetest is a strict fake of a machine for tests: a command that
// was not expected fails the test at once, and so does one that never came.
package remotetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Call is one command that came, with what stood on its standard input.
type Call struct {
	Cmd   remote.Cmd
	Stdin []byte
}

// Fake is a remote.Host that answers what the test expects. Safe for concurrent use.
type Fake struct {
	t       testing.TB
	mu      sync.Mutex
	ordered bool
	expects []*Expectation
	calls   []Call
	closed  bool
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

var _ remote.Host = (*Fake)(nil)

// New returns a fake that expects nothing yet. At the end of the test every
// expectation must have been met.
func New(t testing.TB) *Fake {
	f := &Fake{t: t}
	t.Cleanup(f.verify)
	return f
}

// InOrder makes commands be accepted only in the order of their expectations.
func (f *Fake) InOrder() *Fake {
	f.ordered = true
	return f
}

// Expect announces one command with exactly this Name. Without more it succeeds with no output.
func (f *Fake) Expect(name string) *Expectation {
	return f.add(&Expectation{what: fmt.Sprintf("%q", name), match: func(c remote.Cmd) bool { return c.Name == name }})
}

// ExpectMatch announces one command whose Name matches the regular expression.
func (f *Fake) ExpectMatch(pattern string) *Expectation {
	re := regexp.MustCompile(pattern)
	return f.add(&Expectation{what: "/" + pattern + "/", match: func(c remote.Cmd) bool { return re.MatchString(c.Name) }})
}

// ExpectScript announces one command whose Script matches the regular expression.
func (f *Fake) ExpectScript(pattern string) *Expectation {
	re := regexp.MustCompile(pattern)
	return f.add(&Expectation{what: "script /" + pattern + "/", match: func(c remote.Cmd) bool { return re.MatchString(c.Script) }})
}

// DialWith sets what Dial does; without it Dial fails the test.
func (f *Fake) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	f.dial = dial
}

// Calls returns the commands that came, in order.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Run implements remote.Runner.
func (f *Fake) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	f.t.Helper()
	if err := ctx.Err(); err != nil {
		return remote.Result{}, &remote.CutOffError{Name: c.Name, Err: err}
	}
	var stdin []byte
	if c.Stdin != nil {
		var err error
		if stdin, err = io.ReadAll(c.Stdin); err != nil {
			return remote.Result{}, fmt.Errorf("%s: reading stdin: %w", c.Name, err)
		}
	}
	e := f.take(c, stdin)
	if e == nil {
		f.t.Errorf("unexpected command %q with args %q", c.Name, c.Args)
		return remote.Result{}, fmt.Errorf("unexpected command %q", c.Name)
	}
	res, err := e.answer(ctx, c, stdin)
	if c.Stdout != nil {
		if _, werr := io.Copy(c.Stdout, bytes.NewReader(res.Stdout)); werr != nil && err == nil {
			err = werr
		}
		res.Stdout = nil
	}
	return res, err
}

// Dial implements remote.Host.
func (f *Fake) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.t.Helper()
	if f.dial == nil {
		f.t.Errorf("unexpected dial of %s", address)
		return nil, errors.New("unexpected dial")
	}
	return f.dial(ctx, network, address)
}

// Close implements remote.Host.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// Closed reports whether Close was called.
func (f *Fake) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *Fake) add(e *Expectation) *Expectation {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.min, e.max = 1, 1
	f.expects = append(f.expects, e)
	return e
}

func (f *Fake) take(c remote.Cmd, stdin []byte) *Expectation {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{Cmd: c, Stdin: stdin})
	for _, e := range f.expects {
		if e.max >= 0 && e.seen >= e.max {
			continue
		}
		if e.match(c) {
			e.seen++
			return e
		}
		if f.ordered && e.seen < e.min {
			return nil
		}
	}
	return nil
}

func (f *Fake) verify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.expects {
		if e.seen < e.min {
			f.t.Errorf("command %s came %d times, expected %d", e.what, e.seen, e.min)
		}
	}
}
