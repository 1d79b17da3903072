//go:build unix

package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/bench"
)

// What a run without changes may cost a machine.
const (
	maxCommands  = 2
	maxBytesUp   = 21 << 10 // login 2.7 KB, probe, the way to root
	maxBytesDown = 16 << 10
	maxServerUp  = 40 << 10 // also the credentials, and the API through it
)

// A run that finds nothing to do costs one connection per machine, few commands
// and few bytes, and no machine waits for another. Counts, not times: they hold
// on a busy computer.
func TestCounts(t *testing.T) {
	const n = 20
	farm, err := bench.StartFarm(bench.FarmOptions{Machines: n, Together: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := farm.Close(); err != nil {
			t.Error(err)
		}
	}()
	site, err := bench.NewSite(t.TempDir(), farm.Ports, farm.HostKey)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cost, err := bench.Run(ctx, "apply", site, "none")
	if err != nil {
		t.Fatal(err)
	}
	seen := farm.Counts()
	t.Logf("%+v %+v", cost, seen)
	if seen.Connections != n || cost.Connections != 1 {
		t.Errorf("%d connections to %d machines", seen.Connections, n)
	}
	if seen.MostBusy != n {
		t.Errorf("%d machines of %d were busy at the same time", seen.MostBusy, n)
	}
	if seen.Commands != n+1 || seen.MostCommands > maxCommands || cost.Commands > maxCommands {
		t.Errorf("%d commands, at most %d to one machine", seen.Commands, seen.MostCommands)
	}
	if cost.BytesUp > maxServerUp {
		t.Errorf("the server: %d bytes up", cost.BytesUp)
	}
	if seen.BytesUp > maxBytesUp || seen.BytesDown > maxBytesDown {
		t.Errorf("a machine: %d bytes up, %d down", seen.BytesUp, seen.BytesDown)
	}
}
