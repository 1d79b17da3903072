package smoke

import (
	"fmt"
	"time"
)

// ladder is a node's report while its steps are climbed. A step took as long as
// it is since the one before it.
type ladder struct {
	NodeReport
	now func() time.Time
	lap time.Time
}

func newLadder(n Node, now func() time.Time) *ladder {
	return &ladder{NodeReport: NodeReport{Node: n.Name, Driver: n.Driver}, now: now, lap: now()}
}

// step ends a step. detail is what it showed; where it failed, the finding says it.
func (l *ladder) step(name string, s Status, detail string, f *Finding) {
	at := l.now()
	if f != nil {
		l.Findings = append(l.Findings, *f)
		detail = f.Evidence
	}
	l.Steps = append(l.Steps, Step{Name: name, Status: s, Seconds: at.Sub(l.lap).Seconds(), Detail: detail})
	l.lap = at
}

// skip ends a step that nothing was done for.
func (l *ladder) skip(name string, s Status) { l.step(name, s, "", nil) }

// judged ends the two steps that share a pod: computing took what the pod's log
// says, getting the pod to run and its nvidia-smi to answer took the rest.
func (l *ladder) judged(r Result, computing time.Duration) {
	l.Findings, l.GPUs = append(l.Findings, r.Findings...), r.GPUs
	smi, compute := "", r.computed()
	if l.Driver != "" {
		smi = "driver " + l.Driver
	}
	switch {
	case r.SMI == Failed:
		smi, compute = evidence(r.Findings), ""
	case len(r.Findings) > 0:
		compute = evidence(r.Findings)
	}
	l.step(StepSMI, r.SMI, smi, nil)
	l.step(StepCompute, r.Compute, compute, nil)
	whole := &l.Steps[len(l.Steps)-2]
	took := min(max(computing.Seconds(), 0), whole.Seconds)
	whole.Seconds -= took
	l.Steps[len(l.Steps)-1].Seconds += took
}

// computed says on how many GPUs of the machine vectorAdd passed.
func (r Result) computed() string {
	passed := 0
	for _, g := range r.GPUs {
		if g.Status == Passed {
			passed++
		}
	}
	return fmt.Sprintf("passed on %d of %d GPUs", passed, len(r.GPUs))
}
