package gpu

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Image is a container image under the name by which a chart or a pod asks
// for it, e.g. "nvcr.io/nvidia/gpu-operator:v25.10.1-lab.1".
type Image struct {
	Ref   string
	Image v1.Image
}

// Smoke images. The lying ones say "Test PASSED", but claim GPUs that the
// container was not given.
const (
	Smoke          = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-lab"
	SmokeLying     = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-lying"
	SmokeDuplicate = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-duplicate"
)

// Images builds, or finds in the cache, every image that the GPU Operator's
// chart and the smoke test pull.
func Images(ctx context.Context, c recipe.Cache) ([]Image, error) {
	src, err := source()
	if err != nil {
		return nil, err
	}
	p := parts{src: src, cache: c}
	var out []Image
	for _, s := range specs() {
		dir, err := c.Get(ctx, p.recipe(s))
		if err != nil {
			return nil, err
		}
		img, err := open(dir)
		if err != nil {
			return nil, fmt.Errorf("reading image %s: %w", s.name, err)
		}
		for _, ref := range s.refs {
			out = append(out, Image{Ref: ref, Image: img})
		}
	}
	return out, nil
}

// Push writes the images into a plain-HTTP registry at address (host:port),
// each below its true registry's name: address/nvcr.io/nvidia/... What is
// there already is not sent again.
func Push(ctx context.Context, address string, images []Image) error {
	for _, i := range images {
		ref, err := name.ParseReference(address+"/"+i.Ref, name.Insecure)
		if err != nil {
			return fmt.Errorf("pushing %s: %w", i.Ref, err)
		}
		if err := remote.Write(ref, i.Image, remote.WithContext(ctx)); err != nil {
			return fmt.Errorf("pushing %s: %w", i.Ref, err)
		}
	}
	return nil
}

func open(dir string) (v1.Image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%d images in one layout", len(manifest.Manifests))
	}
	return path.Image(manifest.Manifests[0].Digest)
}

// spec is what makes one image.
type spec struct {
	name       string
	refs       []string
	base       bool              // with busybox, bash and libc
	files      map[string]string // path in the image -> part, see parts.find
	env        []string
	user       string
	entrypoint []string
}

// smokeFiles: the stand-in for NVIDIA's sample lies where the sample does.
func smokeFiles(lie string) map[string]string {
	files := map[string]string{"/cuda-samples/vectorAdd": "own:vectoradd"}
	if lie != "" {
		files["/lying/nvidia-smi"] = "=" + lie
		files["/cuda-samples/vectorAdd"] = "=#!/bin/sh\necho '[Vector addition of 50000 elements]'\necho 'Test PASSED'\necho Done\n"
	}
	return files
}

// The liars count the real nodes, so that the number of GPUs is right and
// only the UUIDs betray them.
const (
	lieStranger = `#!/bin/sh
n=0
for node in /dev/nvidia[0-9]*; do
	uuid=GPU-00000000-0000-0000-0000-00000000000$n
	case "$*" in
	-L) echo "GPU $n: NVIDIA H100 PCIe (UUID: $uuid)" ;;
	*) echo "$uuid" ;;
	esac
	n=$((n + 1))
done
`
	lieDuplicate = `#!/bin/sh
n=0
uuid=$(/usr/bin/nvidia-smi --query-gpu=uuid --format=csv,noheader | head -n 1)
for node in /dev/nvidia[0-9]*; do
	case "$*" in
	-L) echo "GPU $n: NVIDIA H100 PCIe (UUID: $uuid)" ;;
	*) echo "$uuid" ;;
	esac
	n=$((n + 1))
done
`
)

// both are one image under two tags.
func both(name string, tags ...string) []string {
	for i := range tags {
		tags[i] = name + tags[i]
	}
	return tags
}

