package smoke

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (run with -update if this is meant):\n%s", file, got)
	}
}

func TestPodGolden(t *testing.T) {
	o := Options{Image: "nvcr.io/nvidia/k8s/cuda-sample:x", Programs: []string{"/cuda-samples/vectorAdd", "/cuda-samples/sample"}}
	n := Node{Name: "gpu-1.example", Host: host(uuidA, uuidB), Allocatable: 2, Requested: 0}
	text, err := yaml.Marshal(Pod(n, o, "0123456789abcdef", 1))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pod-cdi.yaml", text)
	o.RuntimeClass, o.Taints, n.Units, n.Allocatable = "nvidia", []string{"example.com/team"}, 10, 20
	text, err = yaml.Marshal(Pod(n, o, "0123456789abcdef", 2))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pod-shared-runtimeclass.yaml", text)
}

// bench is a pretended cluster: each creation of a pod takes the next life, and
// each look at it the life's next state (the last one stays).
type bench struct {
	*tester
	t     *testing.T
	mu    sync.Mutex
	lives [][]corev1.PodStatus
	looks map[string]int
	life  map[string][]corev1.PodStatus
	clock time.Time
	log   string
	made  int
}

func newBench(t *testing.T, lives ...[]corev1.PodStatus) *bench {
	b := &bench{t: t, lives: lives, looks: map[string]int{}, life: map[string][]corev1.PodStatus{}, clock: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", b.create)
	client.PrependReactor("get", "pods", b.get)
	b.tester = &tester{client: client, mark: "mark", every: time.Microsecond, now: b.now,
		options: Options{Image: "img@sha256:0", Programs: []string{"/x"}, MinDriver: "525.60.13", Limits: Limits{}.withDefaults()},
		logs:    func(context.Context, string) (string, error) { return b.log, nil }}
	return b
}

// now moves on by five seconds at each look, so that limits pass without sleeping.
func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(5 * time.Second)
	return b.clock
}

func (b *bench) create(a k8stesting.Action) (bool, runtime.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made >= len(b.lives) {
		b.t.Errorf("pod %d is one too many", b.made+1)
		return true, nil, errors.New("one too many")
	}
	b.life[a.(k8stesting.CreateAction).GetObject().(*corev1.Pod).Name] = b.lives[b.made]
	b.made++
	return false, nil, nil
}

func (b *bench) get(a k8stesting.Action) (bool, runtime.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := a.(k8stesting.GetAction).GetName()
	states := b.life[name]
	i := min(b.looks[name], len(states)-1)
	b.looks[name]++
	return true, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}, Status: states[i]}, nil
}

func pending(reason, message string) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
	if reason != "" {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "smoke", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
	return s
}

func unplaced(message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}}
}

func refused(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
}

func succeeded() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "smoke", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}
}

func alive() corev1.PodStatus { return corev1.PodStatus{Phase: corev1.PodRunning} }

