package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Policy is the state of the GPU Operator's ClusterPolicy. Its state "ready"
// alone is no proof: it counts only with reason Reconciled and allocatable GPUs.
type Policy struct {
	// Exists is false where the operator or its resource definition is absent.
	Exists bool   `json:"exists"`
	Name   string `json:"name,omitempty"`
	// Namespace is the operator's, as it says itself.
	Namespace string `json:"namespace,omitempty"`
	// State is "ready", "notReady", "ignored" or "disabled".
	State string `json:"state,omitempty"`
	// Reason and Message are of the condition that is true, the Error condition first.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Ready reports whether the operator calls all of its operands done.
func (p Policy) Ready() bool { return p.State == "ready" && p.Reason == "Reconciled" }

// Why is one line for a wait: state, reason and message.
func (p Policy) Why() string {
	if !p.Exists {
		return "there is no ClusterPolicy yet"
	}
	why := "ClusterPolicy is " + p.State
	if p.State == "" {
		why = "ClusterPolicy has no state yet"
	}
	if p.Reason != "" {
		why += " (" + p.Reason + ")"
	}
	if p.Message != "" {
		why += ": " + p.Message
	}
	return why
}

func policies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
}

// policy reads the ClusterPolicy; no resource definition is a value.
func (c *Client) policy(ctx context.Context) (Policy, error) {
	list, err := c.dyn.Resource(policies()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return Policy{}, nil
	}
	if err != nil || len(list.Items) == 0 {
		return Policy{}, err
	}
	return policyOf(&list.Items[0]), nil
}

func policyOf(u *unstructured.Unstructured) Policy {
	p := Policy{Exists: true, Name: u.GetName()}
	p.Namespace, _, _ = unstructured.NestedString(u.Object, "status", "namespace")
	p.State, _, _ = unstructured.NestedString(u.Object, "status", "state")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, entry := range conditions {
		cond, ok := entry.(map[string]any)
		if !ok || cond["status"] != "True" {
			continue
		}
		if reason, _ := cond["reason"].(string); p.Reason == "" || cond["type"] == "Error" {
			p.Reason = reason
			p.Message, _ = cond["message"].(string)
		}
	}
	return p
}