func specs() []spec {
	const nvidia = "nvcr.io/nvidia/"
	gpuEnv := []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
	lyingEnv := append(slices.Clone(gpuEnv), "PATH=/lying:"+path)
	return []spec{
		{name: "gpu-operator", refs: both(nvidia+"gpu-operator:", Operator, NextOperator), base: true, user: "65534",
			env: []string{"NVIDIA_VISIBLE_DEVICES=void"}, entrypoint: []string{"/usr/bin/gpu-operator"}, files: operatorFiles()},
		{name: "gpu-operator-validator", refs: both(nvidia+"cloud-native/gpu-operator-validator:", Operator, NextOperator), base: true,
			env:        []string{"NVIDIA_DISABLE_REQUIRE=true", "NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_DRIVER_CAPABILITIES=utility,compute"},
			entrypoint: []string{"/bin/bash"}, files: validatorFiles()},
		{name: "k8s-device-plugin", refs: both(nvidia+"k8s-device-plugin:", pluginVersion, nextPluginVersion), base: true,
			env: []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility"}, entrypoint: []string{"nvidia-device-plugin"},
			files: pluginFiles()},
		{name: "node-feature-discovery", refs: []string{"registry.k8s.io/nfd/node-feature-discovery:" + nfdVersion}, user: "65534:65534",
			files: map[string]string{"/usr/bin/nfd-master": "nfd:nfd-master", "/usr/bin/nfd-worker": "nfd:nfd-worker", "/usr/bin/nfd-gc": "nfd:nfd-gc"}},
		{name: "dcgm-exporter", refs: []string{nvidia + "k8s/dcgm-exporter:4.3.1-4.4.0-ubuntu22.04"}, base: true,
			env: gpuEnv, entrypoint: []string{"/usr/bin/dcgm-exporter"}, files: map[string]string{"/usr/bin/dcgm-exporter": "own:standin"}},
		{name: "k8s-mig-manager", refs: []string{nvidia + "cloud-native/k8s-mig-manager:v0.12.3-ubuntu20.04"}, base: true,
			env: gpuEnv, files: map[string]string{"/usr/bin/nvidia-mig-manager": "own:standin"}},
		{name: "pause", refs: []string{"docker.io/rancher/mirrored-pause:3.6"}, entrypoint: []string{"/pause"},
			files: map[string]string{"/pause": "own:standin"}},
		{name: "busybox", refs: []string{"docker.io/library/busybox:1.36.1", "docker.io/library/busybox:latest"}, base: true,
			entrypoint: nil, files: nil},
		{name: "cuda-sample", refs: []string{Smoke, "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04"}, base: true,
			env: gpuEnv, entrypoint: []string{"/cuda-samples/vectorAdd"}, files: smokeFiles("")},
		{name: "cuda-sample-lying", refs: []string{SmokeLying}, base: true, env: lyingEnv,
			entrypoint: []string{"/cuda-samples/vectorAdd"}, files: smokeFiles(lieStranger)},
		{name: "cuda-sample-duplicate", refs: []string{SmokeDuplicate}, base: true, env: lyingEnv,
			entrypoint: []string{"/cuda-samples/vectorAdd"}, files: smokeFiles(lieDuplicate)},
	}
}

// pluginFiles: the commands are NVIDIA's, the MPS control daemon's among them.
// The device plugin is wrapped for the reason that validatorFiles tells: it looks
// for the capabilities of MIG in its own /proc. What the control daemon starts,
// nvidia-cuda-mps-control, is part of CUDA and stands in.
func pluginFiles() map[string]string {
	return map[string]string{
		"/usr/bin/nvidia-device-plugin": "=#!/bin/bash\n" +
			"if [ -e /host/run/lab/gpu/proc/nvidia-caps ]; then\n\tmount --bind /host/run/lab/gpu/proc /proc/driver\nfi\n" +
			"exec -a nvidia-device-plugin /usr/lib/lab/nvidia-device-plugin \"$@\"\n",
		"/usr/lib/lab/nvidia-device-plugin": "plugin:nvidia-device-plugin",
		"/usr/bin/gpu-feature-discovery":    "plugin:gpu-feature-discovery",
		"/usr/bin/config-manager":           "plugin:config-manager",
		"/usr/bin/mps-control-daemon":       "plugin:mps-control-daemon",
		"/usr/bin/nvidia-cuda-mps-control":  "=" + mpsControl,
	}
}

