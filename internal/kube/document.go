package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// document is one kubeconfig file as a tree, so that what is not touched is
// written back as it was: unknown fields, order and comments included.
type document struct {
	path   string
	exists bool
	before []byte
	root   *yaml.Node // the mapping
	doc    yaml.Node
	dirty  bool
}

func readDocument(path string) (*document, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d, err := parseDocument([]byte("apiVersion: v1\nkind: Config\n"))
		d.path = path
		return d, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	d, err := parseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	d.path, d.exists = path, true
	return d, nil
}

func parseDocument(data []byte) (*document, error) {
	d := &document{before: data}
	if err := yaml.Unmarshal(data, &d.doc); err != nil {
		return nil, err
	}
	if len(d.doc.Content) == 0 || d.doc.Content[0].Tag == "!!null" {
		d.root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		d.doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{d.root}}
		return d, nil
	}
	d.root = d.doc.Content[0]
	if d.root.Kind != yaml.MappingNode {
		return nil, errors.New("it is not a map")
	}
	for _, list := range []string{"clusters", "users", "contexts"} {
		if n := get(d.root, list); n != nil && n.Kind != yaml.SequenceNode && n.Tag != "!!null" {
			return nil, fmt.Errorf("line %d: %s is not a list", n.Line, list)
		}
	}
	return d, nil
}

func (d *document) field(key string) *yaml.Node { return get(d.root, key) }

// entry returns the element of a list that has this name.
func (d *document) entry(list, name string) *yaml.Node {
	n := get(d.root, list)
	if n == nil {
		return nil
	}
	for _, e := range n.Content {
		if v := get(e, "name"); v != nil && v.Value == name {
			return e
		}
	}
	return nil
}

// put replaces or appends an element of a list.
func (d *document) put(list, name string, entry *yaml.Node) {
	if old := d.entry(list, name); old != nil {
		if !same(old, entry) {
			*old = *entry
			d.dirty = true
		}
		return
	}
	d.dirty = true
	n := get(d.root, list)
	if n == nil {
		n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		d.root.Content = append(d.root.Content, scalar(list), n)
	}
	if n.Tag == "!!null" {
		*n = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	}
	if len(n.Content) == 0 {
		n.Style = 0 // "clusters: []" becomes a list on lines of its own
	}
	n.Content = append(n.Content, entry)
}

func (d *document) set(key, value string) {
	n := get(d.root, key)
	switch {
	case n == nil:
		d.root.Content = append(d.root.Content, scalar(key), scalar(value))
	case n.Value == value:
		return
	default:
		*n = *scalar(value)
	}
	d.dirty = true
}

// save writes the file if something changed.
func (d *document) save() (bool, error) {
	if !d.dirty {
		return false, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&d.doc); err != nil {
		return false, fmt.Errorf("writing %s: %w", d.path, err)
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return false, fmt.Errorf("writing %s: %w", d.path, err)
	}
	return true, writeAtomic(d.path, b.Bytes())
}

func get(m *yaml.Node, key string) *yaml.Node {
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

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// same compares two trees by what they say.
func same(a, b *yaml.Node) bool {
	var x, y any
	if a.Decode(&x) != nil || b.Decode(&y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}
