package sharing

import (
	"fmt"
	"sort"

	"github.com/goccy/go-yaml"
)

// CheckDocument reads a device-plugin configuration that a user wrote. refused
// is what the plugin rejects, dead the keys that it passes over without a word
// (k8s-device-plugin#1433, #353, #929).
func CheckDocument(text string) (refused, dead []string) {
	var doc struct {
		Flags   map[string]any            `yaml:"flags"`
		Sharing map[string]map[string]any `yaml:"sharing"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return []string{"it is no device-plugin configuration: " + firstLine(err.Error())}, nil
	}
	for _, key := range []string{"renameByDefault", "failRequestsGreaterThanOne"} {
		if _, there := doc.Flags[key]; there {
			dead = append(dead, fmt.Sprintf("flags.%s has no effect; it belongs in sharing.timeSlicing", key))
		}
		if _, there := doc.Sharing[key]; there {
			dead = append(dead, fmt.Sprintf("sharing.%s has no effect; it belongs in sharing.timeSlicing", key))
		}
	}
	if doc.Sharing["mps"] != nil && doc.Sharing["timeSlicing"] != nil {
		refused = append(refused, "mps and timeSlicing stand in one configuration; they exclude each other")
	}
	if _, there := doc.Sharing["mps"]["failRequestsGreaterThanOne"]; there {
		dead = append(dead, "sharing.mps.failRequestsGreaterThanOne has no effect: MPS refuses such requests always")
	}
	for _, kind := range []Kind{TimeSlicing, MPS} {
		section := map[Kind]string{TimeSlicing: "timeSlicing", MPS: "mps"}[kind]
		r, d := checkResources(kind, "sharing."+section, doc.Sharing[section])
		refused, dead = append(refused, r...), append(dead, d...)
	}
	sort.Strings(refused)
	sort.Strings(dead)
	return refused, dead
}

func checkResources(kind Kind, at string, section map[string]any) (refused, dead []string) {
	list, _ := section["resources"].([]any)
	for i, entry := range list {
		resource, _ := entry.(map[string]any)
		if _, there := resource["rename"]; there {
			dead = append(dead, fmt.Sprintf("%s.resources[%d].rename has no effect; renameByDefault renames", at, i))
		}
		n, ok := number(resource["replicas"])
		if !ok {
			continue
		}
		if why := CheckReplicas(kind, n); why != "" {
			refused = append(refused, fmt.Sprintf("%s.resources[%d].replicas: %s", at, i, why))
		}
	}
	return refused, dead
}

func number(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	case uint64:
		return int(min(n, 1<<30)), true
	}
	return 0, false
}

func firstLine(text string) string {
	for i, r := range text {
		if r == '\n' {
			return text[:i]
		}
	}
	return text
}
