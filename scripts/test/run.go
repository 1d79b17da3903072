package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// result is what one suite came to.
type result struct {
	passed, failed int
	took           time.Duration
	// late names the limit that passed: "the suite's limit of 10m0s" or "the total deadline".
	late string
	// failures are the failing tests with the end of what they printed.
	failures []string
	// notes are what tests say of themselves by testing.T.Attr, e.g. how much of
	// what they could try they tried.
	notes []string
}

func (r result) line(name string) string {
	verdict := "ok"
	if r.failed > 0 {
		verdict = "FAIL"
	}
	line := fmt.Sprintf("%-4s %-10s %4d passed, %d failed  %s", verdict, name, r.passed, r.failed, r.took.Round(time.Second))
	if r.late != "" {
		line += "  ran out of " + r.late
	}
	return line
}

// run executes the suite with everything it prints in the log file.
func (s suite) run(ctx context.Context, log string) result {
	if ctx.Err() != nil {
		return result{failed: 1, late: "the total deadline before it began"}
	}
	start := time.Now()
	file, err := os.Create(log)
	if err != nil {
		return result{failed: 1, failures: []string{err.Error()}}
	}
	defer file.Close()
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	r := s.execute(limited, file)
	r.took = time.Since(start)
	switch {
	case ctx.Err() != nil:
		r.late = "the total deadline"
	case limited.Err() != nil:
		r.late = "its limit of " + s.limit.String()
	}
	if r.late != "" && r.failed == 0 {
		r.failed = 1
	}
	if r.failed > 0 {
		r.failures = append(r.failures, "log: "+log)
	}
	return r
}

func (s suite) execute(ctx context.Context, log io.Writer) result {
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), s.env...)
	// The whole process group ends with the suite: test binaries are grandchildren.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	tail := &tail{}
	c := newCounter()
	cmd.Stderr = io.MultiWriter(log, tail)
	cmd.Stdout = io.MultiWriter(log, tail)
	if s.goTest {
		reader, writer := io.Pipe()
		cmd.Stdout = io.MultiWriter(log, writer)
		read := make(chan struct{})
		go func() {
			c.read(reader)
			close(read)
		}()
		err := cmd.Run()
		_ = writer.Close() // a pipe in memory: closing it never fails
		<-read
		return c.result(err, tail.String())
	}
	if err := cmd.Run(); err != nil {
		return result{failed: 1, failures: []string{tail.String() + err.Error()}}
	}
	return result{passed: 1}
}

// counter counts tests in the output of go test -json.
type counter struct {
	r      result
	output map[string][]string
	failed map[string]int // failing tests by package
}

func newCounter() *counter {
	return &counter{output: map[string][]string{}, failed: map[string]int{}}
}

// testEvent is documented at "go doc test2json".
type testEvent struct {
	Action, Package, Test, Output string
	ImportPath                    string
	Key, Value                    string // of an attribute
}

func (c *counter) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e testEvent
		if json.Unmarshal(line, &e) == nil {
			c.add(e)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.r.failures = append(c.r.failures, err.Error())
			}
			return
		}
	}
}

func (c *counter) add(e testEvent) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		c.output[key] = append(c.output[key], e.Output)
	case "attr":
		c.r.notes = append(c.r.notes, e.Test+": "+e.Key+" "+e.Value)
	case "pass":
		if e.Test != "" {
			c.r.passed++
		}
		delete(c.output, key)
	case "fail", "build-fail":
		if e.Test == "" && (c.failed[e.Package] > 0 || e.Action == "build-fail") {
			if e.Action == "build-fail" {
				c.r.failures = append(c.r.failures, key+"\n"+last(c.output[key]))
			}
			return // its tests, or the package that did not build, are counted
		}
		c.failed[e.Package]++
		c.r.failed++
		c.r.failures = append(c.r.failures, key+"\n"+last(c.output[key]))
	}
}

// last is the end of a test's output.
func last(lines []string) string {
	const most = 30
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.TrimRight(strings.Join(lines, ""), "\n")
}

func (c *counter) result(err error, stderr string) result {
	if err != nil && c.r.failed == 0 {
		c.r.failed = 1
		c.r.failures = append(c.r.failures, stderr+err.Error())
	}
	return c.r
}

// tail keeps the last 4 KiB written to it.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if n := len(t.data) - 4096; n > 0 {
		t.data = t.data[n:]
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.data) }
