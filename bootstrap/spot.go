package bootstrap

import (
	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/providers"
)

// spotNotice is what the watcher on a machine writes on its node, with the time.
const spotNotice = "gpuctl.dev/spot-notice"

// spot says how a machine learns that its provider takes it away; nil for one
// whose group is not spot.
func (w wanted) spot(m inventory.Machine) *host.Spot {
	if !w.config.Group(m.Group).Spot {
		return nil
	}
	p, _ := providers.Find(w.config.Spec.Provider)
	return &host.Spot{Provider: p.Name, Seconds: p.Spot.Seconds, After: k3s.ActionID(m.Name)}
}

// leaving are nodes whose machines have got their notice.
func leaving(state kube.State) []diag.Finding {
	var out []diag.Finding
	for _, n := range state.Nodes {
		if at := n.Annotations[spotNotice]; at != "" {
			out = append(out, diag.Found("node-spot-notice", n.Name, "notice came at "+at))
		}
	}
	return out
}
