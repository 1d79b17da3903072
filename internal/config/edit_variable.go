package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// SetVariable returns a gpuctl.yaml in which a variable of machinesFrom.terraform
// is a number. Everything else stays to the byte.
func SetVariable(data []byte, file, name string, n int) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	if old.Spec.MachinesFrom == nil || old.Spec.MachinesFrom.Terraform == nil {
		return nil, fmt.Errorf("%s: the machines do not come from Terraform", file)
	}
	byHand := fmt.Errorf("%s is written in a way that cannot be changed safely: set %s to %d by hand", file, join(variablesField, name), n)
	out, err := withVariable(data, name, strconv.Itoa(n))
	if err != nil {
		return nil, errors.Join(byHand, err)
	}
	got, err := Parse(out, file)
	if err != nil {
		return nil, errors.Join(byHand, err)
	}
	want := map[string]any{}
	for k, v := range old.Spec.MachinesFrom.Terraform.Variables {
		want[k] = v
	}
	want[name] = int64(n)
	old.Spec.MachinesFrom.Terraform.Variables = want
	if fmt.Sprint(got.Spec.MachinesFrom.Terraform.Variables[name]) != strconv.Itoa(n) {
		return nil, byHand
	}
	want[name] = got.Spec.MachinesFrom.Terraform.Variables[name]
	if !reflect.DeepEqual(got, old) {
		return nil, byHand
	}
	return out, nil
}

// withVariable changes the text: the variable's value, or a new variable at the
// head of those there are, or variables after the directory.
func withVariable(data []byte, name, value string) ([]byte, error) {
	t, body, err := newText(data)
	if err != nil {
		return nil, err
	}
	block := child(child(child(body, "spec"), "machinesFrom"), "terraform")
	variables := child(block, "variables")
	if have := child(variables, name); have != nil {
		if _, plain := scalarText(have); !plain {
			return nil, errors.New("it is no single value now")
		}
		from, to := t.scalar(have)
		t.splice(from, to, value)
		return t.bytes(), nil
	}
	if of := pairs(variables); len(of) > 0 {
		at := of[0].Key.GetToken().Position
		sep := "\n" + strings.Repeat(" ", at.Column-1)
		if isFlow(variables) {
			sep = ", "
		}
		start := t.offset(at.Line, at.Column)
		t.splice(start, start, name+": "+value+sep)
		return t.bytes(), nil
	}
	dir := child(block, "dir")
	if dir == nil || variables != nil {
		return nil, errors.New("there is no place for it")
	}
	line := "variables: {" + name + ": " + value + "}"
	_, at := t.scalar(dir)
	if isFlow(block) {
		t.splice(at, at, ", "+line)
		return t.bytes(), nil
	}
	line = strings.Repeat(" ", t.keyColumn(block)) + line + "\n"
	if at = t.lineEnd(at); at == len(t.data) && !strings.HasSuffix(string(t.data), "\n") {
		line = "\n" + line
	}
	t.splice(at, at, line)
	return t.bytes(), nil
}

func isFlow(n ast.Node) bool {
	m, ok := n.(*ast.MappingNode)
	return ok && m.IsFlowStyle
}
