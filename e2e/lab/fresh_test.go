//go:build lab

package lab_test

import (
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab"
)

// removeOld takes away machines of an earlier run of the same test that was killed.
func removeOld(t *testing.T, l *lab.Lab) {
	t.Helper()
	old, err := l.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range old {
		if err := m.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
