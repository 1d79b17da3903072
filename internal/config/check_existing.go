package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// existing checks what is said about a cluster that gpuctl did not make, and
// refuses what only a cluster of gpuctl's own could follow: nothing is ignored silently.
func (k checker) existing(s *Spec) {
	e := s.Kubernetes.Existing
	for i, g := range s.Groups {
		k.selector(s, g, fmt.Sprintf("spec.groups[%d].selector", i))
	}
	if e == nil {
		return
	}
	const field = "spec.kubernetes.existing"
	if e.Kubeconfig == "" && e.Server == "" && !k.failed(field) {
		k.problem(field, "says neither how to reach its API (kubeconfig) nor how to join it (server and token)")
	}
	k.match(k.file, e.Kubeconfig, field+".kubeconfig", "a path without control characters")
	k.match(k.file, e.Context, field+".context", "the name of a context")
	if e.Context != "" && e.Kubeconfig == "" {
		k.problem(field+".context", "stands without kubeconfig")
	}
	if e.TaintUnproven && e.Kubeconfig == "" {
		k.problem(field+".taintUnproven", "needs kubeconfig: without it nothing could take the taint off again")
	}
	k.joinExisting(s, e, field)
	k.existingGroup(s, e, field)
	for _, only := range []string{"datastore", "endpoint", "disable", "tlsSANs", "config.server"} {
		if _, given := k.at["spec.kubernetes."+only]; given {
			k.problem("spec.kubernetes."+only, "belongs to the servers, and those of an existing cluster are not gpuctl's")
		}
	}
}

// selector checks by which labels a group picks nodes. Labels that sharing itself
// changes would let a node go as soon as it is shared.
func (k checker) selector(s *Spec, g Group, field string) {
	if len(g.Selector) == 0 {
		return
	}
	if e := s.Kubernetes.Existing; e == nil || e.Kubeconfig == "" || len(s.Machines) > 0 || s.MachinesFrom != nil {
		k.problem(field, "picks nodes of a cluster that is known by kubernetes.existing.kubeconfig alone; machines of the file name their group")
	}
	key := regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	for label, value := range g.Selector {
		at := join(field, label)
		switch {
		case !key.MatchString(label):
			k.problem(at, "%q is no key of a label", label)
		case !labelValue().MatchString(value):
			k.problem(at, "%q is no value of a label", value)
		case changedBySharing(label):
			k.problem(at, "%s changes with the sharing of the node; nvidia.com/gpu.product, which may be used, is compared without what sharing adds to it", label)
		}
	}
}

func changedBySharing(label string) bool {
	name, nvidia := strings.CutPrefix(label, "nvidia.com/")
	if !nvidia {
		return false
	}
	for _, prefix := range []string{"mig", "gpu.count", "gpu.memory", "gpu.multiprocessors", "gpu.replicas", "gpu.sharing-strategy", "gpu.slices", "gpu.engines", "device-plugin.config", "gpu.deploy"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// joinExisting checks what machines need to join.
func (k checker) joinExisting(s *Spec, e *Existing, field string) {
	switch {
	case e.Server != "" && e.Token == nil:
		k.problem(field+".server", "stands without token; it is in node-token or agent-token below /var/lib/rancher/k3s/server, on a server")
	case e.Server == "" && e.Token != nil:
		k.problem(field+".token", "stands without server")
	case e.Server == "" && (len(s.Machines) > 0 || s.MachinesFrom != nil):
		k.problem("spec.machines", "machines join an existing cluster by kubernetes.existing.server and token, which are missing")
	case e.Server != "" && len(s.Machines) == 0 && s.MachinesFrom == nil && e.Kubeconfig == "":
		k.problem(field+".server", "joins nothing: no machine is named, and no kubeconfig for the rest")
	}
	u, err := url.Parse(e.Server)
	switch {
	case e.Server == "":
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		k.problem(field+".server", "%q is not the URL of a k3s server; they look like https://10.0.0.5:6443", e.Server)
	case !regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`).MatchString(u.Host):
		k.problem(field+".server", "%q is no host and port", u.Host)
	}
	if e.Token != nil {
		k.secret(*e.Token, field+".token")
		if e.Token.Prompt {
			k.problem(field+".token", "cannot be asked for; say where it is: {env: NAME} or {file: PATH}")
		}
	}
	for i, m := range s.Machines {
		if m.Role == "server" {
			k.problem(fmt.Sprintf("spec.machines[%d].role", i), "the existing cluster has its servers; machines join it as agents")
		}
	}
}

func (k checker) existingGroup(s *Spec, e *Existing, field string) {
	if e.Group == "" {
		return
	}
	var known []string
	for _, g := range s.Groups {
		if g.Name == e.Group {
			return
		}
		known = append(known, g.Name)
	}
	k.problem(field+".group", "there is no group %q; known are %s", e.Group, or(strings.Join(known, ", "), "none"))
}
