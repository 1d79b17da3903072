package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// diary records what was applied, in order.
type diary struct {
	mu  sync.Mutex
	ran []string
}

func (d *diary) action(id, machine string, needs ...string) Action {
	return Action{ID: id, Machine: machine, Title: "do " + id, Reason: "absent", Needs: needs,
		Apply: func(context.Context, Say) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ran = append(d.ran, id)
			return nil
		}}
}

func (d *diary) order(t *testing.T, before, after string) {
	t.Helper()
	b, a := slices.Index(d.ran, before), slices.Index(d.ran, after)
	if b < 0 || a < 0 || b > a {
		t.Errorf("want %s before %s, ran %v", before, after, d.ran)
	}
}

func statuses(r Report) map[string][]Status {
	m := map[string][]Status{}
	for _, o := range r.Outcomes {
		m[o.Action.ID] = append(m[o.Action.ID], o.Status)
	}
	return m
}

func TestNeedsAreDoneFirstAndMachinesDoNotWaitForEachOther(t *testing.T) {
	d := &diary{}
	gate := make(chan struct{})
	slow := Action{ID: "a/slow", Machine: "a", Apply: func(context.Context, Say) error { <-gate; return nil }}
	free := d.action("b/free", "b")
	inner := free.Apply
	free.Apply = func(ctx context.Context, say Say) error { defer close(gate); return inner(ctx, say) }
	// a/slow ends only after b/free ran: the run hangs if machines wait for each other.
	r := Executor{}.Run(t.Context(), []Action{slow, d.action("a/next", "a", "a/slow"), d.action("c/join", "c", "a/next"), free})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d.order(t, "b/free", "a/next")
	d.order(t, "a/next", "c/join")
}

func TestNeedThatIsNotInThePlanIsSatisfied(t *testing.T) {
	d := &diary{}
	r := Executor{}.Run(t.Context(), []Action{d.action("a/k3s", "a", "a/toolkit")})
	if r.Err() != nil || !slices.Equal(d.ran, []string{"a/k3s"}) {
		t.Errorf("ran %v, err %v", d.ran, r.Err())
	}
}

func TestFailureBlocksOnlyWhatNeedsIt(t *testing.T) {
	d := &diary{}
	boom := errors.New("disk full")
	bad := Action{ID: "a/k3s", Machine: "a", Title: "install k3s", Apply: func(context.Context, Say) error { return boom }}
	gate := d.action("cluster/ready", "")
	gate.After = []string{"a/smoke", "b/smoke"}
	r := Executor{}.Run(t.Context(), []Action{bad, d.action("a/smoke", "a", "a/k3s"), d.action("a/proof", "a", "a/smoke"), d.action("b/smoke", "b"), gate})
	want := map[string][]Status{"a/k3s": {Failed}, "a/smoke": {Blocked}, "a/proof": {Blocked}, "b/smoke": {Done}, "cluster/ready": {Done}}
	got := statuses(r)
	for id, s := range want {
		if !slices.Equal(got[id], s) {
			t.Errorf("%s: %v, want %v", id, got[id], s)
		}
	}
	if err := r.Err(); !errors.Is(err, boom) || strings.Count(err.Error(), "disk full") != 1 {
		t.Errorf("the cause must be told once: %v", err)
	}
	d.order(t, "b/smoke", "cluster/ready")
}

func TestBarrierPlansAgainAndLateNeedsComeIn(t *testing.T) {
	d := &diary{}
	driver := d.action("a/driver", "a")
	driver.Barrier = true
	calls := map[string]int{}
	e := Executor{Replan: func(_ context.Context, scope string) ([]Action, error) {
		d.mu.Lock()
		calls[scope]++
		first := calls[scope] == 1
		d.mu.Unlock()
		if scope == "a" && first {
			late := d.action("a/fabric", "a")
			late.Reason = "NVSwitch is there"
			return []Action{late, d.action("a/k3s", "a", "a/fabric")}, nil
		}
		return nil, nil
	}}
	r := e.Run(t.Context(), []Action{driver, d.action("a/k3s", "a", "a/driver"), d.action("a/stale", "a", "a/driver")})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a/driver", "a/fabric", "a/k3s"}; !slices.Equal(d.ran, want) {
		t.Errorf("ran %v, want %v: what the new plan lacks must not run", d.ran, want)
	}
	if calls["a"] != 2 || calls[""] < 1 {
		t.Errorf("replans %v: want the machine after the barrier and at the end, the cluster after the barrier", calls)
	}
}

func TestDoneAndStillPendingForTheSameReasonIsNotConverged(t *testing.T) {
	d := &diary{}
	e := Executor{Replan: func(context.Context, string) ([]Action, error) {
		return []Action{d.action("a/sysctl", "a")}, nil
	}}
	r := e.Run(t.Context(), []Action{d.action("a/sysctl", "a")})
	var named interface{ DiagCode() string }
	if err := r.Err(); !errors.Is(err, ErrNotConverged) || !errors.As(err, &named) || named.DiagCode() != "not-converged" {
		t.Fatalf("err = %v, want ErrNotConverged", err)
	}
	if len(d.ran) != 1 {
		t.Errorf("applied %d times, want once", len(d.ran))
	}
}

// A download ends while the machine is observed after a barrier, or before it:
// either way it is not asked for again.
func TestWhatIsDoneAheadIsDoneOnce(t *testing.T) {
	d := &diary{}
	ahead := d.action("a/download", "a")
	ahead.Ahead = true
	install := d.action("a/install", "a", "a/download", "a/driver")
	driver := d.action("a/driver", "a", "a/download")
	driver.Barrier = true
	e := Executor{Replan: func(context.Context, string) ([]Action, error) {
		if slices.Contains(d.ran, "a/install") {
			return nil, nil
		}
		return []Action{ahead, install}, nil
	}}
	r := e.Run(t.Context(), []Action{ahead, driver, install})
	if r.Err() != nil || !slices.Equal(d.ran, []string{"a/download", "a/driver", "a/install"}) {
		t.Errorf("ran %v, err %v", d.ran, r.Err())
	}
}

