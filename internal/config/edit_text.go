package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// text is a gpuctl.yaml as its user wrote it, with the places of its machines.
// Changes are splices of the text: a printed syntax tree would lose the user's
// spelling.
type text struct {
	data []byte
	// lines are the offsets at which lines start.
	lines   []int
	list    *ast.SequenceNode
	splices []splice
	// crlf says that the file has the line breaks of Windows; data has plain ones.
	crlf bool
}

// splice puts text in the place of data[from:to].
type splice struct {
	from, to int
	with     string
}

// newText reads the text and where its lines start; body is the document.
func newText(data []byte) (t *text, body ast.Node, err error) {
	t = &text{data: data, lines: []int{0}, crlf: bytes.Contains(data, []byte("\r\n"))}
	if t.crlf {
		t.data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	if bytes.IndexByte(t.data, '\r') >= 0 {
		return nil, nil, errors.New("the file has line breaks of two kinds: make them one, or change it by hand")
	}
	body, problem := document(t.data)
	if problem != nil {
		return nil, nil, fmt.Errorf("line %d: %s", problem.Line, problem.Message)
	}
	for i, b := range t.data {
		if b == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t, body, nil
}

// openText finds the list of machines.
func openText(data []byte) (*text, error) {
	t, body, err := newText(data)
	if err != nil {
		return nil, err
	}
	list, ok := child(child(body, "spec"), "machines").(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, ErrMachinesElsewhere
	}
	for i, v := range list.Values {
		m, isMap := v.(*ast.MappingNode)
		if (list.IsFlowStyle && (!isMap || m.End == nil)) || i >= len(list.Entries) && !list.IsFlowStyle {
			return nil, errors.New("spec.machines is written in a way that cannot be changed safely: change it by hand")
		}
	}
	t.list = list
	return t, nil
}

// bytes is the text with all splices made. Where two overlap the later one
// begins where the earlier ends: neighbours that are cut out share a comma.
func (t *text) bytes() []byte {
	slices.SortStableFunc(t.splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range t.splices {
		out = append(append(out, t.data[at:max(at, s.from)]...), s.with...)
		at = max(at, s.to)
	}
	out = append(out, t.data[at:]...)
	if t.crlf {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out
}

// child returns the value of a key, nil where there is none.
func child(n ast.Node, key string) ast.Node {
	for _, v := range pairs(n) {
		if k, ok := keyText(v.Key); ok && k == key {
			return v.Value
		}
	}
	return nil
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// offset turns a position of the parser (characters, from 1) into one of bytes.
func (t *text) offset(line, column int) int {
	at := t.lines[line-1]
	for range column - 1 {
		at += len(string([]rune(string(t.data[at:min(at+4, len(t.data))]))[:1]))
	}
	return at
}

func (t *text) splice(from, to int, with string) {
	t.splices = append(t.splices, splice{from, to, with})
}

// add writes machines after the last one, in the style of that one.
func (t *text) add(machines []Machine) {
	last := len(t.list.Values) - 1
	if t.list.IsFlowStyle {
		end := t.list.Values[last].(*ast.MappingNode).End.Position
		at := t.offset(end.Line, end.Column) + 1
		for _, m := range machines {
			t.splice(at, at, ", "+inline(m))
		}
		return
	}
	from, to := t.block(last)
	indent := string(t.data[from : from+t.dash(last)])
	var b strings.Builder
	if to > 0 && t.data[to-1] != '\n' {
		b.WriteByte('\n')
	}
	item, flow := t.list.Values[last].(*ast.MappingNode)
	flow = flow && item.IsFlowStyle
	for _, m := range machines {
		if flow {
			b.WriteString(indent + "- " + inline(m) + "\n")
			continue
		}
		lead := indent + "- "
		for _, f := range machineFields(m) {
			b.WriteString(lead + f.key + ": " + f.value + "\n")
			lead = indent + "  "
		}
	}
	t.splice(to, to, b.String())
}

// remove cuts machines out, given by their places in the list.
func (t *text) remove(places []int) {
	for _, i := range places {
		if !t.list.IsFlowStyle {
			from, to := t.block(i)
			t.splice(from, to, "")
			continue
		}
		from, to := t.flow(i)
		if i+1 < len(t.list.Values) {
			to, _ = t.flow(i + 1)
		} else {
			// The comma before the first of the last ones goes, not one behind.
			kept := i - 1
			for slices.Contains(places, kept) {
				kept--
			}
			if kept >= 0 {
				_, from = t.flow(kept)
			}
		}
		t.splice(from, to, "")
	}
}

// set gives fields of a machine other values, or adds them after its host.
func (t *text) set(i int, fields []field) {
	item := t.list.Values[i]
	host := child(item, "host")
	var added strings.Builder
	flow := t.list.IsFlowStyle
	if m, ok := item.(*ast.MappingNode); ok {
		flow = flow || m.IsFlowStyle
	}
	for _, f := range fields {
		if v := child(item, f.key); v != nil {
			from, to := t.scalar(v)
			t.splice(from, to, f.value)
		} else if flow {
			added.WriteString(", " + f.key + ": " + f.value)
		} else {
			added.WriteString(strings.Repeat(" ", t.keyColumn(item)) + f.key + ": " + f.value + "\n")
		}
	}
	if added.Len() > 0 {
		_, at := t.scalar(host)
		if !flow {
			at = t.lineEnd(at)
		}
		t.splice(at, at, added.String())
	}
}

// keyColumn is how far the keys of a machine are indented.
func (t *text) keyColumn(item ast.Node) int {
	return pairs(item)[0].Key.GetToken().Position.Column - 1
}

// scalar is the extent of a value on its line, quotes included. Values that
// reach this are hosts, users and ports: they hold no space, comma or quote.
func (t *text) scalar(n ast.Node) (from, to int) {
	p := n.GetToken().Position
	from = t.offset(p.Line, p.Column)
	if q := t.data[from]; q == '"' || q == '\'' {
		return from, from + 2 + bytes.IndexByte(t.data[from+1:], q)
	}
	to = from
	for to < len(t.data) && !strings.ContainsRune(" \t\r\n,}#", rune(t.data[to])) {
		to++
	}
	return from, to
}

// lineEnd is the offset at which the next line starts.
func (t *text) lineEnd(at int) int {
	if i := bytes.IndexByte(t.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(t.data)
}

// dash is how far the dash of an entry is indented.
func (t *text) dash(i int) int { return t.list.Entries[i].Start.Position.Column - 1 }

// block is the extent of an entry of a block list: its lines and those that are
// indented deeper, comments too, but not blank lines after it.
func (t *text) block(i int) (from, to int) {
	from = t.lines[t.list.Entries[i].Start.Position.Line-1]
	to = t.lineEnd(from)
	for at := to; at < len(t.data); {
		end := t.lineEnd(at)
		line := strings.TrimRight(string(t.data[at:end]), " \r\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if line != "" && indent <= t.dash(i) {
			break
		}
		if line != "" {
			to = end
		}
		at = end
	}
	return from, to
}

// flow is the extent of an entry of a list in brackets.
func (t *text) flow(i int) (from, to int) {
	m := t.list.Values[i].(*ast.MappingNode)
	from = t.offset(m.Start.Position.Line, m.Start.Position.Column)
	return from, t.offset(m.End.Position.Line, m.End.Position.Column) + 1
}
