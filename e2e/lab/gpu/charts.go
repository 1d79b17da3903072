package gpu

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Plugin is the version of the chart of the stand-alone device plugin.
const Plugin = "0.18.0"

// Charts returns a directory with gpu-operator-<Operator>.tgz, the chart of the
// operator's module with its NFD chart inside, changed as edits says, the same as
// <NextOperator>, and with
// nvidia-device-plugin-<Plugin>.tgz, that of the plugin's module as it is.
func Charts(ctx context.Context, c recipe.Cache) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	operator, plugin := filepath.Join(src, "lab/nvidia/operator"), filepath.Join(src, "lab/nvidia/plugin")
	return c.Get(ctx, recipe.Recipe{
		Name:   "nvidia-charts",
		Inputs: []string{filepath.Join(operator, "go.mod"), filepath.Join(plugin, "go.mod"), filepath.Join(src, "lab/gpu/charts.go")},
		Salt:   Operator + NextOperator + pluginVersion + nextPluginVersion,
		Build: func(ctx context.Context, out string) error {
			module, err := moduleDir(ctx, operator, operatorModule)
			if err != nil {
				return err
			}
			for version, plugin := range map[string]string{Operator: pluginVersion, NextOperator: nextPluginVersion} {
				data, err := packChart(os.DirFS(filepath.Join(module, "deployments/gpu-operator")), "gpu-operator", edits(version, plugin))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(out, "gpu-operator-"+version+".tgz"), data, 0o644); err != nil {
					return err
				}
			}
			if module, err = moduleDir(ctx, plugin, pluginModule); err != nil {
				return err
			}
			data, err := packChart(os.DirFS(filepath.Join(module, "deployments/helm/nvidia-device-plugin")), "nvidia-device-plugin", nil)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(out, "nvidia-device-plugin-"+Plugin+".tgz"), data, 0o644)
		},
	})
}

// edit replaces text in one file of the chart, exactly once.
type edit struct{ file, from, to string }

// edits turn the chart of the development commit into a released one: its
// version, the tags of images that the lab has, CDI on by default, and the
// device plugin's list strategy that the v25.10 release documents for CDI
// (https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/cdi.html);
// the commit still has the one of v25.3, by which only pods with the runtime
// class get their GPUs.
func edits(version, plugin string) []edit {
	return []edit{
		{"Chart.yaml", "version: v1.0.0-devel\n", "version: " + version + "\n"},
		{"Chart.yaml", "appVersion: \"devel-ubi8\"\n", "appVersion: \"" + version + "\"\n"},
		{"values.yaml", "cdi:\n  enabled: false\n", "cdi:\n  enabled: true\n"},
		{"values.yaml", "devicePlugin:\n  enabled: true\n  repository: nvcr.io/nvidia\n  image: k8s-device-plugin\n  version: v0.17.4\n",
			"devicePlugin:\n  enabled: true\n  repository: nvcr.io/nvidia\n  image: k8s-device-plugin\n  version: " + plugin + "\n"},
		{"values.yaml", "gfd:\n  enabled: true\n  repository: nvcr.io/nvidia\n  image: k8s-device-plugin\n  version: v0.17.4\n",
			"gfd:\n  enabled: true\n  repository: nvcr.io/nvidia\n  image: k8s-device-plugin\n  version: " + plugin + "\n"},
		{"templates/clusterpolicy.yaml", "    {{- if .Values.devicePlugin.env }}\n    env: {{ toYaml .Values.devicePlugin.env | nindent 6 }}\n    {{- end }}\n",
			"    {{- if or .Values.cdi.enabled .Values.devicePlugin.env }}\n    env:\n" +
				"      {{- if .Values.cdi.enabled }}\n" +
				"      - name: DEVICE_LIST_STRATEGY\n        value: cdi-annotations,cdi-cri\n" +
				"      - name: CDI_ANNOTATION_PREFIX\n        value: cdi.k8s.io/\n      {{- end }}\n" +
				"      {{- with .Values.devicePlugin.env }}\n      {{- toYaml . | nindent 6 }}\n      {{- end }}\n    {{- end }}\n"},
	}
}

// packChart packs the chart as `helm package` does, with the edits applied.
func packChart(chart fs.FS, name string, edits []edit) ([]byte, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	w := tar.NewWriter(zip)
	done := map[string]int{}
	err := fs.WalkDir(chart, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(chart, path)
		if err != nil {
			return err
		}
		text := string(data)
		for _, e := range edits {
			if e.file == path {
				done[e.from] = strings.Count(text, e.from)
				text = strings.Replace(text, e.from, e.to, 1)
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = w.Write([]byte(text))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if done[e.from] != 1 {
			return nil, fmt.Errorf("editing %s of the chart: %d places match, want 1: %q", e.file, done[e.from], e.from)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
