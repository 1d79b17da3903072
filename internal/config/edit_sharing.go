package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// SetSharing returns a gpuctl.yaml in which a group shares its GPUs this way; the
// zero Spec takes the group's sharing out. Everything else stays to the byte.
func SetSharing(data []byte, file, group string, spec sharing.Spec) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(old.Spec.Groups, func(g Group) bool { return g.Name == group })
	if i < 0 {
		var names []string
		for _, g := range old.Spec.Groups {
			names = append(names, g.Name)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: there is no group: give spec.groups a {name: %s} and the machines a group: %s", file, group, group)
		}
		return nil, fmt.Errorf("%s: there is no group %q; there are %s", file, group, strings.Join(names, ", "))
	}
	if old.Spec.Groups[i].Spec() == spec {
		return data, nil
	}
	byHand := fmt.Errorf("%s is written in a way that cannot be changed safely: change spec.groups[%d].sharing by hand", file, i)
	out, err := cutSharing(data, i)
	if err == nil && spec.Kind != sharing.Whole {
		out, err = addSharing(out, i, sharingYAML(spec))
	}
	if err != nil {
		return nil, errors.Join(byHand, err)
	}
	got, err := Parse(out, file)
	if err != nil {
		return nil, err
	}
	if got.Spec.Groups[i].Spec() != spec {
		return nil, byHand
	}
	got.Spec.Groups[i].Sharing, old.Spec.Groups[i].Sharing = nil, nil
	if !reflect.DeepEqual(got, old) {
		return nil, byHand
	}
	return out, nil
}

// sharingYAML is a spec as a user would write it, on one line.
func sharingYAML(s sharing.Spec) string {
	if s.Kind == sharing.MIG {
		return migYAML(s)
	}
	kind := "timeSlicing"
	if s.Kind == sharing.MPS {
		kind = "mps"
	}
	if !s.Rename && !s.OnlyOne {
		return fmt.Sprintf("{%s: %d}", kind, s.Replicas)
	}
	text := fmt.Sprintf("{%s: {replicas: %d", kind, s.Replicas)
	if s.Rename {
		text += ", renameByDefault: true"
	}
	if s.OnlyOne {
		text += ", failRequestsGreaterThanOne: true"
	}
	return text + "}}"
}

// migYAML leaves the strategy out where it is the one that the layout has anyway.
func migYAML(s sharing.Spec) string {
	plain, _ := SlicesOf(s.Layout, "")
	text := "profile: " + s.Layout
	slices, counted := sharing.ParseSlices(s.Layout)
	if counted {
		var parts []string
		for _, p := range slices {
			parts = append(parts, fmt.Sprintf("%s: %d", p.Profile, p.Count))
		}
		text = "slices: {" + strings.Join(parts, ", ") + "}"
	}
	switch {
	case plain.Strategy != s.Strategy:
		return "{mig: {" + text + ", strategy: " + s.Strategy + "}}"
	case !counted:
		return "{mig: " + s.Layout + "}"
	}
	return "{mig: {" + text + "}}"
}

// groupText is the text of a gpuctl.yaml and the entry of one group in it.
func groupText(data []byte, i int) (t *text, group ast.Node, flow bool, err error) {
	t, body, err := newText(data)
	if err != nil {
		return nil, nil, false, err
	}
	list, ok := child(child(body, "spec"), "groups").(*ast.SequenceNode)
	if !ok || i >= len(list.Values) {
		return nil, nil, false, errors.New("spec.groups is no list")
	}
	m, isMap := list.Values[i].(*ast.MappingNode)
	return t, list.Values[i], list.IsFlowStyle || isMap && m.IsFlowStyle, nil
}

func cutSharing(data []byte, i int) ([]byte, error) {
	t, group, flow, err := groupText(data, i)
	if err != nil {
		return nil, err
	}
	for _, pair := range pairs(group) {
		if key, ok := keyText(pair.Key); !ok || key != "sharing" {
			continue
		}
		p := pair.Key.GetToken().Position
		from := t.offset(p.Line, p.Column)
		if flow {
			return t.cutFlow(from, pair.Value)
		}
		return t.cutBlock(from, p.Line, p.Column-1)
	}
	return data, nil
}

// cutFlow takes a key and its value out of {...}, with the comma before it.
func (t *text) cutFlow(from int, value ast.Node) ([]byte, error) {
	_, to := t.scalar(value)
	if m, ok := value.(*ast.MappingNode); ok && m.End != nil {
		to = t.offset(m.End.Position.Line, m.End.Position.Column) + 1
	}
	before := strings.TrimRight(string(t.data[:from]), " \n")
	if !strings.HasSuffix(before, ",") {
		return nil, errors.New("sharing is the group's first field")
	}
	t.splice(len(before)-1, to, "")
	return t.bytes(), nil
}

// cutBlock takes the line of a key and the lines that are indented deeper out.
func (t *text) cutBlock(from, line, column int) ([]byte, error) {
	start := t.lines[line-1]
	if strings.TrimSpace(string(t.data[start:from])) != "" {
		return nil, errors.New("sharing is the group's first field")
	}
	to := t.lineEnd(from)
	for to < len(t.data) {
		end := t.lineEnd(to)
		text := strings.TrimRight(string(t.data[to:end]), " \n")
		if text == "" || len(text)-len(strings.TrimLeft(text, " ")) <= column {
			break
		}
		to = end
	}
	t.splice(start, to, "")
	return t.bytes(), nil
}

// addSharing puts sharing behind the group's name.
func addSharing(data []byte, i int, value string) ([]byte, error) {
	t, group, flow, err := groupText(data, i)
	if err != nil {
		return nil, err
	}
	name := child(group, "name")
	if name == nil {
		return nil, errors.New("the group has no name")
	}
	_, at := t.scalar(name)
	if flow {
		t.splice(at, at, ", sharing: "+value)
		return t.bytes(), nil
	}
	at = t.lineEnd(at)
	line := strings.Repeat(" ", t.keyColumn(group)) + "sharing: " + value + "\n"
	if at == len(t.data) && !strings.HasSuffix(string(t.data), "\n") {
		line = "\n" + line
	}
	t.splice(at, at, line)
	return t.bytes(), nil
}
