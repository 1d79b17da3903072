package containerd

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"
)

// Runtime is a container runtime found on the machine.
type Runtime struct {
	Name    string
	Type    string // containerd's runtime type
	Binary  string // absolute path
	Options bool   // run by runc's shim, so Binary goes into its options
}

// extraDirs are searched before the directories of PATH.
var extraDirs = [...]string{"/usr/local/nvidia/toolkit", "/opt/kwasm/bin"}

const runcShim = "io.containerd.runc.v2"

// candidates are the runtimes that k3s looks for, besides runc.
// Source: k3s pkg/agent/containerd/runtimes.go.
var candidates = [...]Runtime{
	{Name: "crun", Type: runcShim, Binary: "crun", Options: true},
	{Name: "nvidia", Type: runcShim, Binary: "nvidia-container-runtime", Options: true},
	{Name: "nvidia-experimental", Type: runcShim, Binary: "nvidia-container-runtime-experimental", Options: true},
	{Name: "nvidia-cdi", Type: runcShim, Binary: "nvidia-container-runtime.cdi", Options: true},
	{Name: "lunatic", Type: "io.containerd.lunatic.v1", Binary: "containerd-shim-lunatic-v1"},
	{Name: "slight", Type: "io.containerd.slight.v1", Binary: "containerd-shim-slight-v1"},
	{Name: "spin", Type: "io.containerd.spin.v2", Binary: "containerd-shim-spin-v2"},
	{Name: "wws", Type: "io.containerd.wws.v1", Binary: "containerd-shim-wws-v1"},
	{Name: "wasmedge", Type: "io.containerd.wasmedge.v1", Binary: "containerd-shim-wasmedge-v1"},
	{Name: "wasmer", Type: "io.containerd.wasmer.v1", Binary: "containerd-shim-wasmer-v1"},
	{Name: "wasmtime", Type: "io.containerd.wasmtime.v1", Binary: "containerd-shim-wasmtime-v1"},
}

// FindRuntimes looks for the known runtimes below root ("/" on a machine) in
// k3s's own extra directories and then in path, a PATH value.
func FindRuntimes(root, path string) []Runtime {
	dirs := append(extraDirs[:], filepath.SplitList(path)...)
	var found []Runtime
	for _, r := range candidates {
		for _, dir := range dirs {
			file := filepath.Join(dir, r.Binary)
			if executable(filepath.Join(root, file)) {
				r.Binary = file
				logrus.Infof("Found %s container runtime at %s", r.Name, file)
				found = append(found, r)
				break
			}
		}
	}
	return found
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0 && !strings.HasSuffix(path, "/")
}
