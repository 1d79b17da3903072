package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PluginConfigs are the device-plugin configurations that ClusterPolicies name
// (spec.devicePlugin.config.name), by "NAMESPACE/NAME key KEY"; no other
// ConfigMap is read. A cluster without the operator has none.
func (c *Client) PluginConfigs(ctx context.Context) (map[string]string, error) {
	list, err := c.dyn.Resource(policies()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterPolicy: %w", err)
	}
	out := map[string]string{}
	for i := range list.Items {
		name, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "devicePlugin", "config", "name")
		if name == "" {
			continue
		}
		// The operator reads it from its own namespace, which the policy does not name.
		maps, err := c.set.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return nil, fmt.Errorf("reading the device plugin's configuration: %w", err)
		}
		for _, m := range maps.Items {
			if m.Name != name {
				continue
			}
			for key, text := range m.Data {
				out[fmt.Sprintf("%s/%s key %s", m.Namespace, m.Name, key)] = text
			}
		}
	}
	return out, nil
}
