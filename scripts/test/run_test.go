package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCounterCountsTestsAndPackagesThatDoNotBuild(t *testing.T) {
	c := newCounter()
	c.read(strings.NewReader(`{"Action":"pass","Package":"a","Test":"TestOne"}
{"Action":"attr","Package":"a","Test":"TestOne","Key":"sampled","Value":"5 of 300"}
{"Action":"pass","Package":"a"}
{"Action":"output","Package":"b","Test":"TestTwo","Output":"broken\n"}
{"Action":"fail","Package":"b","Test":"TestTwo"}
{"Action":"fail","Package":"b"}
{"ImportPath":"c","Action":"build-output","Output":"syntax error\n"}
{"ImportPath":"c","Action":"build-fail"}
{"Action":"fail","Package":"c"}
not json
`))
	r := c.result(nil, "")
	if r.passed != 1 || r.failed != 2 {
		t.Errorf("%d passed, %d failed; want 1 and 2", r.passed, r.failed)
	}
	if got := strings.Join(r.notes, "; "); got != "TestOne: sampled 5 of 300" {
		t.Errorf("notes: %s", got)
	}
	all := strings.Join(r.failures, "\n")
	if !strings.Contains(all, "b TestTwo\nbroken") || !strings.Contains(all, "syntax error") {
		t.Errorf("failures: %s", all)
	}
}

func TestRunAllNamesTheSuiteThatRanOut(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	code := runAll(ctx, []suite{
		{name: "good", limit: time.Minute, argv: []string{"true"}},
		{name: "slow", limit: 50 * time.Millisecond, argv: []string{"sh", "-c", "sleep 60 & wait"}},
		{name: "bad", limit: time.Minute, argv: []string{"sh", "-c", "echo why >&2; exit 3"}},
		{name: "endless", limit: time.Minute, argv: []string{"sleep", "60"}},
		{name: "never", limit: time.Minute, argv: []string{"true"}},
	}, t.TempDir(), &out)
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"ok   good", "ran out of its limit of 50ms", "FAIL bad", "why", "ran out of the total deadline\n", "before it began", "1 passed, 4 failed\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestSuitesAreRunnable(t *testing.T) {
	for _, s := range suites() {
		if longest := map[bool]time.Duration{false: total, true: totalFull}[s.full]; s.limit <= 0 || s.limit > longest {
			t.Errorf("%s: limit %s", s.name, s.limit)
		}
		if _, err := os.Stat(filepath.Join("..", "..", s.dir)); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if _, err := choose(suites(), "unit,nope", false); err == nil {
		t.Error("an unknown suite went through")
	}
}
