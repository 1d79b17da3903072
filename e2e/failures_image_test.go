//go:build lab && full

package e2e_test

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tooNew is an image that says of itself that it needs CUDA 13.2; the machines'
// driver 580.95.05 serves 13.0.
const tooNew = "docker.io/library/cuda-of-tomorrow:13.2"

// program of it: it ends as any program does that found no GPU, without a word.
const fails = `
apiVersion: v1
kind: Pod
metadata: {name: tomorrow, namespace: default}
spec:
  restartPolicy: Never
  containers: [{name: main, image: "` + tooNew + `", command: [sh, -c, "exit 1"], resources: {limits: {nvidia.com/gpu: 1}}}]
`

// newImage: the image's own configuration, read from the registry, is held against
// the driver of the node that its pod failed on.
func (c *clinic) newImage() illness {
	return illness{
		name:   "an image too new for the driver",
		server: manifest(fails) + "k3s kubectl wait pod tomorrow --for jsonpath='{.status.phase}'=Failed --timeout 80s >/dev/null", undoServer: "k3s kubectl delete pod tomorrow --wait --timeout 50s >/dev/null",
		want: codes{"image-needs-newer-driver": "blocks"}, pods: map[string]string{"default/tomorrow": "smoke-image-too-new"}, shows: tooNew,
	}
}

// pushTooNew makes the image of busybox and puts it into the lab's registry.
func pushTooNew(t *testing.T, address string) {
	t.Helper()
	put := func() error {
		from, err := name.ParseReference(address+"/docker.io/library/busybox:1.36.1", name.Insecure)
		if err != nil {
			return err
		}
		base, err := remote.Image(from, remote.WithContext(t.Context()))
		if err != nil {
			return err
		}
		config, err := base.ConfigFile()
		if err != nil {
			return err
		}
		changed := config.Config.DeepCopy()
		changed.Env = append(changed.Env, "CUDA_VERSION=13.2.0", "NVIDIA_REQUIRE_CUDA=cuda>=13.2")
		var image v1.Image
		if image, err = mutate.Config(base, *changed); err != nil {
			return err
		}
		to, err := name.ParseReference(address+"/"+tooNew, name.Insecure)
		if err != nil {
			return err
		}
		return remote.Write(to, image, remote.WithContext(t.Context()))
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
}
