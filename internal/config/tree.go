package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entry is one key of a mapping.
type entry struct {
	key   string
	node  ast.Node // where the key stands
	value ast.Node
}

// entries lists a mapping's keys in order and refuses doubles.
func (d *decoder) entries(n ast.Node, field string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.fail(n, field, "must be a mapping (key: value)")
		return nil, false
	}
	var out []entry
	first := map[string]position{}
	for _, v := range values {
		key, ok := keyText(v.Key)
		if !ok {
			d.fail(v.Key, field, "a key must be plain text")
			continue
		}
		if at, twice := first[key]; twice {
			d.fail(v.Key, join(field, key), "given twice, first in line %d", at.line)
			continue
		}
		first[key] = positionOf(v.Key)
		out = append(out, entry{key, v.Key, v.Value})
	}
	return out, true
}

func keyText(k ast.MapKeyNode) (string, bool) {
	if k == nil || k.IsMergeKey() {
		return "", false
	}
	n, ok := k.(ast.Node)
	if !ok {
		return "", false
	}
	return scalarText(n)
}

// scalarText is a scalar as the user wrote it, quotes and comments aside.
func scalarText(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode, *ast.NullNode:
		return strings.TrimSpace(n.GetToken().Value), true
	}
	return "", false
}

func isNull(n ast.Node) bool {
	if n == nil {
		return true
	}
	_, null := n.(*ast.NullNode)
	return null
}

// free turns a tree that this tool only passes on (Helm values, k3s keys) into
// maps, lists and scalars.
func (d *decoder) free(n ast.Node, field string) any {
	d.at[field] = positionOf(n)
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		entries, _ := d.entries(n, field)
		m := make(map[string]any, len(entries))
		for _, e := range entries {
			at := join(field, e.key)
			m[e.key] = d.free(e.value, at)
			d.at[at] = positionOf(e.node)
		}
		return m
	case *ast.SequenceNode:
		list := make([]any, len(v.Values))
		for i, item := range v.Values {
			list[i] = d.free(item, fmt.Sprintf("%s[%d]", field, i))
		}
		return list
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := scalarText(n)
		return text
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode, *ast.FloatNode:
		return d.freeNumber(n, field)
	}
	d.fail(n, field, "anchors, aliases, tags and special numbers are not part of this format")
	return nil
}

func (d *decoder) freeNumber(n ast.Node, field string) any {
	text, _ := scalarText(n)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text {
		return i
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.Contains(text, ".") && !strings.HasPrefix(text, "0x") {
		return f
	}
	d.fail(n, field, "%s could be read as several numbers: write it in plain digits, or in quotes if it is text", text)
	return nil
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	out := make(map[string]reflect.StructField, t.NumField())
	for i := range t.NumField() {
		out[yamlName(t.Field(i))] = t.Field(i)
	}
	return out
}

func names(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		out = append(out, yamlName(t.Field(i)))
	}
	return out
}

func enumOf(f reflect.StructField) []string {
	var out []string
	for _, part := range strings.Split(f.Tag.Get("jsonschema"), ",") {
		if v, ok := strings.CutPrefix(part, "enum="); ok {
			out = append(out, v)
		}
	}
	return out
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}
