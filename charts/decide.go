package charts

import (
	"fmt"
	"time"
)

// Step is what has to be done next to bring a release to the wanted state.
type Step string

const (
	// StepNone: version and values are as wanted.
	StepNone Step = "none"
	// StepInstall: there is no release.
	StepInstall Step = "install"
	// StepUpgrade: version or values differ, or the last upgrade failed over a good revision.
	StepUpgrade Step = "upgrade"
	// StepRollback: an upgrade was cut off; go back to the last good revision first.
	StepRollback Step = "rollback"
	// StepRemove: an install was cut off or failed, or an uninstall was; take it away entirely, then install.
	StepRemove Step = "remove"
	// StepWait: somebody else's operation may still be running.
	StepWait Step = "wait"
)

// Decide says what to do next, and why. It is pure. wanted is the fingerprint of
// the wanted values (HashValues). The rules are those of the field: see
// helm/helm#30601 and NVIDIA/gpu-operator#826 for records left pending.
//
// A release of the same chart elsewhere is not judged here: callers ask Adopt
// first, as Ensure does, which refuses what cannot be adopted.
func Decide(s State, rel Release, wanted string, now time.Time) (Step, string) {
	switch s.Phase {
	case Absent:
		return StepInstall, "absent"
	case Deployed:
		return decideDeployed(s, rel, wanted)
	case Failed:
		if s.LastGood > 0 && rel.Adopted {
			// What its owner last had running is what is kept.
			return StepRollback, fmt.Sprintf("revision %d failed", s.Revision)
		}
		if s.LastGood > 0 {
			return StepUpgrade, fmt.Sprintf("revision %d failed", s.Revision)
		}
		return StepRemove, "the first install failed"
	case Pending:
		return decidePending(s, rel, now)
	}
	return StepRemove, "an uninstall was cut off"
}

func decideDeployed(s State, rel Release, wanted string) (Step, string) {
	switch {
	case s.Version != rel.Chart.Version:
		return StepUpgrade, fmt.Sprintf("version is %s, wanted %s", s.Version, rel.Chart.Version)
	case s.ValuesHash != wanted:
		return StepUpgrade, "values differ"
	}
	return StepNone, fmt.Sprintf("%s is deployed with these values", s.Version)
}

func decidePending(s State, rel Release, now time.Time) (Step, string) {
	ours := rel.Owner != "" && s.Owner == rel.Owner
	age := now.Sub(s.Since).Round(time.Second)
	if !ours && age < rel.alive() {
		return StepWait, fmt.Sprintf("%s since %s; whoever began it may still be at work", s.Status, age)
	}
	why := fmt.Sprintf("%s since %s", s.Status, age)
	if ours {
		why = s.Status + ": an earlier run was cut off"
	}
	if s.Status == "pending-install" || s.LastGood == 0 {
		return StepRemove, why
	}
	return StepRollback, why
}

func (r Release) alive() time.Duration {
	if r.Alive > 0 {
		return r.Alive
	}
	return 10 * time.Minute
}

func (r Release) limit() time.Duration {
	if r.Limit > 0 {
		return r.Limit
	}
	return 15 * time.Minute
}
