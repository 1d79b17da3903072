package host

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed transaction.sh
var transactionScript string

// Transaction is a change of packages. It waits for cloud-init, for an earlier
// transaction and for package locks, then works as a transient systemd unit
// that a lost connection does not end.
type Transaction struct {
	// Name as in remote.Cmd.
	Name string
	// Unit is the name of the transient unit, "gpuctl-apt-" and a word.
	Unit string
	// Prepare runs before the unit, with the standard input; may be empty.
	Prepare string
	// Change runs in the unit, under set -eu; apt_get is apt-get that waits for locks.
	Change string
	// Verify runs after the unit and proves the post-condition.
	Verify string
	// Args become $1, ... of all three.
	Args []string
	// Stdin is for Prepare.
	Stdin io.Reader
	// Wait bounds the waiting for others; 0 means 10 minutes.
	Wait time.Duration
	// Limit bounds the whole; 0 means 30 minutes.
	Limit time.Duration
}

// Cmd renders the transaction as one command.
func (t Transaction) Cmd() remote.Cmd {
	wait, limit := t.Wait, t.Limit
	if wait == 0 {
		wait = 10 * time.Minute
	}
	if limit == 0 {
		limit = 30 * time.Minute
	}
	script := transactionScript
	for _, part := range [][2]string{{"#PREPARE#\n", t.Prepare}, {"#CHANGE#\n", t.Change}, {"#VERIFY#\n", t.Verify}} {
		script = strings.Replace(script, part[0], part[1], 1)
	}
	return remote.Cmd{
		Name:    t.Name,
		Script:  script,
		Args:    append([]string{t.Unit, strconv.Itoa(int(wait.Seconds()))}, t.Args...),
		Stdin:   t.Stdin,
		Sudo:    true,
		Timeout: limit,
	}
}

// Run does it. What it waits for is said as it comes. A cut-off command leaves
// the unit working; the error says so. Exit code 75 is waiting in vain, its
// standard error names what for.
func (t Transaction) Run(ctx context.Context, on remote.Runner, say plan.Say) error {
	c := t.Cmd()
	c.Stdout = &sayer{say: say}
	_, err := on.Run(ctx, c)
	var cut *remote.CutOffError
	if errors.As(err, &cut) {
		return fmt.Errorf("unit %s may still work on the machine, the next run waits for it: %w", t.Unit, err)
	}
	return err
}

// sayer hands lines that begin with "@say " to Say.
type sayer struct {
	say  plan.Say
	rest []byte
}

// Write implements io.Writer.
func (s *sayer) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, tail, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok {
			break
		}
		if text, ok := strings.CutPrefix(string(line), "@say "); ok && s.say != nil {
			s.say("%s", text)
		}
		s.rest = append([]byte(nil), tail...)
	}
	if len(s.rest) > 64<<10 {
		s.rest = nil
	}
	return len(p), nil
}