func TestAlwaysAnotherReasonEndsAfterTheRounds(t *testing.T) {
	n := 0
	var e Executor
	next := func() Action {
		n++
		return Action{ID: "a/flap", Machine: "a", Reason: strings.Repeat("x", n), Apply: func(context.Context, Say) error { return nil }}
	}
	e.Replan = func(context.Context, string) ([]Action, error) { return []Action{next()}, nil }
	r := e.Run(t.Context(), []Action{next()})
	if !errors.Is(r.Err(), ErrNotConverged) {
		t.Fatalf("err = %v", r.Err())
	}
	if got := r.Changed(); got != 5 {
		t.Errorf("applied %d times, want 1 + 4 rounds", got)
	}
}

type lost struct{}

func (lost) Error() string       { return "connection lost" }
func (lost) UnknownResult() bool { return true }

func TestCutOffObservesBeforeItDecides(t *testing.T) {
	for _, tc := range []struct {
		name    string
		pending bool // what observing again finds
		want    []Status
	}{
		{"it had been done", false, []Status{CutOff}},
		{"it had not been done", true, []Status{CutOff, Done}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first := true
			a := Action{ID: "a/k3s", Machine: "a", Reason: "absent"}
			a.Apply = func(context.Context, Say) error {
				if first {
					first = false
					return lost{}
				}
				return nil
			}
			asked := 0
			e := Executor{Replan: func(context.Context, string) ([]Action, error) {
				asked++
				if tc.pending && asked == 1 {
					return []Action{a}, nil
				}
				return nil, nil
			}}
			r := e.Run(t.Context(), []Action{a})
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			if got := statuses(r)["a/k3s"]; !slices.Equal(got, tc.want) {
				t.Errorf("statuses %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMachineThatStaysAwayAfterACutFails(t *testing.T) {
	a := Action{ID: "a/reboot", Machine: "a", Apply: func(context.Context, Say) error { return lost{} }}
	gone := errors.New("no route to host")
	e := Executor{Replan: func(context.Context, string) ([]Action, error) { return nil, gone }}
	if err := e.Run(t.Context(), []Action{a}).Err(); !errors.Is(err, gone) {
		t.Errorf("err = %v, want the reason for being away", err)
	}
}

func TestConsentIsAskedBeforeAnythingHappens(t *testing.T) {
	d := &diary{}
	boot := d.action("a/reboot", "a")
	boot.Consent = ConsentReboot
	if err := (Executor{}).Run(t.Context(), []Action{boot}).Err(); !errors.Is(err, ErrConsent) {
		t.Errorf("err = %v, want ErrConsent", err)
	}
	if len(d.ran) > 0 {
		t.Errorf("ran %v without consent", d.ran)
	}
	r := Executor{Consents: map[Consent]bool{ConsentReboot: true}}.Run(t.Context(), []Action{boot})
	if r.Err() != nil || len(d.ran) != 1 {
		t.Errorf("with consent: ran %v, err %v", d.ran, r.Err())
	}
}

func TestTimeoutEndsWithTheLastThingSaid(t *testing.T) {
	a := Action{ID: "a/wait", Machine: "a", Timeout: time.Millisecond, Apply: func(ctx context.Context, say Say) error {
		say("pod x: ImagePullBackOff")
		<-ctx.Done()
		return ctx.Err()
	}}
	err := (Executor{}).Run(t.Context(), []Action{a}).Err()
	if err == nil || !strings.Contains(err.Error(), "gave up after 1ms (pod x: ImagePullBackOff)") {
		t.Errorf("err = %v", err)
	}
}

func TestCancelStartsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := &diary{}
	first := Action{ID: "a/one", Machine: "a", Apply: func(ctx context.Context, _ Say) error {
		cancel()
		return ctx.Err()
	}}
	r := (Executor{}).Run(ctx, []Action{first, d.action("a/two", "a", "a/one"), d.action("b/one", "b", "a/one")})
	if len(d.ran) != 0 {
		t.Errorf("ran %v after the cancel", d.ran)
	}
	for id, s := range statuses(r) {
		if s[0] != Cancelled {
			t.Errorf("%s: %v, want cancelled", id, s)
		}
	}
	if !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("err = %v", r.Err())
	}
}

func TestCycleIsNamed(t *testing.T) {
	d := &diary{}
	r := (Executor{}).Run(t.Context(), []Action{d.action("a/x", "a", "a/y"), d.action("a/y", "a", "a/x")})
	if !errors.Is(r.Err(), ErrCycle) {
		t.Errorf("err = %v, want ErrCycle", r.Err())
	}
}

func TestParallelIsBounded(t *testing.T) {
	var mu sync.Mutex
	now, peak := 0, 0
	turn := make(chan struct{}, 1)
	var actions []Action
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		actions = append(actions, Action{ID: id, Machine: id, Apply: func(context.Context, Say) error {
			mu.Lock()
			now++
			peak = max(peak, now)
			mu.Unlock()
			turn <- struct{}{}
			<-turn
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}})
	}
	if err := (Executor{Parallel: 2}).Run(t.Context(), actions).Err(); err != nil {
		t.Fatal(err)
	}
	if peak > 2 {
		t.Errorf("%d ran at once, want at most 2", peak)
	}
}
