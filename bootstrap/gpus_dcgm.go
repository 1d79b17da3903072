package bootstrap

import (
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dcgmApp is the label "app" of NVIDIA's exporter (gpu-operator, state-dcgm-exporter).
const (
	dcgmApp  = "nvidia-dcgm-exporter"
	dcgmPort = 9400
)

// load is what the exporter says of one GPU.
type load struct {
	// percent is its utilisation, -1 where it is not told.
	percent int
	// pods hold it, namespace/name: told for whole GPUs and slices, not for shared ones.
	pods []string
}

// loads is what the exporters say of all GPUs, by UUID.
func (e *Engine) loads(ctx context.Context, s sight) (map[string]load, []string) {
	byNode, notes := e.loadsByNode(ctx, s)
	all := map[string]load{}
	for _, loads := range byNode {
		maps.Copy(all, loads)
	}
	return all, notes
}

// loadsByNode asks the exporters of all nodes; a cluster without them tells nothing.
func (e *Engine) loadsByNode(ctx context.Context, s sight) (map[string]map[string]load, []string) {
	if !s.cluster.there() {
		return nil, nil
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return nil, []string{"utilisation is not known: " + err.Error()}
	}
	texts, missing, err := client.Scrape(ctx, dcgmApp, dcgmPort, "metrics")
	if err != nil {
		return nil, []string{"utilisation is not known: " + err.Error()}
	}
	all := map[string]map[string]load{}
	for node, text := range texts {
		all[node] = parseDCGM(text)
	}
	var notes []string
	for _, node := range slices.Sorted(maps.Keys(missing)) {
		notes = append(notes, "the DCGM exporter of "+node+" did not answer ("+firstOf(missing[node])+"): utilisation is not known there")
	}
	return all, notes
}

// mean is the utilisation of a node's GPUs in percent, nil where none tells.
func mean(loads map[string]load) *int {
	sum, n := 0, 0
	for _, l := range loads {
		if l.percent >= 0 {
			sum, n = sum+l.percent, n+1
		}
	}
	if n == 0 {
		return nil
	}
	percent := (sum + n/2) / n
	return &percent
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// DCGM_FI_DEV_GPU_UTIL is a percentage by GPU; of a GPU in MIG mode it says nothing,
// there DCGM_FI_PROF_GR_ENGINE_ACTIVE is a ratio by slice (dcgm-exporter).
var (
	dcgmLine  = regexp.MustCompile(`^(DCGM_FI_DEV_GPU_UTIL|DCGM_FI_PROF_GR_ENGINE_ACTIVE)\{(.*)\}\s+(\S+)`)
	dcgmLabel = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// parseDCGM reads the exporter's text by UUID of GPUs.
func parseDCGM(text string) map[string]load {
	all := map[string]load{}
	for line := range strings.Lines(text) {
		m := dcgmLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range dcgmLabel.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[2]
		}
		value, err := strconv.ParseFloat(m[3], 64)
		uuid := labels["UUID"]
		if err != nil || !strings.HasPrefix(uuid, "GPU-") {
			continue
		}
		of, seen := all[uuid]
		if !seen {
			of.percent = -1
		}
		if m[1] == "DCGM_FI_DEV_GPU_UTIL" && value >= 0 && value <= 100 {
			of.percent = int(math.Round(value))
		}
		// Older exporters call the pod's labels exported_ where they were scraped by Prometheus.
		if pod := labels["pod"]; pod != "" && labels["namespace"] != "" && !slices.Contains(of.pods, labels["namespace"]+"/"+pod) {
			of.pods = append(of.pods, labels["namespace"]+"/"+pod)
		}
		all[uuid] = of
	}
	return all
}

// loaded adds utilisation and, where it is told, whose a GPU is.
func (r *GPUsResult) loaded(loads map[string]load) {
	for i := range r.GPUs {
		g := &r.GPUs[i]
		of, known := loads[g.UUID]
		if !known || g.UUID == "" {
			continue
		}
		if of.percent >= 0 {
			percent := of.percent
			g.Utilisation = &percent
		}
		if len(of.pods) > 0 && !g.UsersSure {
			slices.Sort(of.pods)
			g.Users, g.UsersSure = of.pods, true
		}
	}
}
