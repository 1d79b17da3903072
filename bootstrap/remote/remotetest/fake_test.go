package remotetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	cleanup []func()
	errors  int
}

func (r *recorder) Helper()               {}
func (r *recorder) Cleanup(f func())      { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Errorf(string, ...any) { r.errors++ }

func (r *recorder) end() int {
	for _, f := range r.cleanup {
		f()
	}
	return r.errors
}

// play runs commands by name against a fake and returns how often the test failed.
func play(t *testing.T, set func(*remotetest.Fake), names ...string) int {
	t.Helper()
	r := &recorder{TB: t}
	f := remotetest.New(r)
	set(f)
	for _, n := range names {
		_, _ = f.Run(t.Context(), remote.Cmd{Name: n, Script: "script of " + n})
	}
	return r.end()
}

func TestStrictness(t *testing.T) {
	ab := func(f *remotetest.Fake) { f.Expect("a"); f.ExpectMatch("^b") }
	cases := []struct {
		name  string
		set   func(*remotetest.Fake)
		names string
		want  int
	}{
		{"as expected", ab, "a b1", 0},
		{"any order", ab, "b1 a", 0},
		{"in order", func(f *remotetest.Fake) { ab(f.InOrder()) }, "a b1", 0},
		{"not in order", func(f *remotetest.Fake) { ab(f.InOrder()) }, "b1 a", 2},
		{"unexpected", ab, "a b c", 1},
		{"twice", ab, "a b a", 1},
		{"never came", ab, "a", 1},
		{"any times", func(f *remotetest.Fake) { f.Expect("a").AnyTimes() }, "a a a", 0},
		{"any times, none", func(f *remotetest.Fake) { f.Expect("a").AnyTimes() }, "", 0},
		{"three times", func(f *remotetest.Fake) { f.Expect("a").Times(3) }, "a a", 1},
		{"by script", func(f *remotetest.Fake) { f.ExpectScript("of x$") }, "x", 0},
	}
	for _, c := range cases {
		if got := play(t, c.set, strings.Fields(c.names)...); got != c.want {
			t.Errorf("%s: %d failures, want %d", c.name, got, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	f := remotetest.New(t)
	lost := &remote.CutOffError{Name: "lost", Err: context.Canceled}
	f.Expect("out").Output("text")
	f.Expect("exit").Exit(4, "no hunter2")
	f.Expect("lost").Fail(lost)
	f.Expect("do").Do(func(_ context.Context, _ remote.Cmd, stdin []byte) (remote.Result, error) {
		return remote.Result{Stdout: stdin}, nil
	})
	ctx := t.Context()
	if res, err := f.Run(ctx, remote.Cmd{Name: "out"}); err != nil || string(res.Stdout) != "text" {
		t.Errorf("%q %v", res.Stdout, err)
	}
	if _, err := f.Run(ctx, remote.Cmd{Name: "exit", Secrets: []string{"hunter2"}}); remote.ExitCode(err) != 4 || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if _, err := f.Run(ctx, remote.Cmd{Name: "lost"}); !errors.Is(err, error(lost)) {
		t.Error(err)
	}
	var stream strings.Builder
	if res, err := f.Run(ctx, remote.Cmd{Name: "do", Stdin: strings.NewReader("in"), Stdout: &stream}); err != nil || len(res.Stdout) != 0 || stream.String() != "in" {
		t.Errorf("%q %q %v", res.Stdout, stream.String(), err)
	}
}
