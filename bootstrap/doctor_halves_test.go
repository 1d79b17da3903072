package bootstrap

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// livingAPI serves the lists that the doctor asks for, by TLS, and returns the
// kubeconfig that trusts it alone.
func livingAPI(t *testing.T, nodes []corev1.Node, pods []corev1.Pod) []byte {
	t.Helper()
	lists := map[string]any{
		"/version":                  map[string]string{"gitVersion": "v1.36.3+k3s1"},
		"/api/v1/nodes":             corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: nodes},
		"/api/v1/pods":              corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: pods},
		"/api/v1/events":            corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}},
		"/apis/apps/v1/daemonsets":  map[string]any{"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": []any{}},
		"/apis/apps/v1/deployments": map[string]any{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": []any{}},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list, there := lists[r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			list = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// recordedHost answers the probe with what a machine once said, and everything
// else with silence.
type recordedHost struct {
	remote.Host
	text string
}

func (h recordedHost) Run(_ context.Context, c remote.Cmd) (remote.Result, error) {
	if c.Name != "probe" {
		return remote.Result{}, nil
	}
	lines := strings.Split(h.text, "\n")
	for i, l := range lines {
		if rest, marked := strings.CutPrefix(l, "M "); marked {
			lines[i] = c.Args[0] + " " + rest
		}
	}
	return remote.Result{Stdout: []byte(strings.Join(lines, "\n"))}, nil
}

func (recordedHost) Close() error { return nil }

func doctorEngine(t *testing.T, dial Dialer, kubeconfig []byte) *Engine {
	t.Helper()
	w := clusterOf(t, "server-1", "gpu-1")
	off := false
	w.config.Spec.GPU.Operator.Enabled = &off
	e, err := New(Settings{
		Config: w.config, Set: w.set, Inventory: w.config.Inventory(), Dial: dial, Key: "key", Owner: "me", Kubeconfig: kubeconfig,
		Sink: event.SinkFunc(func(event.Event) {}), Secret: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// notReached: some machine did not answer.
func notReached(err error) bool {
	var connect *remote.ConnectError
	return errors.As(err, &connect)
}

func found(r DoctorResult, code diag.Code) bool {
	for _, f := range r.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// TestTheDoctorWithoutSSH: no machine answers, and the API is asked straight.
func TestTheDoctorWithoutSSH(t *testing.T) {
	node := *apiNode("gpu-1", true, 0)
	node.Spec.Unschedulable = true
	node.Status.Capacity = corev1.ResourceList{gpuResource: resource.MustParse("2")}
	node.Status.Allocatable = node.Status.Capacity
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpuResource: resource.MustParse("1")}}}}
	e := doctorEngine(t, unreachable, livingAPI(t, []corev1.Node{*apiNode("server-1", true, 0), node}, []corev1.Pod{pod}))
	r, err := e.Doctor(t.Context(), DoctorOptions{})
	if !notReached(err) {
		t.Errorf("the error has to say that machines were not reached: %v", err)
	}
	if r.Halves[0].State != "dead" || len(r.Halves[0].Why) != 2 || r.Halves[1].State != "whole" {
		t.Errorf("halves %+v", r.Halves)
	}
	if !found(r, "node-cordoned") || found(r, "api-not-there") {
		t.Errorf("findings %+v", r.Findings)
	}
	if len(r.Pods) != 1 || r.Pods[0].Pod != "team-a/train" || r.Pods[0].Code != "node-cordoned" {
		t.Errorf("pods %+v", r.Pods)
	}
}

// TestTheDoctorWithoutAnyWay: neither half answers, and each says why.
func TestTheDoctorWithoutAnyWay(t *testing.T) {
	e := doctorEngine(t, unreachable, nil)
	r, err := e.Doctor(t.Context(), DoctorOptions{})
	if !notReached(err) || r.Halves[0].State != "dead" || r.Halves[1].State != "dead" || len(r.Halves[1].Why) == 0 || !found(r, "api-not-there") {
		t.Errorf("%v, halves %+v, findings %+v", err, r.Halves, r.Findings)
	}
}

// TestTheDoctorWithoutAPI: the machines say what is wrong with them though k3s on
// the server was stopped. Another machine that is not reached makes SSH partial.
func TestTheDoctorWithoutAPI(t *testing.T) {
	text := func(name string) string {
		data, err := os.ReadFile("host/testdata/machines/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	agent := text("synthetic-debian-12-agent-nvidia-smi-hangs")
	server := strings.NewReplacer("unit=k3s-agent", "unit=k3s", "ActiveState=active\nSubState=running", "ActiveState=inactive\nSubState=dead").Replace(agent)
	for name, gone := range map[string]string{"whole": "", "partial": "gpu-1"} {
		t.Run(name, func(t *testing.T) {
			dial := func(ctx context.Context, m inventory.Machine) (remote.Host, string, error) {
				switch m.Name {
				case gone:
					return unreachable(ctx, m)
				case "server-1":
					return recordedHost{text: server}, "here", nil
				}
				return recordedHost{text: agent}, "here", nil
			}
			r, err := doctorEngine(t, dial, nil).Doctor(t.Context(), DoctorOptions{NoPairs: true})
			if err == nil || notReached(err) != (gone != "") {
				t.Errorf("error %v", err)
			}
			if r.Halves[0].State != name || r.Halves[1].State != "dead" {
				t.Errorf("halves %+v", r.Halves)
			}
			for code, want := range map[diag.Code]bool{"k3s-stopped": true, "nvidia-smi-hangs": true, "node-not-registered": false} {
				if found(r, code) != want {
					t.Errorf("%s found: %t, want %t; %s", code, !want, want, fmt.Sprintf("%+v", r.Findings))
				}
			}
		})
	}
}
