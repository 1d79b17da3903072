package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// stage is where a pod stands; each has its own limit.
type stage int

const (
	placing stage = iota
	starting
	running
	ended
)

func stageOf(p *corev1.Pod) stage {
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return ended
	case corev1.PodRunning:
		return running
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return starting
		}
	}
	return placing
}

func (s stage) limit(l Limits) (time.Duration, string, string) {
	switch s {
	case placing:
		return l.Placed, CodeUnschedulable, "to be placed"
	case starting:
		return l.Started, CodeTimeout, "to start"
	}
	return l.Ran, CodeTimeout, "to end"
}

// await waits until a pod has ended by itself. A *podError says what kept it.
func (t *tester) await(ctx context.Context, node, name string) error {
	return t.awaitStage(ctx, node, name, ended)
}

// awaitStage waits until a pod stands at a stage. One that ended is there too,
// unless it was refused.
func (t *tester) awaitStage(ctx context.Context, node, name string, want stage) error {
	at, since := placing, t.now()
	var troubled time.Time
	var reason string
	for {
		pod, err := t.client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return &podError{codeDeleted, "somebody deleted the test pod", err}
		case err != nil:
			reason = "looking failed: " + err.Error()
		default:
			if now := stageOf(pod); now != at {
				at, since = now, t.now()
			}
			why := podreason.Of(*pod, t.events(ctx, name))
			if at == ended {
				return refusal(pod, why)
			}
			if at == want {
				return nil
			}
			if why != "" && why != reason {
				t.tell(node, "%s", why)
			}
			reason = why
			troubled = t.since(troubled, at, why)
		}
		if err := t.over(at, since, troubled, reason); err != nil {
			return err
		}
		if !t.pause(ctx) {
			return &podError{CodeTimeout, "cancelled: " + reason, ctx.Err()}
		}
	}
}

// since keeps when a trouble that seldom heals was first seen.
func (t *tester) since(was time.Time, at stage, why string) time.Time {
	if at != starting || Classify(why) == "" {
		return time.Time{}
	}
	if was.IsZero() {
		return t.now()
	}
	return was
}

// over says whether a limit has passed.
func (t *tester) over(at stage, since, troubled time.Time, reason string) error {
	now := t.now()
	if reason == "" {
		reason = "no reason is known"
	}
	if !troubled.IsZero() && now.Sub(troubled) > t.options.Limits.Trouble {
		return &podError{Classify(reason), reason, nil}
	}
	limit, code, what := at.limit(t.options.Limits)
	if now.Sub(since) <= limit {
		return nil
	}
	if known := Classify(reason); known != "" {
		code = known
	}
	return &podError{code, fmt.Sprintf("waited %s for the test pod %s: %s", limit, what, reason), nil}
}

// refusal is nil for a pod that ran its script to the end, and the reason for one
// that the kubelet refused or that could not be run.
func refusal(pod *corev1.Pod, why string) error {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil && end.Reason != "StartError" && end.Reason != "ContainerCannotRun" && pod.Status.Reason == "" {
			return nil // It ran; its log says more than its exit code.
		}
	}
	code := Classify(why)
	switch {
	case code == "" && pod.Status.Reason == "DeadlineExceeded":
		code = CodeTimeout
	case code == "":
		code = CodeContainer
	}
	return &podError{code, why, nil}
}

func (t *tester) events(ctx context.Context, pod string) []corev1.Event {
	list, err := t.client.CoreV1().Events(Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return nil
	}
	var own []corev1.Event
	for _, e := range list.Items {
		if e.InvolvedObject.Name == pod {
			own = append(own, e)
		}
	}
	return own
}

// create makes the pod. A namespace that was just made has no service account yet,
// and until it has one the API forbids pods: that passes. So does the end of the
// namespace, when a test of other nodes that ran beside this one cleans up.
func (t *tester) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	start := t.now()
	for {
		made, err := t.client.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err == nil {
			return made, nil
		}
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) || t.now().Sub(start) > time.Minute || !t.pause(ctx) {
			return nil, &podError{CodeContainer, "creating the test pod: " + err.Error(), err}
		}
		if again := t.makeNamespace(ctx); again != nil {
			return nil, &podError{CodeContainer, "creating the test pod: " + again.Error(), again}
		}
	}
}

// makeNamespace makes the namespace, after one that is still going away from an earlier test.
func (t *tester) makeNamespace(ctx context.Context) error {
	start := t.now()
	for {
		ns, err := t.client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = t.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: Namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "gpuctl"}}}, metav1.CreateOptions{})
			if err == nil || !apierrors.IsAlreadyExists(err) {
				return err
			}
		case err != nil:
			return err
		case ns.DeletionTimestamp == nil:
			return nil
		}
		if t.now().Sub(start) > 2*time.Minute {
			return errors.New("namespace " + Namespace + " of an earlier test does not go away")
		}
		if !t.pause(ctx) {
			return ctx.Err()
		}
	}
}

// cleanUpLimit bounds the clean-up: an API server that restarts is back within it.
const cleanUpLimit = time.Minute

// cleanUp takes this run's pods away, and the namespace if no other pod is left in
// it. It has its own time, for the run's may be over, and tries again while there
// is some: a proof is not lost because the API was away for a moment.
func (t *tester) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	var last error
	err := retry.Do(ctx, retry.NewConstant(t.every), func(ctx context.Context) error {
		if err := t.takeAway(ctx); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			return retry.RetryableError(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cleaning up after the smoke test: %w", errors.Join(err, last))
	}
	return nil
}

func (t *tester) takeAway(ctx context.Context) error {
	pods := t.client.CoreV1().Pods(Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var faults []error
	others := false
	for _, p := range list.Items {
		if p.Labels["gpuctl.dev/smoke"] != t.mark {
			others = others || p.DeletionTimestamp == nil
			continue
		}
		now := int64(0)
		if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, err)
		}
	}
	if !others {
		if err := t.client.CoreV1().Namespaces().Delete(ctx, Namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
