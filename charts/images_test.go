package charts

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"os"
	"path/filepath"
)

// packedUpstream is a chart of testdata/upstream as a repository serves it.
func packedUpstream(t *testing.T, name string) []byte {
	t.Helper()
	file, err := chartutil.Save(upstream(t, name), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The images of the operator's chart are those that a cluster pulls: operands by
// their three fields, nothing of what is switched off or for virtual machines.
func TestImagesOfCharts(t *testing.T) {
	archive := packedUpstream(t, "gpu-operator")
	set, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	host, _ := set.OperatorRelease(Want{}, nil)
	images, err := Images(archive, host)
	if err != nil {
		t.Fatal(err)
	}
	has := func(images []string, part string) bool {
		return slices.ContainsFunc(images, func(i string) bool { return strings.Contains(i, part) })
	}
	for _, want := range []string{"nvidia/gpu-operator:", "nvidia/k8s-device-plugin:", "dcgm-exporter:", "nvidia/cloud-native/"} {
		if !has(images, want) {
			t.Errorf("%s is missing in %v", want, images)
		}
	}
	for _, not := range []string{"nvidia/driver:", "nvidia/cuda:", "container-toolkit:", "vgpu-device-manager", "kubevirt", "vfio"} {
		if has(images, not) {
			t.Errorf("%s is in %v", not, images)
		}
	}
	operator, _ := set.OperatorRelease(Want{OperatorDriver: true, DriverVersion: "580.173.02"}, nil)
	if images, err = Images(archive, operator); err != nil || !has(images, "driver:580.173.02") {
		t.Errorf("with the operator's driver: %v, %v", images, err)
	}
	if _, err := Images([]byte("no chart"), host); err == nil {
		t.Error("no error for something that is no chart")
	}
}
