//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/bench"
)

// figure is one row. Floor and Ratio are 0 where there is none; Limit is the target for the
// ratio where there is a floor, else for the value, and 0 where nothing is promised.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Floor float64 `json:"floor"`
	Ratio float64 `json:"ratio"`
	Limit float64 `json:"limit,omitempty"`
}

// table is all rows so far.
type table struct {
	rows []figure
	// seconds and peak are of apply, by number of machines.
	seconds, peak map[int]float64
}

func (t *table) add(f figure) {
	if f.Floor > 0 {
		f.Ratio = f.Value / f.Floor
	}
	t.rows = append(t.rows, f)
	fmt.Println(f)
}

func (f figure) String() string {
	line := fmt.Sprintf("%-44s %10.3f %-10s", f.Name, f.Value, f.Unit)
	verdict, judged := "", f.Value
	if f.Floor > 0 {
		line += fmt.Sprintf(" floor %8.3f  ratio %5.2f", f.Floor, f.Ratio)
		judged = f.Ratio
	}
	if f.Limit > 0 {
		verdict = "  ok"
		if judged > f.Limit {
			verdict = "  MISSED"
		}
		verdict = fmt.Sprintf("  limit %g%s", f.Limit, verdict)
	}
	return line + verdict
}

// fleet measures one number of machines: check and apply as shipped, and the floor.
func (t *table) fleet(ctx context.Context, n int, roundTrip time.Duration, repeat int) (err error) {
	f, err := startFarm(ctx, n, roundTrip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if _, err := f.client(ctx, "apply", "none"); err != nil { // the floor takes its scripts from here
		return err
	}
	if err := f.ask(); err != nil {
		return err
	}
	one := f.info
	if n >= 100 {
		repeat = min(repeat, 3)
	}
	best := map[string]bench.Cost{}
	for range repeat {
		for _, what := range []string{"floor", "check", "apply"} {
			cost, err := f.client(ctx, what, "")
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if was, there := best[what]; !there || cost.Seconds < was.Seconds {
				best[what] = cost
			}
		}
	}
	name := func(what string) string { return fmt.Sprintf("%s, %d machines, %s", what, n, roundTrip) }
	apply, check, floor := best["apply"], best["check"], best["floor"]
	t.add(figure{Name: name("check"), Value: check.Seconds, Unit: "s", Floor: floor.Seconds, Limit: 1.3})
	t.add(figure{Name: name("apply, no-op"), Value: apply.Seconds, Unit: "s", Floor: floor.Seconds, Limit: 1.3})
	t.add(figure{Name: name("client CPU each"), Value: 1000 * apply.CPU / float64(n), Unit: "ms", Floor: 1000 * floor.CPU / float64(n)})
	t.add(figure{Name: name("ssh -G CPU each"), Value: 1000 * apply.ChildCPU / float64(n), Unit: "ms"})
	t.add(figure{Name: name("peak memory"), Value: float64(apply.PeakKiB) / 1024, Unit: "MiB", Floor: float64(floor.PeakKiB) / 1024})
	t.add(figure{Name: name("connections each"), Value: float64(one.Counts.Connections) / float64(n), Unit: "", Limit: 1})
	t.add(figure{Name: name("commands, most"), Value: float64(one.Counts.MostCommands), Unit: "", Limit: 2})
	t.add(figure{Name: name("up, an agent"), Value: float64(one.Counts.BytesUp) / 1024, Unit: "KiB"})
	t.add(figure{Name: name("down, an agent"), Value: float64(one.Counts.BytesDown) / 1024, Unit: "KiB"})
	if t.seconds == nil {
		t.seconds, t.peak = map[int]float64{}, map[int]float64{}
	}
	t.seconds[n], t.peak[n] = apply.Seconds, float64(apply.PeakKiB)/1024
	return nil
}

// growth compares the fleets with each other.
func (t *table) growth(fleets []int) {
	first := fleets[0]
	if slices.Contains(fleets, 10) {
		t.add(figure{Name: "apply on 10 machines beside 1", Value: t.seconds[10], Unit: "s", Floor: t.seconds[first], Limit: 1.1})
	}
	if slices.Contains(fleets, 500) {
		t.add(figure{Name: "memory of 500 machines beyond 1", Value: t.peak[500] - t.peak[first], Unit: "MiB", Limit: 25})
	}
	if slices.Contains(fleets, 1000) {
		t.add(figure{Name: "memory of 1000 machines", Value: t.peak[1000], Unit: "MiB", Limit: 300})
	}
}

// load notes how busy the computer is: times of a busy one prove nothing.
func (t *table) load(when string) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return // not Linux
	}
	var load float64
	if _, err := fmt.Sscan(strings.Fields(string(text))[0], &load); err == nil {
		t.add(figure{Name: "load of the computer, " + when, Value: load})
	}
}

func (t *table) write(path string) error {
	text, err := json.MarshalIndent(t.rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
