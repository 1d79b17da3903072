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
	for _, only := range []string{"datastore", "disable", "tlsSANs", "config.server"} {
		if _, given := k.at["spec.kubernetes."+only]; given {
			k.problem("spec.kubernetes."+only, "belongs to the servers, and those of an existing cluster are not gpuctl's")
		}
	}
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
