package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gpuctl": main})
}

// TestScript runs the real binary through testdata/script: usage, exit codes,
// JSON, bad files, Ctrl-C.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			if name == "machines" {
				return machines, nil
			}
			return false, fmt.Errorf("no condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   exitsWith,
			"silent": silentPort,
			"until":  until,
			"farm":   farm,
			"push":   push,
		},
	})
}

// exitsWith runs a command and wants an exact exit code: code 2 gpuctl ...
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code n command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// silentPort listens, never says a word and sets $PORT: a machine that hangs.
func silentPort(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv("PORT", port)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ts.Logf("someone connected from %s", c.RemoteAddr())
			// The script waits for this file to know that the run is under way.
			if err := os.WriteFile(ts.MkAbs("connected"), nil, 0o600); err != nil {
				return
			}
		}
	}()
}

// until waits for a file, at most 30 seconds.
func until(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not come within 30s", strings.Join(args, " "))
		}
	}
}
