package charts

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// waitRelease waits until the Deployments, DaemonSets and StatefulSets of a
// release's manifest are ready, and says why they are not.
func (r *Releaser) waitRelease(ctx context.Context, rel Release, say Say) error {
	c, err := r.clients()
	if err != nil {
		return err
	}
	cfg, err := c.helm(rel.Namespace)
	if err != nil {
		return err
	}
	last, err := within(ctx, func() (string, error) {
		last, err := cfg.Releases.Last(rel.Name)
		if err != nil {
			return "", err
		}
		return last.Manifest, nil
	})
	if err != nil {
		return fmt.Errorf("reading release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	objects, err := decodeAll([]byte(last))
	if err != nil {
		return fmt.Errorf("reading the manifest of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	w := waitFor{what: "release " + rel.Name, limit: 10 * time.Minute, every: r.every}
	return wait(ctx, w, say, func(ctx context.Context) (bool, string, error) {
		for _, o := range objects {
			namespace := o.GetNamespace()
			if namespace == "" {
				namespace = rel.Namespace
			}
			done, why, err := workloadReady(ctx, c.kube, o.GetKind(), namespace, o.GetName())
			if err != nil || !done {
				return false, why, err
			}
		}
		return true, "", nil
	})
}

// workloadReady says whether a workload is rolled out. Other kinds are.
func workloadReady(ctx context.Context, kube kubernetes.Interface, kind, namespace, name string) (bool, string, error) {
	apps := kube.AppsV1()
	switch kind {
	case "Deployment":
		d, err := apps.Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return judge(ctx, kube, namespace, "deployment "+name, deploymentMissing(d), d.Spec.Selector)
	case "DaemonSet":
		d, err := apps.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return judge(ctx, kube, namespace, "daemonset "+name, daemonSetMissing(d), d.Spec.Selector)
	case "StatefulSet":
		s, err := apps.StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return judge(ctx, kube, namespace, "statefulset "+name, statefulSetMissing(s), s.Spec.Selector)
	}
	return true, "", nil
}

func deploymentMissing(d *appsv1.Deployment) string {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	return missing(d.Generation, d.Status.ObservedGeneration, want, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
}

func daemonSetMissing(d *appsv1.DaemonSet) string {
	return missing(d.Generation, d.Status.ObservedGeneration, d.Status.DesiredNumberScheduled,
		d.Status.UpdatedNumberScheduled, d.Status.NumberReady)
}

func statefulSetMissing(s *appsv1.StatefulSet) string {
	want := int32(1)
	if s.Spec.Replicas != nil {
		want = *s.Spec.Replicas
	}
	return missing(s.Generation, s.Status.ObservedGeneration, want, s.Status.UpdatedReplicas, s.Status.ReadyReplicas)
}

func missing(generation, observed int64, want, updated, ready int32) string {
	switch {
	case observed < generation:
		return "not seen by its controller yet"
	case updated < want:
		return fmt.Sprintf("%d of %d updated", updated, want)
	case ready < want:
		return fmt.Sprintf("%d of %d ready", ready, want)
	}
	return ""
}

// judge turns what is missing into a reason, with the trouble of one of the pods.
func judge(ctx context.Context, kube kubernetes.Interface, namespace, what, missing string, selector *metav1.LabelSelector) (bool, string, error) {
	if missing == "" {
		return true, "", nil
	}
	reason := what + ": " + missing
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, reason, nil
	}
	if why := trouble(ctx, kube, namespace, s); why != "" {
		reason += ": " + why
	}
	return false, reason, nil
}

// podTrouble is what is wrong with any pod of a namespace, "" if nothing is.
func podTrouble(ctx context.Context, kube kubernetes.Interface, namespace string) string {
	return trouble(ctx, kube, namespace, labels.Everything())
}

func trouble(ctx context.Context, kube kubernetes.Interface, namespace string, s labels.Selector) string {
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: s.String()})
	if err != nil {
		return ""
	}
	for _, p := range pods.Items {
		if podreason.Ready(p) {
			continue
		}
		if why := podreason.Of(p, eventsOf(ctx, kube, p)); why != "" {
			return "pod " + p.Name + ": " + why
		}
	}
	return ""
}

func eventsOf(ctx context.Context, kube kubernetes.Interface, pod corev1.Pod) []corev1.Event {
	list, err := kube.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
	if err != nil {
		return nil
	}
	var own []corev1.Event
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == pod.Name {
			own = append(own, e)
		}
	}
	return own
}

// makeNamespace makes the release's namespace. Helm could, but fetches the API's
// whole OpenAPI document (megabytes) to check two lines.
func makeNamespace(ctx context.Context, kube kubernetes.Interface, name string) error {
	_, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
		_, err = kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	return nil
}
