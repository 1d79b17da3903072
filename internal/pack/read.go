package pack

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxReplicas bounds one workload; more is a mistake, not a plan.
const maxReplicas = 100000

// Error is what is wrong with a file of workloads, all at once, with places.
type Error struct{ Problems []string }

func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

// file is the format: a list under workloads.
type file struct {
	Workloads []entry `yaml:"workloads"`
}

type entry struct {
	Name     string `yaml:"name"`
	Memory   any    `yaml:"memory"`
	Compute  any    `yaml:"compute"`
	Replicas *int   `yaml:"replicas"`
}

// Read reads a file of workloads; name stands in errors. Memory is a number with
// MiB or GiB, compute a share (0.25) or a percentage (25%), replicas 1 where it is
// left out. The error is an *Error.
func Read(data []byte, name string) ([]Workload, error) {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, &Error{[]string{name + ": " + firstLine(err)}}
	}
	var f file
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return nil, &Error{[]string{name + ": " + firstLine(err)}}
	}
	r := reader{name: name, tree: tree}
	if len(f.Workloads) == 0 {
		r.fail("$", "workloads is missing: give a list of {name, memory, compute, replicas}")
	}
	var out []Workload
	seen := map[string]bool{}
	for i, e := range f.Workloads {
		at := fmt.Sprintf("$.workloads[%d]", i)
		w := r.workload(e, at)
		if seen[w.Name] && w.Name != "" {
			r.fail(at+".name", "%q stands here twice", w.Name)
		}
		seen[w.Name] = true
		out = append(out, w)
	}
	if len(r.problems) > 0 {
		return nil, &Error{r.problems}
	}
	return out, nil
}

// firstLine is what the library says, without its picture of the file.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

type reader struct {
	name     string
	tree     *ast.File
	problems []string
}

func (r *reader) fail(path, format string, args ...any) {
	place := ""
	for p := path; place == "" && p != ""; p = parent(p) {
		place = r.place(p)
	}
	field := strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".")
	if field != "" {
		field += ": "
	}
	r.problems = append(r.problems, r.name+":"+place+" "+field+fmt.Sprintf(format, args...))
}

func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

func (r *reader) place(path string) string {
	p, err := yaml.PathString(path)
	if err != nil {
		return ""
	}
	node, err := p.FilterFile(r.tree)
	if err != nil || node == nil || node.GetToken() == nil {
		return ""
	}
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	at := node.GetToken().Position
	return fmt.Sprintf("%d:%d:", at.Line, at.Column)
}

func (r *reader) workload(e entry, at string) Workload {
	w := Workload{Name: e.Name, Replicas: 1}
	if e.Name == "" {
		r.fail(at, "name is missing")
	}
	var why string
	if w.MemoryMiB, why = memory(e.Memory); why != "" {
		r.fail(at+".memory", "%s", why)
	}
	if w.Compute, why = share(e.Compute); why != "" {
		r.fail(at+".compute", "%s", why)
	}
	if e.Replicas != nil {
		w.Replicas = *e.Replicas
	}
	if w.Replicas < 1 || w.Replicas > maxReplicas {
		r.fail(at+".replicas", "%d is no number of replicas; 1 to %d are", w.Replicas, maxReplicas)
	}
	return w
}

var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(MiB|GiB)$`)

// memory reads "6GiB" or "6144MiB".
func memory(v any) (int64, string) {
	if v == nil {
		return 0, "is missing: 6GiB, or 6144MiB"
	}
	m := quantity.FindStringSubmatch(strings.TrimSpace(fmt.Sprint(v)))
	if m == nil {
		return 0, fmt.Sprintf("%q is no amount of memory: write 6GiB or 6144MiB", fmt.Sprint(v))
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if m[2] == "GiB" {
		n *= 1024
	}
	if err != nil || n < 1 || n > 1<<24 {
		return 0, fmt.Sprintf("%q is no amount that a GPU has", fmt.Sprint(v))
	}
	return int64(math.Ceil(n)), ""
}

// share reads 0.25 or "25%"; nothing is not said.
func share(v any) (float64, string) {
	if v == nil {
		return 0, ""
	}
	text, percent := strings.CutSuffix(strings.TrimSpace(fmt.Sprint(v)), "%")
	n, err := strconv.ParseFloat(text, 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return 0, fmt.Sprintf("%q is no share of a card: write 0.25 or 25%%", fmt.Sprint(v))
	}
	return n, ""
}
