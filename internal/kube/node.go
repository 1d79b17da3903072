package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetTaint adds a taint, or replaces the ones of that key.
func (c *Client) SetTaint(ctx context.Context, node string, taint corev1.Taint) error {
	return c.changeTaints(ctx, node, "tainting", func(have []corev1.Taint) []corev1.Taint {
		return append(withoutKey(have, taint.Key), taint)
	})
}

// RemoveTaint removes every taint of a key; it is right too when there is none.
func (c *Client) RemoveTaint(ctx context.Context, node, key string) error {
	return c.changeTaints(ctx, node, "removing the taint of", func(have []corev1.Taint) []corev1.Taint {
		return withoutKey(have, key)
	})
}

// changeTaints reads, changes and writes the list of taints, which the API
// keeps as one value: a change by someone else in between is a conflict and
// starts again from what is there then.
func (c *Client) changeTaints(ctx context.Context, node, doing string, change func([]corev1.Taint) []corev1.Taint) error {
	return retry.Do(ctx, retry.WithMaxRetries(5, retry.NewExponential(50*time.Millisecond)), func(ctx context.Context) error {
		n, err := c.set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("%s node %s: %w", doing, node, err)
		}
		taints := change(n.Spec.Taints)
		if equality.Semantic.DeepEqual(taints, n.Spec.Taints) {
			return nil
		}
		err = c.patch(ctx, node, types.MergePatchType, doing, map[string]any{
			"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
			"spec":     map[string]any{"taints": taints},
		})
		if apierrors.IsConflict(err) {
			return retry.RetryableError(err)
		}
		return err
	})
}

func withoutKey(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}

// SetLabels sets labels and removes those named in remove.
func (c *Client) SetLabels(ctx context.Context, node string, set map[string]string, remove ...string) error {
	return c.setMeta(ctx, node, "labels", set, remove)
}

// SetAnnotations sets annotations and removes those named in remove.
func (c *Client) SetAnnotations(ctx context.Context, node string, set map[string]string, remove ...string) error {
	return c.setMeta(ctx, node, "annotations", set, remove)
}

func (c *Client) setMeta(ctx context.Context, node, field string, set map[string]string, remove []string) error {
	values := map[string]any{}
	for _, key := range remove {
		values[key] = nil
	}
	for key, value := range set {
		values[key] = value
	}
	if len(values) == 0 {
		return nil
	}
	return c.patch(ctx, node, types.MergePatchType, "setting "+field+" of", map[string]any{"metadata": map[string]any{field: values}})
}

// Cordon keeps new pods away from a node, or lets them come again.
func (c *Client) Cordon(ctx context.Context, node string, on bool) error {
	doing := "uncordoning"
	if on {
		doing = "cordoning"
	}
	return c.patch(ctx, node, types.MergePatchType, doing, map[string]any{"spec": map[string]any{"unschedulable": on}})
}

func (c *Client) patch(ctx context.Context, node string, kind types.PatchType, doing string, body any) error {
	data, err := json.Marshal(body)
	if err == nil {
		_, err = c.set.CoreV1().Nodes().Patch(ctx, node, kind, data, metav1.PatchOptions{FieldManager: "gpuctl"})
	}
	if err != nil {
		return fmt.Errorf("%s node %s: %w", doing, node, err)
	}
	return nil
}

// DeleteNode deletes a node and the secret with its k3s node password, without
// which a rebuilt machine of that name is refused. Both may be gone already.
// For a server k3s removes its etcd member too, while the others have quorum.
func (c *Client) DeleteNode(ctx context.Context, node string) error {
	err := c.set.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting node %s: %w", node, err)
	}
	return c.DeleteNodePassword(ctx, node)
}

// DeleteNodePassword deletes the secret <node>.node-password.k3s alone.
func (c *Client) DeleteNodePassword(ctx context.Context, node string) error {
	err := c.set.CoreV1().Secrets("kube-system").Delete(ctx, node+".node-password.k3s", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the node password of %s: %w", node, err)
	}
	return nil
}
