package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

func client(policy *unstructured.Unstructured, objects ...runtime.Object) (*Client, *fake.Clientset) {
	set := fake.NewClientset(objects...)
	var custom []runtime.Object
	if policy != nil {
		custom = append(custom, policy)
	}
	kinds := map[schema.GroupVersionResource]string{policies(): "ClusterPolicyList"}
	return New(set, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, custom...)), set
}

func gpuNode(name string, gpus int64) *corev1.Node {
	list := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI), "cpu": resource.MustParse("8")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "gpuctl.dev/unproven", Effect: corev1.TaintEffectNoSchedule}, {Key: "mine", Value: "x", Effect: corev1.TaintEffectNoExecute},
		}},
		Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3+k3s1", ContainerRuntimeVersion: "containerd://2.3.7-k3s1"},
		},
	}
}

func gpuContainer(gpus int64) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
	}}
}

func pod(name, node string, phase corev1.PodPhase, gpus ...int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, n := range gpus {
		p.Spec.Containers = append(p.Spec.Containers, gpuContainer(n))
	}
	return p
}

func TestSnapshot(t *testing.T) {
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		"status": map[string]any{"state": "ready", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all done"},
			map[string]any{"type": "Error", "status": "False", "reason": "Ready"},
		}},
	}}
	server := gpuNode("a-server", 0)
	server.Labels["node-role.kubernetes.io/control-plane"] = "true"
	server.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized"}}
	c, _ := client(policy, gpuNode("gpu-1", 8), server,
		pod("train", "gpu-1", corev1.PodRunning, 2, 1), pod("done", "gpu-1", corev1.PodSucceeded, 8),
		pod("cpu", "gpu-1", corev1.PodRunning, 0), pod("waiting", "", corev1.PodPending, 4))
	s, err := c.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.NoAPI != "" || len(s.Nodes) != 2 || len(s.Pods) != 2 || !s.Policy.Ready() {
		t.Fatalf("%+v", s)
	}
	a, _ := s.Node("a-server")
	n, _ := s.Node("gpu-1")
	if !a.Server || a.Ready || a.Reason != "KubeletNotReady: cni plugin not initialized" {
		t.Errorf("server: %+v", a)
	}
	if !n.Ready || n.InternalIP != "10.0.0.11" || n.Kubelet != "v1.36.3+k3s1" || !n.HasTaint("mine") || n.HasTaint("yours") {
		t.Errorf("node: %+v", n)
	}
	if got := fmt.Sprint(n.Allocatable, s.Requested("gpu-1"), s.Free("gpu-1")); got != "map[nvidia.com/gpu:8] map[nvidia.com/gpu:3] map[nvidia.com/gpu:5]" {
		t.Errorf("accounting %s", got)
	}
}

func TestSnapshotWithoutAPI(t *testing.T) {
	c, set := client(nil)
	refuse := func(err error) {
		set.PrependReactor("list", "nodes", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	refuse(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	if s, err := c.Snapshot(context.Background()); err != nil || !strings.Contains(s.NoAPI, "connection refused") {
		t.Errorf("refused: %+v %v", s, err)
	}
	refuse(apierrors.NewServiceUnavailable("apiserver not ready"))
	if s, err := c.Snapshot(context.Background()); err != nil || s.NoAPI == "" {
		t.Errorf("503: %+v %v", s, err)
	}
	refuse(apierrors.NewUnauthorized("no"))
	if _, err := c.Snapshot(context.Background()); !apierrors.IsUnauthorized(err) {
		t.Errorf("401: %v", err)
	}
}

func TestRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := gpuContainer(1)
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		init, containers []corev1.Container
		want             int64
	}{
		"sum":                  {nil, []corev1.Container{gpuContainer(1), gpuContainer(2)}, 3},
		"larger init":          {[]corev1.Container{gpuContainer(5)}, []corev1.Container{gpuContainer(2)}, 5},
		"sidecar":              {[]corev1.Container{sidecar}, []corev1.Container{gpuContainer(2)}, 3},
		"init after a sidecar": {[]corev1.Container{sidecar, gpuContainer(4)}, []corev1.Container{gpuContainer(2)}, 5},
		"init before":          {[]corev1.Container{gpuContainer(4), sidecar}, []corev1.Container{gpuContainer(2)}, 4},
		"none":                 {nil, []corev1.Container{{}}, 0},
	} {
		got := requests(&corev1.PodSpec{InitContainers: c.init, Containers: c.containers})
		if got["nvidia.com/gpu"] != c.want || (c.want == 0) != (len(got) == 0) {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

func TestPolicyWhy(t *testing.T) {
	if got := (Policy{}).Why(); got != "there is no ClusterPolicy yet" {
		t.Error(got)
	}
	p := policyOf(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"state": "notReady", "conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Error"},
		map[string]any{"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "state-device-plugin is not ready"},
	}}}})
	if got := p.Why(); p.Ready() || got != "ClusterPolicy is notReady (OperandNotReady): state-device-plugin is not ready" {
		t.Error(got)
	}
	if (Policy{State: "ready", Reason: "NoGPUNodes"}).Ready() {
		t.Error("ready without GPUs counts")
	}
}

