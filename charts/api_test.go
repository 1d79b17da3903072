package charts

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// api is as much of a Kubernetes API server as a Helm release needs: it keeps
// what is posted and lists it by label. It does not check, default or garbage-collect.
type api struct {
	mu      sync.Mutex
	objects map[string]map[string]any
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if answer, ok := discoveryAnswers()[r.URL.Path]; ok {
		a.write(w, http.StatusOK, answer)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		a.put(w, r)
	case http.MethodDelete:
		delete(a.objects, r.URL.Path)
		a.write(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	default:
		a.get(w, r)
	}
}

func (a *api) put(w http.ResponseWriter, r *http.Request) {
	var o map[string]any
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		a.write(w, http.StatusBadRequest, map[string]any{})
		return
	}
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + o["metadata"].(map[string]any)["name"].(string)
	} else if r.Method == http.MethodPatch {
		was := a.objects[path]
		overlay(was, o)
		o = was
	}
	switch o["kind"] {
	case "Deployment":
		o["status"] = map[string]any{"updatedReplicas": 1, "availableReplicas": 1}
	case "CustomResourceDefinition":
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	a.objects[path] = o
	a.write(w, http.StatusCreated, o)
}

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	if o, ok := a.objects[r.URL.Path]; ok {
		a.write(w, http.StatusOK, o)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/secrets") && !strings.HasSuffix(r.URL.Path, "/pods") {
		a.write(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
		return
	}
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	items := []any{}
	for path, o := range a.objects {
		meta, _ := o["metadata"].(map[string]any)
		set := labels.Set{}
		for k, v := range mapOf(meta["labels"]) {
			set[k], _ = v.(string)
		}
		inside := strings.HasPrefix(path, r.URL.Path+"/") || (r.URL.Path == "/api/v1/secrets" && o["kind"] == "Secret")
		if inside && selector.Matches(set) {
			items = append(items, o)
		}
	}
	kind := "PodList"
	if strings.HasSuffix(r.URL.Path, "/secrets") {
		kind = "SecretList"
	}
	a.write(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": "v1", "items": items})
}

func mapOf(v any) map[string]any { m, _ := v.(map[string]any); return m }

func (a *api) write(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func discoveryAnswers() map[string]any {
	resources := func(gv string, kinds ...metav1.APIResource) metav1.APIResourceList {
		for i := range kinds {
			kinds[i].Verbs = metav1.Verbs{"get", "list", "create", "update", "patch", "delete"}
		}
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: kinds}
	}
	apps := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
	return map[string]any{
		"/version": map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3+k3s1"},
		"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{apps}, PreferredVersion: apps}}},
		"/api/v1": resources("v1", metav1.APIResource{Name: "secrets", Kind: "Secret", Namespaced: true},
			metav1.APIResource{Name: "namespaces", Kind: "Namespace"}),
		"/apis/apps/v1": resources("apps/v1", metav1.APIResource{Name: "deployments", Kind: "Deployment", Namespaced: true}),
	}
}

// Helm's real clients over HTTP, through the caller's own dialler: the way they go
// when the API is behind an SSH connection.
func TestReleaserThroughTheCallersDialler(t *testing.T) {
	server := httptest.NewServer(&api{objects: map[string]map[string]any{}})
	t.Cleanup(server.Close)
	var dialled atomic.Int32
	json := rest.ContentConfig{ContentType: "application/json"}
	config := &rest.Config{Host: "http://server.invalid:6443", ContentConfig: json, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	charts := serveTiny(t)
	r := New(config, Options{CacheDir: t.TempDir()})
	r.every = 10 * time.Millisecond
	if dialled.Load() != 0 {
		t.Error("New contacted the cluster")
	}
	rel := tinyRelease(charts)
	out, err := r.Ensure(background(t), rel, nil)
	if err != nil || !reflect.DeepEqual(out.Steps, []Step{StepInstall}) {
		t.Fatalf("first run: %+v, %v", out, err)
	}
	if out, err = r.Ensure(background(t), rel, nil); err != nil || out.Changed() {
		t.Fatalf("second run: %+v, %v", out, err)
	}
	rel.Values = map[string]any{"greeting": "good day"}
	if out, err = r.Ensure(background(t), rel, nil); err != nil || !reflect.DeepEqual(out.Steps, []Step{StepUpgrade}) {
		t.Fatalf("third run: %+v, %v", out, err)
	}
	if state, err := r.Observe(background(t), rel); err != nil || state.Revision != 2 || state.Owner != "me" || dialled.Load() == 0 {
		t.Errorf("state %+v, %v, dialled %d times", state, err, dialled.Load())
	}
	if err := r.Uninstall(background(t), rel, nil); err != nil {
		t.Fatal(err)
	}
}

func TestObserveEndsWithItsContextWhenTheAPIHangs(t *testing.T) {
	block := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(block) })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r := New(&rest.Config{Host: server.URL}, Options{})
	if _, err := r.Observe(ctx, Release{Name: "x", Namespace: "y"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := New(nil, Options{}).Observe(background(t), Release{}); err == nil {
		t.Error("no cluster, and no error")
	}
}