// mpsControl is a stand-in for CUDA's nvidia-cuda-mps-control: with -d it takes
// up its pipe directory, without it answers commands as long as that is taken up.
const mpsControl = `#!/bin/sh
# A stand-in of the lab for nvidia-cuda-mps-control: no client computes by it.
if [ "$1" = -d ]; then
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	echo "stand-in: MPS control daemon" >"$CUDA_MPS_LOG_DIRECTORY/control.log"
	: >"$CUDA_MPS_PIPE_DIRECTORY/control"
	exit 0
fi
if [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/control" ]; then
	echo "Cannot find MPS control daemon process"
	exit 1
fi
read -r command value
case $command in
quit) rm -f "$CUDA_MPS_PIPE_DIRECTORY/control" ;;
get_default_active_thread_percentage) echo 100.0 ;;
esac
`

// operatorFiles follows docker/Dockerfile of the operator's repository.
func operatorFiles() map[string]string {
	const chart = "operator-module:deployments/gpu-operator/"
	return map[string]string{
		"/usr/bin/gpu-operator":                             "gpu-operator:gpu-operator",
		"/usr/local/bin/kubectl":                            "own:standin",
		"/opt/gpu-operator":                                 "operator-module:assets",
		"/opt/gpu-operator/manifests":                       "operator-module:manifests",
		"/opt/gpu-operator/nvidia.com_clusterpolicies.yaml": chart + "crds/nvidia.com_clusterpolicies.yaml",
		"/opt/gpu-operator/nvidia.com_nvidiadrivers.yaml":   chart + "crds/nvidia.com_nvidiadrivers.yaml",
		"/opt/gpu-operator/nfd-api-crds.yaml":               chart + "charts/node-feature-discovery/crds/nfd-api-crds.yaml",
	}
}

// validatorFiles follows validator/Dockerfile. The command is wrapped: a
// container has a /proc of its own, in which no NVIDIA driver has registered
// its device numbers, so the machine's list is bound over it first.
func validatorFiles() map[string]string {
	return map[string]string{
		"/usr/bin/nvidia-validator": "=#!/bin/sh\n" +
			"if [ \"$COMPONENT\" = driver ] && [ -e /host/run/lab/gpu/devices ]; then\n" +
			"\tmount --bind /host/run/lab/gpu/devices /proc/devices\nfi\nexec /usr/lib/lab/nvidia-validator \"$@\"\n",
		"/usr/lib/lab/nvidia-validator":                         "validator:validator",
		"/usr/bin/vectorAdd":                                    "own:vectoradd",
		"/var/nvidia/manifests/plugin-workload-validation.yaml": "operator-module:validator/plugin-workload-validation.yaml",
		"/var/nvidia/manifests/cuda-workload-validation.yaml":   "operator-module:validator/cuda-workload-validation.yaml",
	}
}

// recipe makes an image into an OCI layout of its own.
func (p parts) recipe(s spec) recipe.Recipe {
	salt := fmt.Sprintf("%+v", s)
	for _, part := range slices.Sorted(maps.Values(s.files)) {
		kind, _, _ := strings.Cut(part, ":")
		salt += "\n" + p.key(kind)
	}
	return recipe.Recipe{
		Name:   "image-" + s.name,
		Inputs: []string{filepath.Join(p.src, "lab/gpu/images.go"), filepath.Join(p.src, "lab/gpu/layers.go")},
		Salt:   salt,
		Build:  func(ctx context.Context, out string) error { return p.build(ctx, s, out) },
	}
}
