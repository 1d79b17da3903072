package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gpuctl/gpuctl/internal/diag/nearest"
)

// decoder fills a struct from a YAML tree and goes on after an error, which is
// why it exists: the library's strict mode ends at the first unknown field. It
// takes scalars as the user wrote them, so that a user named 0042 stays 0042.
type decoder struct {
	problems []Problem
	// at remembers where each field stood, for checks made after decoding.
	at map[string]position
}

type position struct{ line, column int }

func newDecoder() *decoder { return &decoder{at: map[string]position{}} }

func (d *decoder) fail(n ast.Node, field, format string, args ...any) {
	p := Problem{Field: field, Message: fmt.Sprintf(format, args...)}
	if pos := positionOf(n); pos.line > 0 {
		p.Line, p.Column = pos.line, pos.column
	}
	d.problems = append(d.problems, p)
}

func positionOf(n ast.Node) position {
	if n == nil {
		return position{}
	}
	// A mapping's token is its first colon; where it begins is its first key.
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

// decode fills v (a settable value) from n.
func (d *decoder) decode(n ast.Node, v reflect.Value, field string) {
	if _, seen := d.at[field]; !seen {
		d.at[field] = positionOf(n)
	}
	switch n.(type) {
	case nil, *ast.NullNode:
		return // "user:" and "user: ~" mean not said
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fail(n, field, "anchors, aliases and tags are not part of this format")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), field)
	case reflect.Struct:
		d.decodeStruct(n, v, field)
	case reflect.Slice:
		d.decodeSlice(n, v, field)
	case reflect.Map:
		d.decodeMap(n, v, field)
	default:
		d.decodeScalar(n, v, field)
	}
}

func (d *decoder) decodeStruct(n ast.Node, v reflect.Value, field string) {
	if _, scalar := scalarText(n); scalar {
		if f, ok := shortForm(v.Type()); ok {
			d.decode(n, v.FieldByIndex(f.Index), field)
			return
		}
	}
	entries, ok := d.entries(n, field)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range entries {
		at := join(field, e.key)
		f, known := fields[e.key]
		switch {
		case !known:
			d.unknown(e, at, names(v.Type()))
		case f.Tag.Get("gpuctl") == "later" && !isNull(e.value):
			d.fail(e.node, at, "not supported yet: a later version of gpuctl acts on it")
		case isNull(e.value) && isRequired(f):
			d.at[at] = positionOf(e.node)
			d.fail(e.node, at, "is empty")
		default:
			d.at[at] = positionOf(e.node)
			d.decode(e.value, v.FieldByIndex(f.Index), at)
			d.checkEnum(e.value, v.FieldByIndex(f.Index), f, at)
		}
	}
	d.checkRequired(n, v, field)
}

func (d *decoder) unknown(e entry, at string, known []string) {
	if near := nearest.Of(e.key, known); near != "" {
		d.fail(e.node, at, "unknown field; did you mean %q?", near)
		return
	}
	d.fail(e.node, at, "unknown field; known are %s", strings.Join(known, ", "))
}

func (d *decoder) decodeSlice(n ast.Node, v reflect.Value, field string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, field, "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", field, i)
		if isNull(item) {
			d.fail(item, at, "is empty")
			continue
		}
		d.decode(item, v.Index(i), at)
	}
}

func (d *decoder) decodeMap(n ast.Node, v reflect.Value, field string) {
	entries, ok := d.entries(n, field)
	if !ok {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(entries)))
	for _, e := range entries {
		at := join(field, e.key)
		if v.Type().Elem().Kind() == reflect.Interface {
			v.SetMapIndex(reflect.ValueOf(e.key), reflect.ValueOf(&[]any{d.free(e.value, at)}[0]).Elem())
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.decode(e.value, item, at)
		v.SetMapIndex(reflect.ValueOf(e.key), item)
	}
}

func (d *decoder) decodeScalar(n ast.Node, v reflect.Value, field string) {
	text, ok := scalarText(n)
	if !ok {
		d.fail(n, field, "must be a single value")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int:
		// Without a leading zero: 022 would be 18 to one reader and 22 to another.
		i, err := strconv.ParseInt(text, 10, 32)
		if err != nil || strconv.FormatInt(i, 10) != text {
			d.fail(n, field, "%q is not a number: write it in digits, without a leading zero", text)
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f < 0 || f > 1e6 {
			d.fail(n, field, "%q is not a positive number", text)
			return
		}
		v.SetFloat(f)
	case reflect.Bool:
		if text != "true" && text != "false" {
			d.fail(n, field, "%q is neither true nor false", text)
			return
		}
		v.SetBool(text == "true")
	}
}

func (d *decoder) checkRequired(n ast.Node, v reflect.Value, field string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		at := join(field, yamlName(f))
		if _, given := d.at[at]; !given && isRequired(f) {
			d.fail(n, at, "is missing")
		}
	}
}

// shortForm is the field whose value alone may stand for the whole struct.
func shortForm(t reflect.Type) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("gpuctl") == "short" {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

func isRequired(f reflect.StructField) bool {
	return strings.HasPrefix(f.Tag.Get("jsonschema"), "required")
}

// checkEnum holds a string, or every string of a list, to the enum= values of its tag.
func (d *decoder) checkEnum(n ast.Node, v reflect.Value, f reflect.StructField, field string) {
	allowed := enumOf(f)
	if len(allowed) == 0 || isNull(n) {
		return
	}
	if v.Kind() == reflect.String {
		d.oneOf(n, v.String(), allowed, field)
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	for i := 0; ok && i < len(seq.Values); i++ {
		d.oneOf(seq.Values[i], v.Index(i).String(), allowed, fmt.Sprintf("%s[%d]", field, i))
	}
}

func (d *decoder) oneOf(n ast.Node, got string, allowed []string, field string) {
	for _, a := range allowed {
		if a == got {
			return
		}
	}
	if len(allowed) == 1 {
		d.fail(n, field, "must be %q", allowed[0])
		return
	}
	hint := ""
	if near := nearest.Of(got, allowed); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	d.fail(n, field, "%q is not one of %s%s", got, strings.Join(allowed, ", "), hint)
}
