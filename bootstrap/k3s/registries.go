package k3s

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mirrored are the registries whose images a mirror of sources.images serves.
func Mirrored() []string {
	return []string{"docker.io", "ghcr.io", "nvcr.io", "quay.io", "registry.k8s.io"}
}

// registries renders what registries.yaml must at least say; "" when nothing.
func (w Want) registries() (string, error) {
	if len(bytes.TrimSpace(w.Registries)) == 0 && w.ImageMirror == "" {
		return "", nil
	}
	out, _, err := MergeRegistries(nil, w.Registries, w.ImageMirror)
	return header + out, err
}

// MergeRegistries adds to a machine's registries.yaml what the user's
// configuration and the mirror base URL ask for and keeps all the rest,
// credentials and rewrites included. changed is false when nothing was
// missing. A mirror that is there already with other endpoints is an error:
// its rewrites would apply to ours too.
func MergeRegistries(existing, want []byte, mirror string) (merged string, changed bool, err error) {
	doc, err := parseRegistries(existing)
	if err != nil {
		return "", false, err
	}
	if len(bytes.TrimSpace(want)) > 0 {
		extra, err := parseRegistries(want)
		if err != nil {
			return "", false, err
		}
		did, err := mergeMirrors(doc, extra)
		if err != nil {
			return "", false, err
		}
		if err := sameLogins(doc, extra); err != nil {
			return "", false, err
		}
		changed = did || mergeAbsent(doc, extra, "configs")
	}
	if mirror != "" {
		did, err := mergeMirrors(doc, mirrorDoc(mirror))
		if err != nil {
			return "", false, err
		}
		changed = changed || did
	}
	if !changed {
		return string(existing), false, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return "", false, fmt.Errorf("writing registries.yaml: %w", err)
	}
	return b.String(), changed, nil
}

// CheckRegistries says what is wrong with a registries.yaml, with the line and
// the path of the key; k3s itself does not start with such a file and prints
// little. An empty file is right.
func CheckRegistries(data []byte) error {
	_, err := parseRegistries(data)
	return err
}

func parseRegistries(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("registries.yaml: %w", err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, wrong(root, "registries.yaml", "must be a map with mirrors and configs")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		var err error
		switch key.Value {
		case "mirrors":
			err = checkMirrors(value)
		case "configs", "auths":
			err = checkConfigs(key.Value, value)
		default:
			err = wrong(key, key.Value, "is not known here; the keys are mirrors and configs")
		}
		if err != nil {
			return nil, err
		}
	}
	return root, nil
}

func checkMirrors(mirrors *yaml.Node) error {
	if mirrors.Kind != yaml.MappingNode && mirrors.Tag != "!!null" {
		return wrong(mirrors, "mirrors", "must be a map of registry -> {endpoint: [...]}")
	}
	for i := 0; i+1 < len(mirrors.Content); i += 2 {
		at, m := "mirrors."+mirrors.Content[i].Value, mirrors.Content[i+1]
		if m.Tag == "!!null" {
			continue // an empty entry shares images through the embedded registry
		}
		if m.Kind != yaml.MappingNode {
			return wrong(m, at, "must be a map with endpoint and rewrite")
		}
		if e := child(m, "endpoint"); e != nil && e.Kind != yaml.SequenceNode && e.Tag != "!!null" {
			return wrong(e, at+".endpoint", "must be a list of URLs")
		}
		if r := child(m, "rewrite"); r != nil && r.Kind != yaml.MappingNode && r.Tag != "!!null" {
			return wrong(r, at+".rewrite", "must be a map of pattern -> replacement")
		}
	}
	return nil
}

func checkConfigs(name string, configs *yaml.Node) error {
	if configs.Kind != yaml.MappingNode && configs.Tag != "!!null" {
		return wrong(configs, name, "must be a map of registry -> {auth: ..., tls: ...}")
	}
	for i := 0; i+1 < len(configs.Content); i += 2 {
		if c := configs.Content[i+1]; c.Kind != yaml.MappingNode && c.Tag != "!!null" {
			return wrong(c, name+"."+configs.Content[i].Value, "must be a map with auth and tls")
		}
	}
	return nil
}

func wrong(n *yaml.Node, path, why string) error {
	return fmt.Errorf("registries.yaml line %d: %s %s", n.Line, path, why)
}

// mirrorDoc is the registries.yaml of one mirror that serves each registry's
// images below the registry's name: nvcr.io/nvidia/x is <base>/v2/nvcr.io/nvidia/x.
func mirrorDoc(base string) *yaml.Node {
	mirrors := mapping()
	for _, host := range Mirrored() {
		endpoint := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{text(base)}}
		rewrite := mapping(text("^(.*)$"), text(host+"/$1"))
		mirrors.Content = append(mirrors.Content, text(host), mapping(text("endpoint"), endpoint, text("rewrite"), rewrite))
	}
	return mapping(text("mirrors"), mirrors)
}

func mergeMirrors(into, from *yaml.Node) (bool, error) {
	want := child(from, "mirrors")
	if want == nil {
		return false, nil
	}
	for i := 0; i+1 < len(want.Content); i += 2 {
		host := want.Content[i].Value
		have := child(child(into, "mirrors"), host)
		if have == nil {
			continue
		}
		a, b := child(have, "endpoint"), child(want.Content[i+1], "endpoint")
		if strings.Join(values(a), " ") != strings.Join(values(b), " ") {
			return false, fmt.Errorf("registries.yaml line %d: mirrors.%s has other endpoints (%s) than wanted (%s)",
				have.Line, host, strings.Join(values(a), ", "), strings.Join(values(b), ", "))
		}
	}
	return mergeAbsent(into, from, "mirrors"), nil
}

// sameLogins refuses a registry with another login than wanted: which of the two
// is right is not ours to say, and images would come or not by chance. The error
// names no secret.
func sameLogins(into, from *yaml.Node) error {
	want := child(from, "configs")
	for i := 0; want != nil && i+1 < len(want.Content); i += 2 {
		host := want.Content[i].Value
		have, auth := child(child(into, "configs"), host), child(want.Content[i+1], "auth")
		if have == nil || auth == nil {
			continue
		}
		for _, key := range []string{"username", "password", "auth", "identity_token"} {
			a, b := child(child(have, "auth"), key), child(auth, key)
			if b != nil && (a == nil || a.Value != b.Value) {
				return fmt.Errorf("registries.yaml line %d: configs.%s has another login than wanted (%s): change it there, or remove the entry", have.Line, host, key)
			}
		}
	}
	return nil
}

// mergeAbsent copies the entries of one top-level map that are not there yet.
func mergeAbsent(into, from *yaml.Node, name string) bool {
	want := child(from, name)
	if want == nil || len(want.Content) == 0 {
		return false
	}
	have := child(into, name)
	if have == nil || have.Kind != yaml.MappingNode {
		if have != nil {
			*have = *mapping()
		} else {
			have = mapping()
			into.Content = append(into.Content, text(name), have)
		}
	}
	changed := false
	for i := 0; i+1 < len(want.Content); i += 2 {
		if child(have, want.Content[i].Value) == nil {
			have.Content = append(have.Content, want.Content[i], want.Content[i+1])
			changed = true
		}
	}
	return changed
}

func child(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

func values(n *yaml.Node) []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, c.Value)
	}
	return out
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content}
}

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}
