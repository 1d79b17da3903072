package bootstrap

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// engineOf is an engine on machines that dial reaches and a made-up API.
func engineOf(t *testing.T, dial Dialer, names []string, objects ...runtime.Object) (*Engine, *fake.Clientset) {
	t.Helper()
	w := clusterOf(t, names...)
	off := false
	w.config.Spec.GPU.Operator.Enabled = &off
	e, err := New(Settings{
		Config: w.config, Set: w.set, Inventory: w.config.Inventory(), Dial: keepsLock(names[0], dial), Key: "key", Owner: "me",
		Sink: event.SinkFunc(func(event.Event) {}),
	})
	if err != nil {
		t.Fatal(err)
	}
	set := fake.NewClientset(objects...)
	kinds := map[schema.GroupVersionResource]string{{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}: "ClusterPolicyList"}
	e.api.client = kube.New(set, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds))
	e.api.known = &k3s.Credentials{AgentToken: "K10abc::node:secret"}
	return e, set
}

// unreachable is a network in which nobody answers.
func unreachable(_ context.Context, m inventory.Machine) (remote.Host, string, error) {
	return nil, "", &remote.ConnectError{Host: m.Name, Kind: remote.Filtered}
}

// apiNode is a node that was Ready, or stopped being so, some time before noon.
func apiNode(name string, ready bool, before time.Duration) *corev1.Node {
	status := corev1.ConditionUnknown
	if ready {
		status = corev1.ConditionTrue
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(noon().Add(-before))}}}}
	if strings.HasPrefix(name, "server") {
		n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": "true"}
	}
	return n
}

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

func passwordOf(node string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: node + ".node-password.k3s"}}
}

func heartbeat() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "server-1"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: noon()}}}
}

func nodeThere(t *testing.T, set *fake.Clientset, name string) bool {
	t.Helper()
	_, err := set.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestUnreachableIsAStateAndGoneIsSaid(t *testing.T) {
	objects := []runtime.Object{apiNode("server-1", true, time.Hour), apiNode("gpu-1", false, time.Hour), passwordOf("gpu-1"), apiNode("gpu-2", true, time.Hour)}
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1", "gpu-2"}, objects...)
	r, err := e.RemoveNodes(t.Context(), RemoveOptions{Nodes: []string{"gpu-1"}})
	var stays *StaysError
	var connect *remote.ConnectError
	if !errors.As(err, &stays) || !errors.As(err, &connect) || len(r.Removed) > 0 || !nodeThere(t, set, "gpu-1") {
		t.Fatalf("%v, removed %v", err, r.Removed)
	}

	asked := 0
	confirm := func(_ context.Context, p PlanResult) error {
		if asked++; len(p.Actions) != 1 || p.Actions[0].Consent == "" {
			t.Errorf("asked for %+v", p.Actions)
		}
		return nil
	}
	r, err = e.RemoveNodes(t.Context(), RemoveOptions{Nodes: []string{"gpu-1", "gpu-2", "server-1"}, Gone: true, Confirm: confirm})
	if strings.Join(r.Removed, " ") != "gpu-1" || asked != 1 || nodeThere(t, set, "gpu-1") {
		t.Errorf("removed %v, asked %d times", r.Removed, asked)
	}
	if !nodeThere(t, set, "gpu-2") || !nodeThere(t, set, "server-1") || err == nil ||
		!strings.Contains(err.Error(), "gpu-2 stays: its node is Ready") || !strings.Contains(err.Error(), "server-1 stays") {
		t.Errorf("a living node or the server went, or nobody said why it stays: %v", err)
	}
	if _, err := set.CoreV1().Secrets("kube-system").Get(t.Context(), "gpu-1.node-password.k3s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the password stays: %v", err)
	}
}

func TestARefusedRemovalRemovesNothing(t *testing.T) {
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, apiNode("server-1", true, 0), apiNode("gpu-1", false, time.Hour))
	no := func(context.Context, PlanResult) error { return plan.ErrConsent }
	r, err := e.RemoveNodes(t.Context(), RemoveOptions{Nodes: []string{"gpu-1"}, Gone: true, Confirm: no})
	if !errors.Is(err, plan.ErrConsent) || len(r.Removed) > 0 || !nodeThere(t, set, "gpu-1") {
		t.Errorf("%v, removed %v", err, r.Removed)
	}
}

func TestReapTakesTheLongGoneOnly(t *testing.T) {
	e, set := engineOf(t, unreachable, []string{"server-1", "long", "short", "fine"}, heartbeat(), apiNode("server-1", true, time.Hour),
		apiNode("long", false, 11*time.Minute), apiNode("short", false, 9*time.Minute), apiNode("fine", true, time.Hour), apiNode("unlisted", false, time.Hour))
	r, err := e.ReapNodes(t.Context(), ReapOptions{After: 10 * time.Minute})
	if err != nil || strings.Join(r.Removed, " ") != "long unlisted" {
		t.Errorf("%v, removed %v", err, r.Removed)
	}
	for name, want := range map[string]bool{"server-1": true, "long": false, "short": true, "fine": true, "unlisted": false} {
		if nodeThere(t, set, name) != want {
			t.Errorf("%s: there %v, want %v", name, !want, want)
		}
	}
	r, err = e.ReapNodes(t.Context(), ReapOptions{After: 10 * time.Minute})
	if err != nil || len(r.Removed) > 0 || r.Cluster == "" {
		t.Errorf("a second time: %v, %+v", err, r)
	}
}

