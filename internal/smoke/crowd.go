package smoke

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxCrowd bounds the pods of one test: a kubelet takes 110 in all.
const maxCrowd = 32

// crowdPod is one of the pods that share a node's GPUs. It stays after its work,
// so that all of them hold their shares at once.
func crowdPod(n Node, o Options, mark string, number int) *corev1.Pod {
	pod := Pod(n, o, mark, number)
	c := &pod.Spec.Containers[0]
	c.Command[2] = "(\n" + c.Command[2] + ")\nexec sleep 3600"
	return pod
}

// oneMore is a pod that asks for one share more than the others leave.
func oneMore(n Node, o Options, mark string, others int) *corev1.Pod {
	pod := crowdPod(n, o, mark, others+1)
	pod.Spec.Containers[0].Resources.Limits[n.resource()] = *resource.NewQuantity(int64(n.free()-others+1), resource.DecimalSI)
	return pod
}

// crowd proves a node with shared GPUs: pods side by side, one share each, and
// one pod more that has to wait.
func (t *tester) crowd(ctx context.Context, n Node, r *ladder) {
	pods, err := t.gather(ctx, n)
	if err != nil {
		r.step(StepSMI, Failed, "", asFinding(err))
		r.skip(StepCompute, Skipped)
		r.skip(StepBeside, Failed)
		r.GPUs = untested(n.Host, nil, 0)
		return
	}
	var logs []Log
	var computing time.Duration
	for _, pod := range pods {
		log, err := t.fetchLog(ctx, pod)
		if err != nil {
			r.step(StepSMI, Failed, "", asFinding(err))
			r.skip(StepCompute, Skipped)
			return
		}
		logs, computing = append(logs, log), max(computing, log.Computing())
	}
	r.judged(JudgeCrowd(n, logs), computing)
	t.tell(n.Name, "%d pods side by side on %d GPUs; one more must wait", len(pods), len(n.Host))
	status, finding := t.mustWait(ctx, n, len(pods))
	oneMore := r.now().Sub(r.lap)
	if err := t.stillThere(ctx, pods); err != nil {
		r.step(StepBeside, Failed, "", asFinding(err))
	} else {
		r.step(StepBeside, Passed, fmt.Sprintf("%d pods at once", len(pods)), nil)
	}
	r.step(StepOneMore, status, "it had to wait", finding)
	r.Steps[len(r.Steps)-2].Seconds -= oneMore.Seconds() // the pod that is one too many came while they stood there
	r.Steps[len(r.Steps)-1].Seconds += oneMore.Seconds()
}

// gather starts a pod for every free share and waits until all of them run.
func (t *tester) gather(ctx context.Context, n Node) ([]string, error) {
	var names []string
	for i := range min(n.free(), maxCrowd) {
		pod, err := t.create(ctx, crowdPod(n, t.options, t.mark, i+1))
		if err != nil {
			return nil, err
		}
		names = append(names, pod.Name)
	}
	for _, name := range names {
		if err := t.awaitStage(ctx, n.Name, name, running); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// stillThere: none of the pods ended while the last one came.
func (t *tester) stillThere(ctx context.Context, names []string) error {
	for _, name := range names {
		pod, err := t.client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return &podError{CodeContainer, "looking at " + name + ": " + err.Error(), err}
		}
		if stageOf(pod) != running {
			return &podError{CodeContainer, fmt.Sprintf("pod %s did not stay beside the others: it is %s", name, pod.Status.Phase), nil}
		}
	}
	return nil
}

// mustWait starts the pod that is one too many and waits for the scheduler's refusal.
func (t *tester) mustWait(ctx context.Context, n Node, others int) (Status, *Finding) {
	pod, err := t.create(ctx, oneMore(n, t.options, t.mark, others))
	if err != nil {
		return Failed, asFinding(err)
	}
	start := t.now()
	for t.now().Sub(start) < t.options.Limits.Placed {
		pod, err = t.client.CoreV1().Pods(Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return Failed, &Finding{CodeContainer, "looking at the pod that is one too many: " + err.Error()}
		}
		if stageOf(pod) != placing {
			return Failed, &Finding{CodeOneTooMany, fmt.Sprintf("%d shares were free and held, and one more pod was placed", n.free())}
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, string(n.resource())) {
				return Passed, nil
			}
		}
		if !t.pause(ctx) {
			break
		}
	}
	return Failed, &Finding{CodeTimeout, "the scheduler said nothing about the pod that is one too many"}
}

// JudgeCrowd holds what pods that share a node's GPUs printed against what the
// machine lists. It is pure. Each pod is judged as one that was given one GPU;
// where they hold all shares, every GPU has to have been given out as often as it
// is shared.
func JudgeCrowd(n Node, logs []Log) Result {
	all := Result{SMI: Passed, Compute: Passed}
	gpus, times := map[string]GPUResult{}, map[string]int{}
	for i, log := range logs {
		r := Judge(n.Host, 1, log)
		all.SMI, all.Compute = worst(all.SMI, r.SMI), worst(all.Compute, r.Compute)
		for _, f := range r.Findings {
			f.Evidence = fmt.Sprintf("pod %d: %s", i+1, f.Evidence)
			all.Findings = append(all.Findings, f)
		}
		for _, g := range r.GPUs {
			if g.Status == InUse {
				continue
			}
			times[g.UUID]++
			if gpus[g.UUID].Status != Failed {
				gpus[g.UUID] = g
			}
		}
	}
	full := len(logs) == n.Allocatable
	for _, h := range n.Host {
		g, seen := gpus[h.UUID]
		switch {
		case seen:
		case full:
			g = GPUResult{UUID: h.UUID, Name: h.Name, Status: Failed, Detail: "no pod was given it"}
		default:
			g = GPUResult{UUID: h.UUID, Name: h.Name, Status: InUse, Detail: "in use, not tested"}
		}
		all.GPUs = append(all.GPUs, g)
		delete(gpus, h.UUID)
		if want := max(n.Units, 1); full && times[h.UUID] != want {
			all.Compute = Failed
			all.Findings = append(all.Findings, Finding{CodeSharedUneven, fmt.Sprintf("%s was given to %d pods at once, want %d", h.UUID, times[h.UUID], want)})
		}
	}
	for _, log := range logs { // those the machine does not have, in a fixed order
		for _, u := range log.Units() {
			if g, there := gpus[u.UUID]; there {
				all.GPUs = append(all.GPUs, g)
				delete(gpus, u.UUID)
			}
		}
	}
	return all
}

func worst(a, b Status) Status {
	rank := map[Status]int{Passed: 0, Unverified: 1, Skipped: 2, Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
