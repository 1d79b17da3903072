package bootstrap

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// A node of which no machine is named cannot be asked by SSH which GPUs it has.
// The DCGM exporter, which the operator runs beside the device plugin, asks the
// driver itself: its list stands in for the machine's, so that a pod that names
// other GPUs is found out. Of slices it does not tell the UUIDs.

// exporterLimit is how long an exporter that is just coming is waited for.
const exporterLimit = 2 * time.Minute

// listedRemotely adds what the exporters list to tests of nodes without a machine;
// what they do not tell stays unknown, and the GPUs unverified.
func (w wanted) listedRemotely(ctx context.Context, client *kube.Client, tests []smoke.Node, limit time.Duration, say plan.Say) []smoke.Node {
	var asked []string
	tests = slices.Clone(tests)
	for i, t := range tests {
		if w.existing() == nil || t.Host != nil || t.Beside || w.hasMachine(t.Name) {
			continue
		}
		tests[i].Remote, asked = true, append(asked, t.Name)
	}
	if len(asked) == 0 {
		return tests
	}
	listed := map[string][]smoke.GPU{}
	look := func(ctx context.Context) (bool, string, error) {
		texts, missing, err := client.Scrape(ctx, dcgmApp, dcgmPort, "metrics")
		if err != nil {
			return false, "the DCGM exporters could not be asked: " + err.Error(), nil //nolint:nilerr // asked again until the limit
		}
		var silent []string
		for _, node := range asked {
			if listed[node] = listedGPUs(texts[node]); len(listed[node]) == 0 {
				silent = append(silent, node+" "+firstOf(missing[node]))
			}
		}
		return len(silent) == 0, "no list of GPUs yet from the DCGM exporter of " + strings.Join(silent, ", "), nil
	}
	if limit == 0 {
		_, _, _ = look(ctx) //nolint:errcheck // it returns none: what is not told stays unknown
	} else if err := kube.Wait(ctx, 2*time.Second, limit, look, say); err != nil {
		say("%v", err)
	}
	for i, t := range tests {
		if gpus := listed[t.Name]; t.Remote && len(gpus) > 0 {
			tests[i].Host = gpus
		}
	}
	return tests
}

func (w wanted) hasMachine(node string) bool {
	return slices.ContainsFunc(w.machines, func(m inventory.Machine) bool { return m.Name == node })
}

// listedGPUs are the GPUs that an exporter's text names.
func listedGPUs(text string) []smoke.GPU {
	var gpus []smoke.GPU
	for _, uuid := range slices.Sorted(maps.Keys(parseDCGM(text))) {
		gpus = append(gpus, smoke.GPU{UUID: uuid})
	}
	return gpus
}

// settledCards waits until the operator has come to every node on which feature
// discovery sees a card of NVIDIA's, and the node offers GPUs: an operator that has
// seen no such node yet calls itself ready too.
func settledCards(client *kube.Client) kube.Condition {
	settled := stays(10 * time.Second)
	return func(ctx context.Context) (bool, string, error) {
		state, err := client.Snapshot(ctx)
		if err != nil {
			return false, "", err
		}
		reason := ""
		for _, n := range state.Nodes {
			if why := unsettled(n); reason == "" && why != "" {
				reason = why
			}
		}
		if reason == "" && !state.Policy.Ready() {
			reason = state.Policy.Why()
		}
		return settled(reason == ""), reason, nil
	}
}

// unsettled says why a node with a card does not offer GPUs yet, "" where it does,
// where it has none, and where its owner keeps the device plugin off.
func unsettled(n kube.Node) string {
	card := slices.ContainsFunc([]string{"pci-10de", "pci-0302_10de", "pci-0300_10de"}, func(name string) bool {
		return n.Labels["feature.node.kubernetes.io/"+name+".present"] == "true"
	})
	switch {
	case !card || !n.Ready:
		return ""
	case n.Labels["nvidia.com/gpu.present"] != "true":
		return "the operator has not come to " + n.Name + " yet, which has a card of NVIDIA's"
	case n.Labels["nvidia.com/gpu.deploy.device-plugin"] != "true" || n.Labels["nvidia.com/gpu.deploy.operands"] == "false":
		return ""
	case nodeGPUs(n) == 0:
		return n.Name + " offers no GPUs yet"
	}
	return ""
}
