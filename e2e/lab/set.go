package lab

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
)

// SetFile writes a set for gpuctl, the value of spec.set, that names what the
// mirror serves with its checksums, and returns its path. The repositories in
// it are the public ones: the mirror takes their place by Sources.
func (l *Lab) SetFile() (string, error) {
	set, err := l.set()
	if err != nil {
		return "", fmt.Errorf("writing the lab's set: %w", err)
	}
	content, err := yaml.Marshal(set)
	if err != nil {
		return "", fmt.Errorf("writing the lab's set: %w", err)
	}
	path := filepath.Join(l.Dir, "set.yaml")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("writing the lab's set: %w", err)
	}
	return path, nil
}

func (l *Lab) set() (map[string]any, error) {
	key, err := mirror.SigningKey(filepath.Join(l.Dir, "apt-signing-key"))
	if err != nil {
		return nil, err
	}
	fingerprint := strings.ToUpper(hex.EncodeToString(key.PrimaryKey.Fingerprint))
	// What this lab leaves out has no checksum, which a set may lack.
	k3s := map[string]any{}
	if sum, err := mirror.SHA256(filepath.Join(l.mirrorDir(), "k3s", K3sVersion, "k3s")); err == nil {
		k3s["amd64"] = sum
	}
	chart, plugin, smoke := "", "", ""
	if !l.options.NoGPU && !l.options.Bare {
		if chart, err = mirror.SHA256(filepath.Join(l.mirrorDir(), "charts", "gpu-operator-"+gpu.Operator+".tgz")); err != nil {
			return nil, err
		}
		if plugin, err = mirror.SHA256(filepath.Join(l.mirrorDir(), "charts", "nvidia-device-plugin-"+gpu.Plugin+".tgz")); err != nil {
			return nil, err
		}
		if smoke, err = l.Digest(gpu.Smoke); err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"apiVersion": "gpuctl.dev/v1alpha1", "kind": "Set", "name": "lab",
		"k3s": map[string]any{"version": K3sVersion, "sha256": k3s},
		"toolkit": map[string]any{
			"version":        gpu.Toolkit,
			"repository":     "https://nvidia.github.io/libnvidia-container/stable/deb",
			"keyURL":         "https://nvidia.github.io/libnvidia-container/gpgkey",
			"keyFingerprint": fingerprint,
		},
		"driver": map[string]any{"branch": "580", "keyFingerprint": fingerprint},
		"operator": map[string]any{
			"chart": "gpu-operator", "repository": "https://helm.ngc.nvidia.com/nvidia", "version": gpu.Operator,
			"sha256": chart, "namespace": "gpu-operator", "runtimePath": "cdi",
		},
		"devicePlugin": map[string]any{
			"chart": "nvidia-device-plugin", "repository": "https://nvidia.github.io/k8s-device-plugin", "version": gpu.Plugin,
			"sha256": plugin, "namespace": "nvidia-device-plugin",
		},
		"smoke": map[string]any{
			"image": gpu.Smoke, "digest": smoke, "vectorAdd": []string{"/cuda-samples/vectorAdd"},
			"cuda": "12.5", "minDriver": "525.60.13",
		},
		"kubernetes": map[string]any{"validated": []string{"1.34"}, "floor": "1.33"},
		"os":         map[string]any{"debian": []string{"12"}},
	}, nil
}

// Digest is that of an image in the lab's registry, by its public name.
func (l *Lab) Digest(image string) (string, error) {
	return mirror.Digest(l.Mirror, image)
}
