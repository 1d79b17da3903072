package gpu

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryFunctionOfTheHeaderIsThere(t *testing.T) {
	header := "nvmlReturn_t DECLDIR nvmlInit_v2(void);\nnvmlReturn_t DECLDIR nvmlDeviceReset(nvmlDevice_t device);\n" +
		"nvmlReturn_t DECLDIR nvmlDeviceReset(nvmlDevice_t device);\n"
	got := notSupported(header, "int nvmlInit_v2(void)\n{\n}\n")
	if want := "\nint nvmlDeviceReset(void) { return NOT_SUPPORTED; }\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// chart is synthetic: the lines that the edits look for, and nothing else.
func chart(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, e := range edits(Operator, pluginVersion) {
		f := files[e.file]
		if f == nil {
			f = &fstest.MapFile{}
			files[e.file] = f
		}
		f.Data = append(f.Data, e.from...)
	}
	return files
}

func TestChartIsEdited(t *testing.T) {
	data, err := packChart(chart(t), "gpu-operator", edits(Operator, pluginVersion))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, data)
	for file, want := range map[string]string{
		"gpu-operator/Chart.yaml":                   "version: " + Operator + "\n",
		"gpu-operator/values.yaml":                  "cdi:\n  enabled: true\n",
		"gpu-operator/templates/clusterpolicy.yaml": "value: cdi-annotations,cdi-cri\n",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s lacks %q: %q", file, want, files[file])
		}
	}
}

func TestChartThatChangedUpstreamIsRefused(t *testing.T) {
	files := chart(t)
	files["values.yaml"].Data = nil
	if _, err := packChart(files, "gpu-operator", edits(Operator, pluginVersion)); err == nil || !strings.Contains(err.Error(), "0 places match") {
		t.Errorf("err = %v, want one that names the edit", err)
	}
}

func untar(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(text)
	}
}
