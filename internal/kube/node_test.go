package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"
)

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
