package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Archive fetches a chart's packed archive, from the cache or from where the
// chart says, with its digest checked.
func (r *Releaser) Archive(ctx context.Context, c Chart) ([]byte, error) {
	a, err := r.fetch(ctx, c)
	if err != nil {
		return nil, err
	}
	if a.bytes == nil {
		return nil, fmt.Errorf("chart %s is an unpacked directory: give its archive", c.Name)
	}
	return a.bytes, nil
}

// Images are the images that a release of a packed chart runs, with these
// values: those of its manifests, and those that the operator's ClusterPolicy
// names for its operands. What is switched off is left out.
func Images(archive []byte, rel Release) ([]string, error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("loading chart %s: %w", rel.Chart.Name, err)
	}
	values, _ := Merge(rel.Values, nil)
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, fmt.Errorf("rendering chart %s: %w", rel.Chart.Name, err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: rel.Name, Namespace: rel.Namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %s: %w", rel.Chart.Name, err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %s: %w", rel.Chart.Name, err)
	}
	found := map[string]bool{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
			continue
		}
		objects, err := decodeAll([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("reading %s of chart %s: %w", name, rel.Chart.Name, err)
		}
		for _, o := range objects {
			if o.GetKind() == "ClusterPolicy" {
				withoutUnused(o.Object)
			}
			imagesIn(o.Object, found)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("chart " + rel.Chart.Name + " names no images")
	}
	var out []string
	for ref := range found {
		out = append(out, ref)
	}
	slices.Sort(out)
	return out, nil
}

// withoutUnused takes what never runs here out of a ClusterPolicy: what only
// virtual machines need, which the operator deploys only with sandboxWorkloads,
// whatever its own switch says (NVIDIA/gpu-operator controllers/state_manager.go);
// and operator.initContainer, which OpenShift alone gets (controllers/object_controls.go).
func withoutUnused(policy map[string]any) {
	spec, _ := policy["spec"].(map[string]any)
	if operator, ok := spec["operator"].(map[string]any); ok {
		delete(operator, "initContainer")
	}
	if sandboxes, _ := spec["sandboxWorkloads"].(map[string]any); sandboxes["enabled"] == true {
		return
	}
	for _, part := range []string{"sandboxDevicePlugin", "kataSandboxDevicePlugin", "vfioManager", "vgpuManager", "vgpuDeviceManager", "kataManager", "ccManager"} {
		delete(spec, part)
	}
}

// imagesIn collects images of an object: a container's image, and the three
// fields by which a ClusterPolicy names one.
func imagesIn(v any, found map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			imagesIn(item, found)
		}
	case map[string]any:
		if v["enabled"] == false {
			return
		}
		image, _ := v["image"].(string)
		repository, _ := v["repository"].(string)
		version, _ := v["version"].(string)
		switch {
		case image != "" && repository != "" && version != "":
			between := ":"
			if strings.HasPrefix(version, "sha256:") {
				between = "@"
			}
			found[repository+"/"+image+between+version] = true
		case strings.Contains(image, "/"):
			found[image] = true
		}
		for _, inner := range v {
			imagesIn(inner, found)
		}
	}
}