func TestRun(t *testing.T) {
	two := Node{Name: "gpu-1", Host: host(uuidA, uuidB), PCI: 2, Allocatable: 2, Driver: "580.95.05"}
	good := []corev1.PodStatus{unplaced("waiting"), pending("", ""), alive(), succeeded()}
	tests := []struct {
		name   string
		node   func(*Node)
		lives  [][]corev1.PodStatus
		log    string
		status Status
		code   string
		says   string
	}{
		{"passes", nil, [][]corev1.PodStatus{good}, printed("mark", uuidA, uuidB), Passed, "", ""},
		{"a lying image", nil, [][]corev1.PodStatus{good}, printed("mark", uuidA, uuidX), Failed, CodeForeignUUID, uuidX},
		{"refused at admission, then well", nil, [][]corev1.PodStatus{{refused("UnexpectedAdmissionError", "no devices")}, good},
			printed("mark", uuidA, uuidB), Passed, "", ""},
		{"refused twice", nil, [][]corev1.PodStatus{{refused("UnexpectedAdmissionError", "no devices")}, {refused("UnexpectedAdmissionError", "no devices")}},
			"", Failed, CodeAdmission, "no devices"},
		{"a request of two shared units", nil, [][]corev1.PodStatus{{refused("UnexpectedAdmissionError", "maximum request size for shared resources is 1; found 2")}},
			"", Failed, CodeSharedRequest, "found 2"},
		{"not placed", nil, [][]corev1.PodStatus{{unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")}}, "", Failed, CodeUnschedulable, "Insufficient"},
		{"no image", nil, [][]corev1.PodStatus{{pending("", ""), pending("ErrImagePull", "not found")}}, "", Failed, CodeImagePull, "not found"},
		{"image needs a newer driver", nil, [][]corev1.PodStatus{{pending("RunContainerError", "requirement error: unsatisfied condition: cuda>=12.8, please update")}},
			"", Failed, CodeImageTooNew, "cuda>=12.8"},
		{"slow start without a reason", nil, [][]corev1.PodStatus{{pending("", "")}}, "", Failed, CodeTimeout, "waited 10m0s for the test pod to start"},
		{"hangs", nil, [][]corev1.PodStatus{{alive()}}, "", Failed, CodeTimeout, "waited 5m0s for the test pod to end"},
		{"driver below the image's floor: no pod", func(n *Node) { n.Driver = "470.82.01" }, nil, "", Failed, CodeImageTooNew, "may be fine"},
		{"all in use: no pod, not passed", func(n *Node) { n.Requested = 2 }, nil, "", InUse, "", ""},
		{"half in use", func(n *Node) { n.Requested = 1 }, [][]corev1.PodStatus{good}, printed("mark", uuidA), InUse, "", ""},
		{"nothing allocatable", func(n *Node) { n.Allocatable = 0 }, nil, "", Failed, CodeCount, "0 allocatable"},
		{"machine could not be asked", func(n *Node) { n.Host, n.PCI = nil, Unknown }, [][]corev1.PodStatus{good}, printed("mark", uuidA, uuidB), Unverified, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.lives...)
			b.log = tt.log
			n := two
			if tt.node != nil {
				tt.node(&n)
			}
			r, err := b.run(t.Context(), []Node{n})
			if err != nil {
				t.Fatal(err)
			}
			got := r.Nodes[0]
			if got.Status != tt.status || r.Passed != (tt.status == Passed) || b.made != len(tt.lives) {
				t.Errorf("status %s with %d pods, want %s with %d: %+v", got.Status, b.made, tt.status, len(tt.lives), got)
			}
			if tt.code == "" && len(got.Findings) > 0 {
				t.Errorf("unexpected findings %v", got.Findings)
			}
			if tt.code != "" && (len(got.Findings) == 0 || got.Findings[0].Code != tt.code || !strings.Contains(got.Findings[0].Evidence, tt.says)) {
				t.Errorf("findings %v, want %s ...%s...", got.Findings, tt.code, tt.says)
			}
			if _, ok := r.Proof("gpu-1"); ok != (tt.status == Passed) {
				t.Errorf("a proof: %v", ok)
			}
			if _, err := b.client.CoreV1().Namespaces().Get(t.Context(), Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace stayed: %v", err)
			}
		})
	}
}

func TestRunTestsNodesAtOnceAndReportsEach(t *testing.T) {
	b := newBench(t, []corev1.PodStatus{succeeded()}, []corev1.PodStatus{succeeded()})
	b.log = printed("mark", uuidA)
	r, err := b.run(t.Context(), []Node{
		{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 1, Driver: "580.95.05"},
		{Name: "gpu-2", Host: host(uuidB), PCI: 1, Allocatable: 1},
	})
	if err != nil || r.Passed || r.Nodes[0].Status != Passed || r.Nodes[1].Status != Failed {
		t.Fatalf("got %+v, %v", r, err)
	}
	r.Started, r.Finished = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 9, 1, 12, 1, 0, 0, time.UTC)
	for i := range r.Nodes {
		r.Nodes[i].Seconds = 12.5
		for j := range r.Nodes[i].Steps { // two nodes share the test's clock
			if r.Nodes[i].Steps[j].Seconds <= 0 {
				t.Errorf("%s took no time", r.Nodes[i].Steps[j].Name)
			}
			r.Nodes[i].Steps[j].Seconds = float64(j) + 0.5
		}
	}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", text)
	if text, err = JUnit(r); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.xml", text)

	proof, ok := r.Proof("gpu-1")
	value, err := proof.Annotation()
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	back, err := ParseProof(value)
	if err != nil || !reflect.DeepEqual(back, proof) || back.UUIDs[0] != uuidA || back.Driver != "580.95.05" {
		t.Errorf("got %+v, %v", back, err)
	}
}

