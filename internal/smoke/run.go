package smoke

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Say reports what a node's test is doing or waiting for, one line. It is called
// from several goroutines. Nil says nothing.
type Say func(node, format string, args ...any)

// tester is one run.
type tester struct {
	client  kubernetes.Interface
	options Options
	say     Say
	mark    string
	every   time.Duration
	now     func() time.Time
	// logs reads a pod's whole log.
	logs func(ctx context.Context, pod string) (string, error)
}

// Run tests nodes, all at once, and reports. A node that fails is in the report;
// the error is for what kept the test itself from being done (no API, cancelled).
// Its pods and its namespace are taken away afterwards, also when ctx ended.
func Run(ctx context.Context, client kubernetes.Interface, nodes []Node, o Options, say Say) (Report, error) {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		return Report{}, fmt.Errorf("running the smoke test: %w", err)
	}
	t := &tester{client: client, options: o, say: say, mark: hex.EncodeToString(raw), every: time.Second, now: time.Now}
	t.options.Limits = o.Limits.withDefaults()
	t.logs = t.readLog
	return t.run(ctx, nodes)
}

func (t *tester) run(ctx context.Context, nodes []Node) (report Report, err error) {
	report = Report{Started: t.now(), Image: t.options.Image, ByDigest: strings.Contains(t.options.Image, "@sha256:")}
	if err := t.makeNamespace(ctx); err != nil {
		return report, fmt.Errorf("running the smoke test: %w", err)
	}
	defer func() { err = errors.Join(err, t.cleanUp(ctx)) }()
	report.Nodes = make([]NodeReport, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { report.Nodes[i] = t.node(ctx, n) })
	}
	wg.Wait()
	report.Finished = t.now()
	report.Passed = len(nodes) > 0
	for _, n := range report.Nodes {
		report.Passed = report.Passed && n.Status == Passed
	}
	if ctx.Err() != nil {
		return report, fmt.Errorf("running the smoke test: %w", ctx.Err())
	}
	return report, nil
}

// node climbs the ladder on one node.
func (t *tester) node(ctx context.Context, n Node) NodeReport {
	start := t.now()
	r := newLadder(n, t.now)
	status, finding := Count(n)
	r.step(StepCount, status, counted(n), finding)
	unfit := t.options.unfit(n)
	switch {
	case unfit != nil:
		r.skip(StepSMI, Skipped)
		r.step(StepCompute, Failed, "", unfit)
	case n.ask() == 0 && n.Allocatable > 0:
		r.skip(StepSMI, InUse)
		r.skip(StepCompute, InUse)
		r.GPUs = untested(n.Host, nil, -1)
	case n.ask() == 0:
		r.skip(StepSMI, Skipped)
		r.skip(StepCompute, Skipped)
	case n.shared():
		t.crowd(ctx, n, r)
	default:
		t.pod(ctx, n, r)
	}
	r.attach(n.Host)
	r.settle()
	r.Seconds = t.now().Sub(start).Seconds()
	return r.NodeReport
}

// pod does steps 2 and 3. A pod that the kubelet refuses at admission is tried
// once more: the device plugin may just have been registering
// (kubernetes#125579). So is one that went with its namespace, which a test
// beside this one had just cleaned up.
func (t *tester) pod(ctx context.Context, n Node, r *ladder) {
	for attempt := 1; ; attempt++ {
		pod, err := t.create(ctx, Pod(n, t.options, t.mark, attempt))
		if err == nil {
			err = t.await(ctx, n.Name, pod.Name)
		}
		var trouble *podError
		if errors.As(err, &trouble) && attempt == 1 && (trouble.code == CodeAdmission || trouble.code == codeDeleted) {
			t.tell(n.Name, "once more: %s", trouble.reason)
			continue
		}
		if err != nil {
			r.step(StepSMI, Failed, "", asFinding(err))
			r.skip(StepCompute, Skipped)
			r.GPUs = untested(n.Host, nil, -1)
			for i := range r.GPUs {
				r.GPUs[i].Status, r.GPUs[i].Detail = Skipped, "the test pod did not run"
			}
			return
		}
		t.judge(ctx, n, pod, r)
		return
	}
}

func (t *tester) judge(ctx context.Context, n Node, pod *corev1.Pod, r *ladder) {
	log, err := t.fetchLog(ctx, pod.Name)
	if err != nil {
		r.step(StepSMI, Failed, "", asFinding(err))
		r.skip(StepCompute, Skipped)
		return
	}
	r.judged(Judge(n.Host, n.ask(), log), log.Computing())
}

// fetchLog reads a pod's log until its last line is there: the kubelet may be a
// moment behind the pod's end.
func (t *tester) fetchLog(ctx context.Context, pod string) (Log, error) {
	var log Log
	var err error
	for range 10 {
		var text string
		if text, err = t.logs(ctx, pod); err == nil {
			if log = ParseLog(text, t.mark); log.Ended {
				return log, nil
			}
		}
		if !t.pause(ctx) {
			break
		}
	}
	if err != nil {
		return Log{}, &podError{CodeLogCut, "reading the log of pod " + pod + ": " + err.Error(), err}
	}
	return log, nil
}

// maxLog bounds a log; the script prints a few hundred bytes for each GPU.
const maxLog = 1 << 20

func (t *tester) readLog(ctx context.Context, pod string) (string, error) {
	limit := int64(maxLog)
	stream, err := t.client.CoreV1().Pods(Namespace).GetLogs(pod, &corev1.PodLogOptions{LimitBytes: &limit, Timestamps: true}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxLog))
	return string(text), err
}

func (t *tester) tell(node, format string, args ...any) {
	if t.say != nil {
		t.say(node, format, args...)
	}
}

// pause waits one tick; false when the context ended.
func (t *tester) pause(ctx context.Context) bool {
	timer := time.NewTimer(t.every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// podError says why a pod did not do its work.
type podError struct {
	code   string
	reason string
	err    error
}

func (e *podError) Error() string { return e.reason }
func (e *podError) Unwrap() error { return e.err }

// codeDeleted marks a pod that vanished; reported as CodeContainer.
const codeDeleted = "deleted"

func asFinding(err error) *Finding {
	var p *podError
	if errors.As(err, &p) {
		if p.code == codeDeleted {
			return &Finding{CodeContainer, p.reason}
		}
		return &Finding{p.code, p.reason}
	}
	return &Finding{CodeContainer, err.Error()}
}
