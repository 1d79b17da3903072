package charts

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEnsureInstallsOnceAndThenChangesNothing(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t, tinyRunning("apps"))
	rel := tinyRelease(r)
	out, err := c.Ensure(background(t), rel, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(out.Steps, []Step{StepInstall}) || out.Revision != 1 {
		t.Fatalf("first run: %+v", out)
	}
	state, err := c.Observe(background(t), rel)
	if err != nil || state.Phase != Deployed || state.Owner != "me" || state.Version != "1.0.0" {
		t.Fatalf("state %+v, %v", state, err)
	}
	if _, err := c.dynamic.Resource(crdResource()).Get(background(t), "things.example.com", metav1.GetOptions{}); err != nil {
		t.Errorf("the chart's type was not applied: %v", err)
	}
	out, err = c.Ensure(background(t), rel, nil)
	if err != nil || out.Changed() || out.Revision != 1 {
		t.Fatalf("second run: %+v, %v", out, err)
	}
	rel.Values = map[string]any{"greeting": "good day"}
	out, err = c.Ensure(background(t), rel, nil)
	if err != nil || !reflect.DeepEqual(out.Steps, []Step{StepUpgrade}) || out.Revision != 2 {
		t.Fatalf("third run: %+v, %v", out, err)
	}
	if r.archives != 1 {
		t.Errorf("the archive was fetched %d times; the cache has it by digest", r.archives)
	}
}

func TestEnsureMends(t *testing.T) {
	values := map[string]any{"greeting": "hi"}
	old := map[string]any{"greeting": "old"}
	tests := []struct {
		name   string
		before func(c *cluster)
		want   []Step
	}{
		{"install cut off long ago", func(c *cluster) {
			c.record("apps", "tiny", 1, release.StatusPendingInstall, time.Hour, values)
		}, []Step{StepRemove, StepInstall}},
		{"own install cut off just now", func(c *cluster) {
			mine := c.record("apps", "tiny", 1, release.StatusPendingInstall, time.Second, values)
			mine.Labels[ownerLabel] = "me"
			if err := c.store.Update(mine); err != nil {
				c.t.Fatal(err)
			}
		}, []Step{StepRemove, StepInstall}},
		{"first install failed", func(c *cluster) {
			c.record("apps", "tiny", 1, release.StatusFailed, time.Minute, values)
		}, []Step{StepRemove, StepInstall}},
		{"upgrade failed", func(c *cluster) {
			c.record("apps", "tiny", 1, release.StatusDeployed, time.Hour, old)
			c.record("apps", "tiny", 2, release.StatusFailed, time.Minute, values)
		}, []Step{StepUpgrade}},
		{"upgrade cut off", func(c *cluster) {
			c.record("apps", "tiny", 1, release.StatusSuperseded, 3*time.Hour, old)
			c.record("apps", "tiny", 2, release.StatusDeployed, 2*time.Hour, old)
			c.record("apps", "tiny", 3, release.StatusFailed, time.Hour, values)
			c.record("apps", "tiny", 4, release.StatusPendingUpgrade, time.Hour, values)
		}, []Step{StepRollback, StepUpgrade}},
		{"uninstall cut off", func(c *cluster) {
			c.record("apps", "tiny", 1, release.StatusUninstalling, time.Hour, values)
		}, []Step{StepRemove, StepInstall}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := serveTiny(t)
			c := newCluster(t, tinyRunning("apps"))
			tt.before(c)
			out, err := c.Ensure(background(t), tinyRelease(r), nil)
			if err != nil || !reflect.DeepEqual(out.Steps, tt.want) {
				t.Fatalf("got %v, %v; want %v", out.Steps, err, tt.want)
			}
			state, err := c.Observe(background(t), tinyRelease(r))
			if err != nil || state.Phase != Deployed {
				t.Errorf("afterwards: %+v, %v", state, err)
			}
		})
	}
}

func TestEnsureLeavesARunningOperationOfOthersAlone(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t, tinyRunning("apps"))
	c.record("apps", "tiny", 1, release.StatusPendingInstall, time.Minute, nil)
	rel := tinyRelease(r)
	rel.Limit = 50 * time.Millisecond
	var said []string
	_, err := c.Ensure(background(t), rel, func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) })
	var wait *WaitError
	if !errors.As(err, &wait) || !strings.Contains(wait.Reason, "pending-install is still running") || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if state, err := c.Observe(background(t), rel); err != nil || state.Status != "pending-install" || len(said) == 0 {
		t.Errorf("the record was touched or nothing was said: %+v, %v, %q", state, err, said)
	}
}

