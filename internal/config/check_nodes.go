package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// marks checks the labels and taints of a group.
func (k checker) marks(g Group, field string) {
	for key, value := range g.Labels {
		at := join(field+".labels", key)
		if why := checkLabelKey(key); why != "" {
			k.problem(at, "%s", why)
		}
		if !labelValue().MatchString(value) {
			k.problem(at, "%q is no label value: at most 63 letters, digits, '-', '_' and '.', letters or digits at both ends", value)
		}
	}
	first := map[string]int{}
	for i, text := range g.Taints {
		at := fmt.Sprintf("%s.taints[%d]", field, i)
		t, err := ParseTaint(text)
		if err != nil {
			k.problem(at, "%v", err)
			continue
		}
		if j, twice := first[t.Key]; twice {
			k.problem(at, "%s stands in taints[%d] already", t.Key, j)
		}
		first[t.Key] = i
	}
}

// Taint keeps pods away from a node that do not tolerate it.
type Taint struct{ Key, Value, Effect string }

func (t Taint) String() string { return t.Key + "=" + t.Value + ":" + t.Effect }

// ParseTaint reads "key=value:NoSchedule" and "key:PreferNoSchedule". NoExecute
// is refused: it would drive off what runs the node's GPUs.
func ParseTaint(text string) (Taint, error) {
	rest, effect, found := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	t := Taint{Key: key, Value: value, Effect: effect}
	switch {
	case !found:
		return t, fmt.Errorf("%q has no effect; taints look like key=value:NoSchedule", text)
	case effect != "NoSchedule" && effect != "PreferNoSchedule":
		return t, fmt.Errorf("effect %q is neither NoSchedule nor PreferNoSchedule", effect)
	case !labelValue().MatchString(value):
		return t, fmt.Errorf("%q is no value of a taint", value)
	}
	if why := checkLabelKey(key); why != "" {
		return t, fmt.Errorf("%s", why)
	}
	return t, nil
}

func labelValue() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
}

// checkLabelKey says why a key cannot be a user's: its form, or its owner.
func checkLabelKey(key string) string {
	domain, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		domain, name = "", key
	}
	part := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	dns := regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	switch {
	case !part.MatchString(name) || (prefixed && !dns.MatchString(domain)):
		return fmt.Sprintf("%q is no key: name or domain/name, of letters, digits, '-', '_' and '.'", key)
	case domain == "gpuctl.dev" || strings.HasSuffix(domain, ".gpuctl.dev"):
		return fmt.Sprintf("%q is gpuctl's own", key)
	case domain == "nvidia.com" || strings.HasSuffix(domain, ".nvidia.com"):
		return fmt.Sprintf("%q is the GPU Operator's own", key)
	case key == "kubernetes.io/hostname" || key == "kubernetes.io/os" || key == "kubernetes.io/arch":
		return fmt.Sprintf("%q is the kubelet's own", key)
	}
	return ""
}

// registries checks secrets; what else k3s would refuse is told when planning.
func (k checker) registries(r map[string]any) {
	const field = "spec.kubernetes.registries"
	k.noSecrets(r, field)
	configs, _ := r["configs"].(map[string]any)
	for host, c := range configs {
		c, _ := c.(map[string]any)
		auth, _ := c["auth"].(map[string]any)
		at := field + ".configs." + host + ".auth.auth"
		if text, clear := auth["auth"].(string); clear && text != "" {
			k.problem(at, "holds user and password, and secrets do not stand in this file; say where it is instead: {env: NAME} or {file: PATH}")
		}
	}
}

// twice refuses credentials of one registry in two places.
func (k checker) twice(s *Spec) {
	images := s.Sources.Images
	u, err := url.Parse(images.URL)
	if err != nil || (images.Username == "" && images.CAFile == "") {
		return
	}
	configs, _ := s.Kubernetes.Registries["configs"].(map[string]any)
	if _, there := configs[u.Host]; there {
		k.problem("spec.sources.images", "%s stands in spec.kubernetes.registries.configs too: say in one place how to log in", u.Host)
	}
}

// operatorDrivers: the GPU Operator brings one driver to all nodes that it serves.
func (k checker) operatorDrivers(s *Spec) {
	first := -1
	off := s.GPU.Operator.Enabled != nil && !*s.GPU.Operator.Enabled
	for i, g := range s.Groups {
		if off && g.Sharing != nil && g.Sharing.MIG != nil {
			k.problem(fmt.Sprintf("spec.groups[%d].sharing.mig", i), "the GPU Operator cuts GPUs, and spec.gpu.operator.enabled is false")
		}
		if g.Driver.Mode != "operator" {
			continue
		}
		at := fmt.Sprintf("spec.groups[%d].driver", i)
		if off {
			k.problem(at+".mode", "operator means nothing where spec.gpu.operator.enabled is false")
		}
		if g.Driver.Reboot == "never" {
			k.problem(at+".reboot", "is gpuctl's promise, and the GPU Operator gives none: it brings the driver of this group")
		}
		if first < 0 {
			first = i
			continue
		}
		one := s.Groups[first]
		if one.Driver.Branch != g.Driver.Branch || one.Driver.Modules != g.Driver.Modules {
			k.problem(at, "the GPU Operator brings one driver: branch and modules must be those of group %s", one.Name)
		}
	}
}
