// Package podreason says in one line why a pod is not running yet or failed. It
// is pure: it reads a pod and its events as they were fetched.
package podreason

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// limit cuts a reason: kubelet messages can run over pages.
const limit = 400

// Of returns why the pod is not ready, most telling first: what keeps a container
// waiting, why it ended, why the pod was refused, why it was not placed, then the
// newest warning among its events. Empty means nothing is wrong with it so far.
func Of(pod corev1.Pod, events []corev1.Event) string {
	for _, find := range []func() string{
		func() string { return refused(pod) },
		func() string { return containers(pod) },
		func() string { return placement(pod) },
		func() string { return warning(events) },
	} {
		if why := find(); why != "" {
			return cut(why)
		}
	}
	return ""
}

// Ready says whether the pod runs with every container ready, or has succeeded.
func Ready(pod corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// refused: the kubelet turned the pod away (UnexpectedAdmissionError, Evicted,
// NodeShutdown); such a pod never runs again.
func refused(pod corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return join(pod.Status.Reason, pod.Status.Message)
	}
	return ""
}

func containers(pod corev1.Pod) string {
	all := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, c := range all {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			why := "container " + c.Name + ": " + join(w.Reason, w.Message)
			if t := c.LastTerminationState.Terminated; t != nil {
				why += fmt.Sprintf(" (last exit %d %s)", t.ExitCode, strings.TrimSpace(t.Message))
			}
			return why
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s: exit %d: %s", c.Name, t.ExitCode, join(t.Reason, t.Message))
		}
	}
	return ""
}

func placement(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return join(c.Reason, c.Message)
		}
	}
	return ""
}

// warning is the newest warning. A sandbox that cannot be made ("no runtime for
// nvidia is configured") shows only here.
func warning(events []corev1.Event) string {
	var warnings []corev1.Event
	for _, e := range events {
		if e.Type == corev1.EventTypeWarning {
			warnings = append(warnings, e)
		}
	}
	if len(warnings) == 0 {
		return ""
	}
	sort.SliceStable(warnings, func(i, j int) bool { return when(warnings[i]) > when(warnings[j]) })
	return join(warnings[0].Reason, warnings[0].Message)
}

func when(e corev1.Event) int64 {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.UnixNano()
	}
	return e.EventTime.UnixNano()
}

func join(reason, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

func cut(s string) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + " ..."
}
