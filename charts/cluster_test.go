package charts

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/repo"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// cluster is a pretended cluster: Helm's own storage in memory, its kube client
// that creates nothing, and client-go's fakes.
type cluster struct {
	t       *testing.T
	memory  *driver.Memory
	store   *storage.Storage
	kube    *fake.Clientset
	dynamic *dynfake.FakeDynamicClient
	// broken makes Helm's next creations fail.
	broken error
	*Releaser
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{t: t, memory: driver.NewMemory(), kube: fake.NewClientset(objects...)}
	c.store = storage.Init(c.memory)
	c.dynamic = dynfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		clusterPolicies(): "ClusterPolicyList", crdResource(): "CustomResourceDefinitionList"})
	c.dynamic.PrependReactor("create", "customresourcedefinitions", establish)
	c.Releaser = &Releaser{http: http.DefaultClient, cache: t.TempDir(), now: time.Now, every: time.Millisecond}
	c.clients = func() (*clients, error) {
		return &clients{helm: c.helmFor, kube: c.kube, dynamic: c.dynamic}, nil
	}
	return c
}

// establish does what the API server does to a new type.
func establish(a k8stesting.Action) (bool, runtime.Object, error) {
	o := a.(k8stesting.CreateAction).GetObject().(*unstructured.Unstructured)
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	return false, nil, nil
}

func (c *cluster) helmFor(namespace string) (*action.Configuration, error) {
	return &action.Configuration{
		Releases:     storage.Init(namespaced{c.memory, namespace}),
		KubeClient:   &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard}, BuildError: c.broken},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	}, nil
}

// namespaced is one namespace's view of the memory; Helm's own driver has one view at a time.
type namespaced struct {
	*driver.Memory
	namespace string
}

func (n namespaced) at() *driver.Memory { n.SetNamespace(n.namespace); return n.Memory }

func (n namespaced) Create(key string, r *release.Release) error { return n.at().Create(key, r) }
func (n namespaced) Update(key string, r *release.Release) error { return n.at().Update(key, r) }
func (n namespaced) Delete(key string) (*release.Release, error) { return n.at().Delete(key) }
func (n namespaced) Get(key string) (*release.Release, error)    { return n.at().Get(key) }
func (n namespaced) Query(l map[string]string) ([]*release.Release, error) {
	return n.at().Query(l)
}
func (n namespaced) List(f func(*release.Release) bool) ([]*release.Release, error) {
	return n.at().List(f)
}

// record puts a release record into the cluster as an earlier run left it.
func (c *cluster) record(namespace, name string, version int, status release.Status, age time.Duration, values map[string]any) *release.Release {
	c.t.Helper()
	r := &release.Release{Name: name, Namespace: namespace, Version: version, Config: values,
		Chart:  &chart.Chart{Metadata: &chart.Metadata{Name: "tiny", Version: "1.0.0", APIVersion: "v2"}},
		Info:   &release.Info{Status: status, LastDeployed: helmtime.Time{Time: time.Now().Add(-age)}},
		Labels: map[string]string{}}
	c.memory.SetNamespace(namespace)
	if err := c.store.Create(r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// tinyRepo serves the chart of testdata as a repository and counts its downloads.
type tinyRepo struct {
	url, sum string
	mu       sync.Mutex
	archives int
}

func serveTiny(t *testing.T) *tinyRepo {
	t.Helper()
	dir := t.TempDir()
	tiny, err := loader.LoadDir("testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	file, err := chartutil.Save(tiny, dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &tinyRepo{sum: digest(data)}
	index := repo.NewIndexFile()
	if err := index.MustAdd(tiny.Metadata, filepath.Base(file), "charts", r.sum); err != nil {
		t.Fatal(err)
	}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/repo/index.yaml", func(w http.ResponseWriter, req *http.Request) {
		http.ServeFile(w, req, filepath.Join(dir, "index.yaml"))
	})
	mux.HandleFunc("/repo/charts/", func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.archives++
		r.mu.Unlock()
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.url = server.URL + "/repo"
	return r
}

// tinyRunning is the chart's deployment, rolled out.
func tinyRunning(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tiny"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "tiny"}}},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

func tinyRelease(r *tinyRepo) Release {
	return Release{Name: "tiny", Namespace: "apps", Owner: "me",
		Chart:  Chart{Name: "tiny", Version: "1.0.0", Repository: r.url, SHA256: r.sum},
		Values: map[string]any{"greeting": "hi"}}
}

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
