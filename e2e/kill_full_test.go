//go:build lab && full

package e2e_test

import "testing"

// TestFullKilledAtManyMoments is TestKilledAtAnyMoment at 40 moments.
func TestFullKilledAtManyMoments(t *testing.T) {
	killedAt(t, "kills-bare", 0, 20, 3)
	killedAt(t, "kills-gpu", 1, 20, 4)
}
