package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// applyCRDs creates or updates the types of a chart and its enabled
// dependencies, and waits until the API serves them. Helm itself only ever
// creates them, so an upgrade would run new controllers on old types.
func applyCRDs(ctx context.Context, client dynamic.Interface, c *chart.Chart, values map[string]any, say Say) error {
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return fmt.Errorf("resolving dependencies of chart %s: %w", c.Name(), err)
	}
	var names []string
	for _, file := range c.CRDObjects() {
		objects, err := decodeAll(file.File.Data)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file.Filename, err)
		}
		for _, o := range objects {
			if err := applyCRD(ctx, client, o); err != nil {
				return fmt.Errorf("applying type %s: %w", o.GetName(), err)
			}
			names = append(names, o.GetName())
		}
	}
	return waitEstablished(ctx, client, names, say)
}

func applyCRD(ctx context.Context, client dynamic.Interface, want *unstructured.Unstructured) error {
	if want.GetKind() != "CustomResourceDefinition" {
		return fmt.Errorf("a chart's crds folder holds a %s", want.GetKind())
	}
	crds := client.Resource(crdResource())
	have, err := crds.Get(ctx, want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = crds.Create(ctx, want, metav1.CreateOptions{FieldManager: "gpuctl"})
		return err
	}
	if err != nil {
		return err
	}
	want = want.DeepCopy()
	unstructured.RemoveNestedField(want.Object, "status")
	have = have.DeepCopy()
	before := have.DeepCopy()
	overlay(have.Object, want.Object)
	if reflect.DeepEqual(before.Object, have.Object) {
		return nil
	}
	_, err = crds.Update(ctx, have, metav1.UpdateOptions{FieldManager: "gpuctl"})
	return err
}

// overlay lays want over have: what the API filled in by itself stays. A list is
// replaced; the API refuses an update that would lose a version still stored.
func overlay(have, want map[string]any) {
	for k, v := range want {
		mine, ok := v.(map[string]any)
		theirs, ok2 := have[k].(map[string]any)
		if ok && ok2 {
			overlay(theirs, mine)
			continue
		}
		have[k] = v
	}
}

// typesLimit bounds the wait for custom types: the API takes a second, a server
// that k3s restarts meanwhile much longer.
const typesLimit = 3 * time.Minute

func waitEstablished(ctx context.Context, client dynamic.Interface, names []string, say Say) error {
	if len(names) == 0 {
		return nil
	}
	return wait(ctx, waitFor{what: "types", limit: typesLimit, every: 500 * time.Millisecond}, say, func(ctx context.Context) (bool, string, error) {
		for _, name := range names {
			o, err := client.Resource(crdResource()).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			if status, reason := condition(o, "Established"); status != "True" {
				return false, name + " is not served yet " + reason, nil
			}
		}
		return true, "", nil
	})
}

// condition returns status and "reason: message" of a condition of an object.
func condition(o *unstructured.Unstructured, kind string) (status, why string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != kind {
			continue
		}
		status, _ = m["status"].(string)
		reason, _ := m["reason"].(string)
		message, _ := m["message"].(string)
		if message != "" {
			return status, reason + ": " + message
		}
		return status, reason
	}
	return "", ""
}

// decodeAll reads every object of a YAML stream.
func decodeAll(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}
