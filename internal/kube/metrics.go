package kube

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scrapeLimit bounds one exporter's answer: it is on the way of a command that a
// person waits for.
const scrapeLimit = 8 * time.Second

// maxScrape bounds what is read of one exporter.
const maxScrape = 4 << 20

// Scrape reads a path of every running pod with this value of the label "app",
// through the API server's proxy, and returns the texts by node. A pod that does
// not answer is in missing, with its reason; no such pod is no error.
func (c *Client) Scrape(ctx context.Context, app string, port int, path string) (texts, missing map[string]string, err error) {
	list, err := c.set.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, nil, fmt.Errorf("looking for %s: %w", app, err)
	}
	type answer struct {
		node, text string
		err        error
	}
	answers := make([]answer, len(list.Items))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.Labels["app"] != app {
			continue
		}
		group.Go(func() error {
			gctx, cancel := context.WithTimeout(gctx, scrapeLimit)
			defer cancel()
			data, err := c.set.CoreV1().Pods(p.Namespace).ProxyGet("http", p.Name, fmt.Sprint(port), path, nil).DoRaw(gctx)
			answers[i] = answer{p.Spec.NodeName, string(data[:min(len(data), maxScrape)]), err}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	texts, missing = map[string]string{}, map[string]string{}
	for _, a := range answers {
		switch {
		case a.node == "":
		case a.err != nil:
			missing[a.node] = a.err.Error()
		default:
			texts[a.node] = a.text
		}
	}
	return texts, missing, ctx.Err()
}