func TestEnsureNeverInstallsASecondTime(t *testing.T) {
	r := serveTiny(t)
	rel := tinyRelease(r)
	t.Run("refused", func(t *testing.T) {
		c := newCluster(t)
		c.record("nvidia", "tiny-1737000001", 1, release.StatusDeployed, time.Hour, nil)
		_, err := c.Ensure(background(t), rel, nil)
		var foreign *ForeignError
		if !errors.As(err, &foreign) || !strings.Contains(err.Error(), "nvidia/tiny-1737000001 (1.0.0, deployed)") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("two are never adopted", func(t *testing.T) {
		c := newCluster(t)
		c.record("a", "tiny", 1, release.StatusDeployed, time.Hour, nil)
		c.record("b", "tiny", 1, release.StatusFailed, time.Hour, nil)
		adopting := rel
		adopting.Adopt = true
		_, err := c.Ensure(background(t), adopting, nil)
		var foreign *ForeignError
		if !errors.As(err, &foreign) || len(foreign.Found) != 2 {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("kept as it is, and then changed only as asked", func(t *testing.T) {
		c := newCluster(t, tinyRunning("nvidia"))
		c.record("nvidia", "other", 4, release.StatusDeployed, time.Hour, map[string]any{"greeting": "theirs", "extra": 1})
		adopting := rel
		adopting.Adopt = true
		out, err := c.Ensure(background(t), adopting, nil)
		if err != nil || out.Name != "other" || out.Namespace != "nvidia" || out.Changed() {
			t.Fatalf("got %+v, %v", out, err)
		}
		adopting.Asked.Values = map[string]any{"greeting": "asked"}
		for range 2 { // gpuctl's own record must not make the release gpuctl's
			if out, err = c.Ensure(background(t), adopting, nil); err != nil || out.Revision != 5 {
				t.Fatalf("got %+v, %v", out, err)
			}
		}
		c.memory.SetNamespace("nvidia")
		last, err := c.store.Last("other")
		if err != nil || last.Config["greeting"] != "asked" || fmt.Sprint(last.Config["extra"]) != "1" {
			t.Errorf("values are %v, %v", last.Config, err)
		}
	})
	t.Run("one of the very name that gpuctl did not make", func(t *testing.T) {
		c := newCluster(t, tinyRunning("apps"))
		c.record("apps", "tiny", 1, release.StatusDeployed, time.Hour, map[string]any{"greeting": "theirs"})
		adopting := rel
		adopting.Adopt = true
		if out, err := c.Ensure(background(t), adopting, nil); err != nil || out.Changed() {
			t.Fatalf("kept: got %+v, %v", out, err)
		}
		adopting.Asked.Values = map[string]any{"extra": 2}
		for i, want := range []int{1, 0} {
			out, err := c.Ensure(background(t), adopting, nil)
			if err != nil || len(out.Steps) != want {
				t.Fatalf("asked, run %d: got %+v, %v", i+1, out, err)
			}
		}
	})
	t.Run("one that an interrupted upgrade left pending", func(t *testing.T) {
		c := newCluster(t, tinyRunning("nvidia"))
		c.record("nvidia", "other", 1, release.StatusDeployed, 2*time.Hour, map[string]any{"greeting": "good"})
		c.record("nvidia", "other", 2, release.StatusPendingUpgrade, time.Hour, map[string]any{"greeting": "half"})
		adopting := rel
		adopting.Adopt = true
		out, err := c.Ensure(background(t), adopting, nil)
		if err != nil || !reflect.DeepEqual(out.Steps, []Step{StepRollback}) {
			t.Fatalf("got %+v, %v", out, err)
		}
		c.memory.SetNamespace("nvidia")
		last, err := c.store.Last("other")
		if err != nil || last.Config["greeting"] != "good" || last.Info.Status != release.StatusDeployed {
			t.Errorf("afterwards: %v %v, %v", last.Config, last.Info.Status, err)
		}
	})
}

func TestEnsureSaysWhyItWaits(t *testing.T) {
	r := serveTiny(t)
	slow := tinyRunning("apps")
	slow.Status.AvailableReplicas = 0
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "tiny-1", Labels: map[string]string{"app": "tiny"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "tiny",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "tiny:1 not found"}}}}}}
	c := newCluster(t, slow, pod)
	rel := tinyRelease(r)
	rel.Limit = 200 * time.Millisecond
	_, err := c.Ensure(background(t), rel, nil)
	want := "deployment tiny: 0 of 1 ready: pod tiny-1: container tiny: ImagePullBackOff: tiny:1 not found"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
}

func TestEnsureTellsHelmsFailure(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t, tinyRunning("apps"))
	c.broken = errors.New("no matches for kind Thing")
	_, err := c.Ensure(background(t), tinyRelease(r), nil)
	if err == nil || !strings.Contains(err.Error(), "no matches for kind Thing") || !strings.Contains(err.Error(), "release apps/tiny") {
		t.Fatalf("got %v", err)
	}
}

func TestUninstall(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t, tinyRunning("apps"))
	rel := tinyRelease(r)
	if _, err := c.Ensure(background(t), rel, nil); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"present", "absent"} {
		if err := c.Uninstall(background(t), rel, nil); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	if state, err := c.Observe(background(t), rel); err != nil || state.Phase != Absent {
		t.Errorf("afterwards: %+v, %v", state, err)
	}
}

func TestACancelledRunStops(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Ensure(ctx, tinyRelease(r), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
