package bootstrap

import (
	"github.com/gpuctl/gpuctl/bootstrap/collect"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
)

// Collecting is what a bundle for a cluster is made of: the set's versions or
// those of gpuctl.yaml, from its mirrors. Secrets of c are resolved already.
func Collecting(c config.Config, set charts.Set) collect.Options {
	w := wanted{config: c, set: set}
	s := c.Spec.Sources
	o := collect.Options{
		Set: set, Kubernetes: c.Spec.Kubernetes.Version, Toolkit: c.Spec.GPU.Toolkit.Version,
		Sources: collect.Sources{K3s: sourceOf(s.K3s), Packages: sourceOf(s.Packages), Charts: sourceOf(s.Charts), Images: sourceOf(s.Images)},
	}
	for _, g := range c.Spec.Groups {
		if g.Driver.Branch != "" {
			o.Branch = g.Driver.Branch
		}
	}
	if rel, ok := w.gpuRelease(sight{}); ok {
		o.Releases = append(o.Releases, rel)
	}
	return o
}
