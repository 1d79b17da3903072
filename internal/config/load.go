package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxSize bounds a file in bytes; a real one has a few kilobytes.
const maxSize = 1 << 20

// maxDepth bounds how deep values nest.
const maxDepth = 64

// Load reads and checks the file at path. Relative paths in it start at its
// directory and ~ is the home directory. A wrong file is an *InvalidError; a
// missing one wraps fs.ErrNotExist. Programs started from now on do not inherit
// the descriptors of secrets.
func Load(path string) (Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	if info.Size() > maxSize {
		return Config{}, fmt.Errorf("reading the configuration: %s has %d bytes; more than %d are not read", path, info.Size(), maxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := Parse(data, path)
	if err != nil {
		return Config{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // only ~ needs it, and then the path fails where it is opened
	}
	c.resolvePaths(filepath.Dir(path), home)
	c.eachSecret(func(s Secret) {
		if s.Descriptor != 0 {
			keep(s.Descriptor)
		}
	})
	return c, nil
}

// Parse checks data and fills in defaults. Name stands in errors. Paths stay as
// written. Errors: *InvalidError.
func Parse(data []byte, name string) (Config, error) {
	var c Config
	invalid := &InvalidError{File: name}
	body, problem := document(data)
	if problem != nil {
		invalid.Problems = []Problem{*problem}
		return Config{}, invalid
	}
	d := newDecoder()
	d.decode(body, reflect.ValueOf(&c).Elem(), "")
	c.setDefaults()
	c.check(d)
	if len(d.problems) > 0 {
		invalid.Problems = d.problems
		invalid.sort()
		return Config{}, invalid
	}
	return c, nil
}

// document parses YAML syntax and returns the one document's body.
func document(data []byte) (ast.Node, *Problem) {
	if len(data) > maxSize {
		return nil, &Problem{Message: fmt.Sprintf("more than %d bytes", maxSize)}
	}
	if depth(data) > maxDepth {
		return nil, &Problem{Message: fmt.Sprintf("values nest deeper than %d", maxDepth)}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, &Problem{Message: "the file is empty; gpuctl bootstrap user@host writes one"}
	case 1:
		return bodies[0], nil
	}
	pos := positionOf(bodies[1])
	return nil, &Problem{Line: pos.line, Column: pos.column, Message: "a second YAML document; the file holds one cluster"}
}

// depth is an upper bound of how deep flow collections nest; the parser recurses
// on them. Indented blocks are bounded by the length of a line.
func depth(data []byte) int {
	level, deepest := 0, 0
	for _, b := range data {
		switch b {
		case '[', '{':
			level++
			deepest = max(deepest, level)
		case ']', '}':
			level = max(level-1, 0)
		}
	}
	return deepest
}

func syntaxProblem(err error) *Problem {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
		pos := y.GetToken().Position
		return &Problem{Line: pos.Line, Column: pos.Column, Message: "not YAML: " + y.GetMessage()}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &Problem{Message: "not YAML: " + first}
}

func (c *Config) resolvePaths(dir, home string) {
	fix := func(p *string) {
		switch {
		case *p == "" || filepath.IsAbs(*p):
		case home != "" && (*p == "~" || strings.HasPrefix(*p, "~/")):
			*p = filepath.Join(home, (*p)[1:])
		default:
			*p = filepath.Join(dir, *p)
		}
	}
	s := &c.Spec
	fix(&s.SSH.IdentityFile)
	if s.SSH.SudoPassword != nil {
		fix(&s.SSH.SudoPassword.File)
	}
	if e := s.Kubernetes.Existing; e != nil {
		fix(&e.Kubeconfig)
		if e.Token != nil {
			fix(&e.Token.File)
		}
	}
	for i := range s.Machines {
		fix(&s.Machines[i].IdentityFile)
	}
	if s.MachinesFrom != nil && s.MachinesFrom.Terraform != nil {
		s.MachinesFrom.Terraform.resolvePaths(fix)
	}
	for _, p := range s.secrets() {
		if *p.secret != nil {
			fix(&(*p.secret).File)
		}
	}
	for _, src := range s.Sources.all() {
		fix(&src.CAFile)
	}
	fix(&s.Sources.Bundle)
	_ = s.mapReferences(func(r Secret, _ string) (any, error) {
		fix(&r.File)
		return r.written(), nil
	}) // it never fails
	if strings.ContainsAny(s.Set, `/\`) || strings.HasSuffix(s.Set, ".yaml") {
		fix(&s.Set)
	}
}