func TestCordonChangesWhatIsNotSoYet(t *testing.T) {
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, apiNode("server-1", true, 0), apiNode("gpu-1", true, 0))
	for i, want := range []int{1, 0} {
		r, err := e.CordonNodes(t.Context(), []string{"gpu-1"}, true)
		if err != nil || r.Changed != want {
			t.Errorf("time %d: %v, %d changes", i+1, err, r.Changed)
		}
	}
	if n, err := set.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{}); err != nil || !n.Spec.Unschedulable {
		t.Errorf("not cordoned: %v", err)
	}
	var not *NotANodeError
	if _, err := e.CordonNodes(t.Context(), []string{"nobody"}, true); !errors.As(err, &not) {
		t.Errorf("got %v", err)
	}
}

func TestDrainNamesPodsBeforeItTouchesTheNode(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train-by-hand"}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, apiNode("server-1", true, 0), apiNode("gpu-1", true, 0), pod)
	r, err := e.DrainNodes(t.Context(), DrainOptions{Nodes: []string{"gpu-1"}})
	var blocked *BlockedError
	if !errors.As(err, &blocked) || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Evidence, "default/train-by-hand") {
		t.Errorf("%v, %+v", err, r.Findings)
	}
	if n, err := set.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{}); err != nil || n.Spec.Unschedulable {
		t.Errorf("it was cordoned: %v", err)
	}
}

// crowd lets nobody pass before all are there: a lock held over a remote call
// would leave the last ones outside.
type crowd struct {
	mu   sync.Mutex
	here int
	all  int
	full chan struct{}
}

func newCrowd(all int) *crowd { return &crowd{all: all, full: make(chan struct{})} }

func (c *crowd) join(ctx context.Context) error {
	c.mu.Lock()
	if c.here++; c.here == c.all {
		close(c.full)
	}
	c.mu.Unlock()
	select {
	case <-c.full:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busyHost is a machine on which every command waits for those of the others.
type busyHost struct{ runs *crowd }

func (h busyHost) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	return remote.Result{}, h.runs.join(ctx)
}

func (h busyHost) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("not here")
}

func (h busyHost) Close() error { return nil }

func TestTenMachinesAreBusyAtOnce(t *testing.T) {
	names := []string{"server-1"}
	for i := range 10 {
		names = append(names, "gpu-"+string(rune('a'+i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dials, runs := newCrowd(10), newCrowd(10)
	dial := func(ctx context.Context, _ inventory.Machine) (remote.Host, string, error) {
		return busyHost{runs}, "here", dials.join(ctx)
	}
	e, _ := engineOf(t, dial, names, apiNode("server-1", true, 0))
	if _, err := e.observeNodes(ctx, names[1:]); err != nil {
		t.Fatalf("%d of 10 dialled, %d of 10 were looked at: %v", dials.here, runs.here, err)
	}

	// The same with actions, each of which also asks for the cluster's secrets.
	again := newCrowd(10)
	do := e.doer()
	var actions []plan.Action
	for _, name := range names[1:] {
		e.fleet.on(name).host = busyHost{again}
		actions = append(actions, plan.Action{ID: name + "/k3s", Machine: name, Apply: func(ctx context.Context, _ plan.Say) error {
			if _, err := do.credentials(ctx); err != nil {
				return err
			}
			_, err := do.on(name).Run(ctx, remote.Cmd{Name: "join"})
			return err
		}})
	}
	if err := (plan.Executor{}).Run(ctx, actions).Err(); err != nil {
		t.Errorf("%d of 10 joined at once: %v", again.here, err)
	}
}

func TestOperandsGoBeforeALostNodeComesBack(t *testing.T) {
	inNamespace := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
	}
	w := clusterOf(t, "server-1", "gpu-1")
	operand := inNamespace(w.set.Operator.Namespace, "device-plugin")
	e, set := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, operand, inNamespace("team-a", "training"))
	left := func() int {
		pods, err := set.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(pods.Items)
	}
	started := 0
	actions := []plan.Action{{ID: "gpu-1/k3s", Apply: func(context.Context, plan.Say) error {
		started = left() // what is there when the agent starts
		return nil
	}}}
	w.clearBefore(actions, inventory.Machine{Name: "gpu-1"}, sight{}, e.doer())
	if err := actions[0].Apply(t.Context(), func(string, ...any) {}); err != nil || started != 1 {
		t.Errorf("%v: %d pods when the agent starts, want the user's alone", err, started)
	}
}
