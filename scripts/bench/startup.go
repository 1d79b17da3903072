//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// startUp times commands that need no machine, the best of some runs each.
func (t *table) startUp(ctx context.Context, binary string) error {
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w; make build makes it", err)
	}
	for _, args := range [][]string{{"version"}, {"--help"}, {"completion", "bash"}, {"__complete", "app"}} {
		var wall, cpu time.Duration
		for range 10 {
			cmd := exec.CommandContext(ctx, binary, args...)
			begin := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
			}
			took := time.Since(begin)
			if wall == 0 || took < wall {
				wall = took
			}
			u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); ok && u != nil && (cpu == 0 || used < cpu) {
				cpu = used
			}
		}
		name := "gpuctl " + strings.Join(args, " ")
		t.add(figure{Name: name, Value: float64(wall.Microseconds()) / 1000, Unit: "ms", Limit: 50})
		t.add(figure{Name: name + ", CPU", Value: float64(cpu.Microseconds()) / 1000, Unit: "ms"})
	}
	return nil
}
