package bootstrap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/doctor"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// diagnosisLimit bounds the look at a cluster after a wait that ended.
const diagnosisLimit = 20 * time.Second

// unmet is a wait that reached its limit, with what keeps it from its end.
type unmet struct {
	err   error
	found diag.Finding
}

func (e *unmet) Error() string {
	if strings.Contains(e.err.Error(), e.found.Evidence) {
		return e.err.Error()
	}
	return e.err.Error() + "; " + e.found.Evidence
}

func (e *unmet) Unwrap() error { return e.err }

// DiagCode implements diag.Coded.
func (e *unmet) DiagCode() diag.Code { return e.found.Code }

// diagnosed looks at the cluster when a wait for it has ended, and adds the root
// cause that it finds at the node (of the whole cluster for ""): the last reason
// of a wait tells what is missing, not always why. Other errors stay as they are.
func (w wanted) diagnosed(ctx context.Context, client *kube.Client, node string, err error) error {
	var ofKube *kube.WaitError
	var ofChart *charts.WaitError
	if err == nil || ctx.Err() != nil || !errors.As(err, &ofKube) && !errors.As(err, &ofChart) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosisLimit)
	defer cancel()
	o, failed := client.Objects(ctx)
	if failed != nil {
		return err // the wait's own reason is what there is
	}
	// What users run explains nothing of what gpuctl waits for.
	own := w.set.Operator.Namespace
	o.Pods = slices.DeleteFunc(o.Pods, func(p corev1.Pod) bool { return p.Namespace != own })
	o.Events = slices.DeleteFunc(o.Events, func(e corev1.Event) bool { return e.InvolvedObject.Namespace != own })
	if found, ok := culprit(diag.Reduce(doctor.Findings(doctor.Seen{Objects: o})), node); ok {
		return &unmet{err, found}
	}
	return err
}

// culprit is the blocking finding that is nearest: at the node, then of the cluster.
func culprit(found []diag.Finding, node string) (diag.Finding, bool) {
	for _, near := range []func(diag.Finding) bool{
		func(f diag.Finding) bool { return node == "" || f.Machine == node },
		func(f diag.Finding) bool { return f.Machine == "" },
	} {
		for _, f := range found {
			if f.Severity == diag.Blocks && near(f) {
				return f, true
			}
		}
	}
	return diag.Finding{}, false
}
