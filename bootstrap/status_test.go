package bootstrap

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// cardHost is a machine with one H100 on its bus, and nothing else to tell.
type cardHost struct{ remote.Host }

func (cardHost) Run(_ context.Context, c remote.Cmd) (remote.Result, error) {
	m := c.Args[0]
	return remote.Result{Stdout: []byte(m + " clock 1700000000\n" + m + " begin pci\n0000:01:00.0 0x10de 0x2331 0x030200 nvidia\n" +
		m + " end pci ok\n" + m + " clock 1700000001\n" + m + " done\n")}, nil
}

func (cardHost) Close() error { return nil }

// Feature discovery names the GPUs up to a minute after they are there. Until
// then status asks the machine, and only such machines.
func TestStatusNamesGPUsBeforeTheirLabelIsThere(t *testing.T) {
	withGPU := func(name, product string) *corev1.Node {
		n := apiNode(name, true, 0)
		n.Status.Capacity = corev1.ResourceList{gpuResource: resource.MustParse("1")}
		if product != "" {
			n.Labels = map[string]string{productLabel: product}
		}
		return n
	}
	var mu sync.Mutex
	dialled := map[string]bool{}
	dial := func(ctx context.Context, m inventory.Machine) (remote.Host, string, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled[m.Name] = true
		if m.Name == "gone" {
			return unreachable(ctx, m)
		}
		return cardHost{}, "", nil
	}
	e, _ := engineOf(t, dial, []string{"labelled", "fresh", "gone", "plain"},
		withGPU("labelled", "NVIDIA-L4"), withGPU("fresh", ""), withGPU("gone", ""), apiNode("plain", true, 0))
	r, err := e.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]string{}
	for _, n := range r.Nodes {
		models[n.Name] = n.Model
	}
	if models["labelled"] != "NVIDIA-L4" || models["fresh"] != "H100 PCIe" || models["gone"] != "" || models["plain"] != "" {
		t.Errorf("models %q", models)
	}
	if len(dialled) != 2 || !dialled["fresh"] || !dialled["gone"] {
		t.Errorf("dialled %v", dialled)
	}
}