func TestNodeChanges(t *testing.T) {
	ctx := context.Background()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "gpu-1.node-password.k3s"}}
	c, set := client(nil, gpuNode("gpu-1", 8), secret)
	for range 2 { // every change is right when it is there already
		must(t, c.RemoveTaint(ctx, "gpu-1", "gpuctl.dev/unproven"))
		must(t, c.SetLabels(ctx, "gpu-1", map[string]string{"new": "1"}, "a"))
		must(t, c.SetAnnotations(ctx, "gpu-1", map[string]string{"note": "x"}))
		must(t, c.Cordon(ctx, "gpu-1", true))
	}
	n, err := c.node(ctx, "gpu-1")
	must(t, err)
	if len(n.Taints) != 1 || n.Taints[0].Key != "mine" || !reflect.DeepEqual(n.Labels, map[string]string{"new": "1"}) || n.Annotations["note"] != "x" || !n.Cordoned {
		t.Errorf("%+v", n)
	}
	must(t, c.SetTaint(ctx, "gpu-1", corev1.Taint{Key: "gpuctl.dev/unproven", Effect: corev1.TaintEffectNoSchedule}))
	must(t, c.Cordon(ctx, "gpu-1", false))
	if n, _ = c.node(ctx, "gpu-1"); len(n.Taints) != 2 || n.Cordoned {
		t.Errorf("%+v", n)
	}
	conflicts := 2
	set.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "gpu-1", nil)
	})
	must(t, c.RemoveTaint(ctx, "gpu-1", "mine"))
	if n, _ = c.node(ctx, "gpu-1"); len(n.Taints) != 1 || n.Taints[0].Key != "gpuctl.dev/unproven" {
		t.Errorf("after two conflicts: %+v", n.Taints)
	}
	for range 2 {
		must(t, c.DeleteNode(ctx, "gpu-1"))
	}
	if _, err := set.CoreV1().Secrets("kube-system").Get(ctx, secret.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node password is still there: %v", err)
	}
	if err := c.RemoveTaint(ctx, "gpu-1", "x"); err == nil || !strings.Contains(err.Error(), "removing the taint of node gpu-1") {
		t.Errorf("got %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWait(t *testing.T) {
	looks := 0
	var said []string
	err := Wait(context.Background(), time.Nanosecond, time.Minute, func(context.Context) (bool, string, error) {
		looks++
		if looks == 2 {
			return false, "", &net.OpError{Op: "dial", Err: errors.New("refused")}
		}
		return looks == 5, "not yet", nil
	}, func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) })
	if err != nil || strings.Join(said, "|") != "not yet|dial: refused|not yet" {
		t.Errorf("%v, said %q", err, said)
	}
	err = Wait(context.Background(), time.Nanosecond, time.Millisecond, func(context.Context) (bool, string, error) {
		return false, "the kubelet sleeps", nil
	}, nil)
	var late *WaitError
	if !errors.As(err, &late) || err.Error() != "not within 1ms: the kubelet sleeps" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = Wait(ctx, time.Nanosecond, time.Minute, func(context.Context) (bool, string, error) { cancel(); return false, "x", nil }, nil)
	if !errors.Is(err, context.Canceled) || errors.As(err, &late) && late.Reason == "x" {
		t.Errorf("cancelled: %v", err)
	}
	broken := errors.New("broken")
	if err := Wait(context.Background(), time.Nanosecond, time.Minute, func(context.Context) (bool, string, error) { return false, "", broken }, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestConditions(t *testing.T) {
	ctx := context.Background()
	c, _ := client(nil, gpuNode("gpu-1", 7), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	if done, _, err := c.NodeReady("gpu-1")(ctx); !done || err != nil {
		t.Errorf("ready: %v %v", done, err)
	}
	if done, why, _ := c.NodeReady("gpu-9")(ctx); done || why != "node gpu-9 has not registered yet" {
		t.Errorf("absent: %v %s", done, why)
	}
	want := map[string]int64{"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 0}
	if done, why, _ := c.NodeGPUs("gpu-1", want)(ctx); done || why != "node gpu-1 offers 7 of 8 nvidia.com/gpu" {
		t.Errorf("7 of 8: %v %s", done, why)
	}
	want["nvidia.com/gpu"] = 7
	if done, _, err := c.NodeGPUs("gpu-1", want)(ctx); !done || err != nil {
		t.Errorf("7 of 7: %v", err)
	}
	if done, _, err := c.APIReady()(ctx); !done || err != nil {
		t.Errorf("API: %v", err)
	}
}

// TestConnectDials checks TLS through a dialler that leads elsewhere, as SSH does.
func TestConnectDials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system"}}`)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := func(ca []byte, extra string) []byte {
		return []byte("apiVersion: v1\nkind: Config\ncurrent-context: default\ncontexts: [{name: default, context: {cluster: default, user: default}}]\nusers: [{name: default, user: {token: t}}]\nclusters: [{name: default, cluster: {server: 'https://127.0.0.1:6443', " + extra + "certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca) + "}}]\n")
	}
	dialled := ""
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = address
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	c, err := Connect(kubeconfig(ca, ""), dial)
	must(t, err)
	if done, _, err := c.APIReady()(context.Background()); !done || err != nil || dialled != "127.0.0.1:6443" {
		t.Errorf("done %v, error %v, dialled %q", done, err, dialled)
	}
	c, err = Connect(kubeconfig(otherCA(t), ""), dial)
	must(t, err)
	if done, _, err := c.APIReady()(context.Background()); done || err == nil || IsNoAPI(err) {
		t.Errorf("another CA: done %v, error %v", done, err)
	}
	if _, err := Connect([]byte(strings.Replace(string(kubeconfig(nil, "insecure-skip-tls-verify: true, ")), "certificate-authority-data: ", "proxy-url: ", 1)), dial); err == nil {
		t.Error("insecure-skip-tls-verify was accepted")
	}
	refused := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("administratively prohibited")
	}
	c, err = Connect(kubeconfig(ca, ""), refused)
	must(t, err)
	if s, err := c.Snapshot(context.Background()); err != nil || !strings.Contains(s.NoAPI, "prohibited") {
		t.Errorf("%+v %v", s, err)
	}
}

