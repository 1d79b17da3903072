//go:build lab

package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestTwoLaptops: the second computer that changes a cluster is told who does so
// already, and has its turn when that run has ended, be it by kill -9.
func TestTwoLaptops(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "laptops")
	m := s.Machines(machine.Spec{Name: "a"})[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m}}})

	first := s.Start("apply")
	if !first.WaitEvents(0, func(e []scene.Event) bool { return started(e, m.Name+"/k3s") }) {
		t.Fatalf("the first run never came to k3s:\n%s", first.Wait().Stderr)
	}
	s.Env = append(s.Env, "XDG_STATE_HOME="+filepath.Join(s.Dir, "second"))
	r := s.Must(exitLocked, "apply")
	mentions(t, "the message", r.Stderr, "another gpuctl works on this cluster", m.Name, "@", "since")

	first.Kill()
	first.Wait()
	s.Must(0, "apply")
	s.Must(0, "reset", "--yes")
}