// The two steps of one pod share its time as the kubelet's times in its log say.
func TestAStepSaysHowLongItTook(t *testing.T) {
	b := newBench(t, []corev1.PodStatus{succeeded()})
	begin := time.Date(2026, 9, 1, 7, 0, 0, 0, time.UTC) // the node's clock is another
	for i, line := range strings.SplitAfter(strings.TrimSuffix(printed("mark", uuidA), "\n"), "\n") {
		b.log += begin.Add(time.Duration(i)*500*time.Millisecond).Format(time.RFC3339Nano) + " " + line
	}
	r, err := b.run(t.Context(), []Node{{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 1, Driver: "580.95.05"}})
	if err != nil || !r.Passed {
		t.Fatalf("got %+v, %v", r, err)
	}
	n, sum := r.Nodes[0], 0.0
	for _, s := range n.Steps {
		sum += s.Seconds
	}
	if got := n.Steps[2]; got.Name != StepCompute || got.Seconds != 5+2 || got.Detail != "passed on 1 of 1 GPUs" {
		t.Errorf("vectorAdd: %+v", got) // a look at the clock is 5 s; from "smi" to "end" are 4 lines
	}
	if got := n.Steps[1]; got.Seconds < 5 || got.Detail != "driver 580.95.05" || n.Steps[0].Detail != "1 on the PCI bus, 1 with a driver, 1 allocatable" {
		t.Errorf("before it: %+v", n.Steps)
	}
	if sum > n.Seconds {
		t.Errorf("steps take %.1fs, the node %.1fs", sum, n.Seconds)
	}
}

func TestACancelledRunCleansUp(t *testing.T) {
	b := newBench(t, []corev1.PodStatus{alive()})
	ctx, cancel := context.WithCancel(t.Context())
	b.options.Limits.Ran = 1000 * time.Hour
	b.say = func(string, string, ...any) {}
	b.client.(*fake.Clientset).PrependReactor("list", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
		cancel()
		return false, nil, nil
	})
	r, err := b.run(ctx, []Node{{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 1}})
	if !errors.Is(err, context.Canceled) || r.Passed {
		t.Fatalf("got %v, %v", r.Passed, err)
	}
	pods, err := b.client.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("pods stayed: %v, %v", pods.Items, err)
	}
}

func TestAnotherRunsPodKeepsTheNamespace(t *testing.T) {
	b := newBench(t, []corev1.PodStatus{succeeded()})
	b.log = printed("mark", uuidA)
	b.life["other"] = []corev1.PodStatus{alive()}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "other", Labels: map[string]string{"gpuctl.dev/smoke": "x"}}}
	if err := b.client.(*fake.Clientset).Tracker().Add(other); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t.Context(), []Node{{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.CoreV1().Namespaces().Get(t.Context(), Namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace went while another test used it: %v", err)
	}
}

func TestCreateWaitsForTheServiceAccount(t *testing.T) {
	b := newBench(t, []corev1.PodStatus{succeeded()})
	b.log = printed("mark", uuidA)
	refusals := 2
	b.client.(*fake.Clientset).PrependReactor("create", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		if refusals > 0 {
			refusals--
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "smoke", errors.New(`serviceaccount "default" not found`))
		}
		return false, nil, nil
	})
	r, err := b.run(t.Context(), []Node{{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 1}})
	if err != nil || !r.Passed {
		t.Errorf("got %+v, %v", r, err)
	}
}

// An API server that restarts while the test cleans up takes no proof away.
func TestCleaningUpOutlivesARestart(t *testing.T) {
	b := newBench(t)
	away := 3
	b.client.(*fake.Clientset).PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		if away--; away >= 0 {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	if err := b.cleanUp(t.Context()); err != nil || away != -1 {
		t.Errorf("%v, with %d refusals left", err, away)
	}
}