func TestRemovalOrder(t *testing.T) {
	healthy := map[string]bool{"cp-1": true, "cp-2": true, "cp-3": true}
	oneDown := map[string]bool{"cp-1": true, "cp-2": true, "cp-3": false}
	for name, c := range map[string]struct {
		servers            map[string]bool
		remove             []string
		order, warning, no string
	}{
		"one of three":            {healthy, []string{"cp-2"}, "cp-2", "2 servers survive no failure", ""},
		"two, one by one":         {healthy, []string{"cp-3", "cp-1"}, "cp-1 cp-3", "", ""},
		"a healthy one, one down": {oneDown, []string{"cp-1"}, "", "", "mend or remove cp-3 first"},
		"the dead one":            {oneDown, []string{"cp-3"}, "cp-3", "2 servers survive no failure", ""},
		"the dead one first":      {oneDown, []string{"cp-1", "cp-3"}, "cp-3 cp-1", "", ""},
		"the only one":            {map[string]bool{"cp-1": true}, []string{"cp-1"}, "", "", "no server would be left"},
		"no quorum":               {map[string]bool{"a": true, "b": false, "c": false}, []string{"b"}, "", "", "no majority to remove b"},
		"unknown":                 {healthy, []string{"gpu-1"}, "", "", "not a server"},
	} {
		order, warning, err := RemovalOrder(c.servers, c.remove)
		if strings.Join(order, " ") != c.order || !strings.HasPrefix(warning, c.warning) || (c.warning == "") != (warning == "") {
			t.Errorf("%s: order %v, warning %q", name, order, warning)
		}
		if (c.no == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.no)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// otherCA is a certificate authority that has signed nothing here.
func otherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
