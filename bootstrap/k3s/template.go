package k3s

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Names of a user's containerd templates: the first is for configuration
// version 3 (containerd 2), the second for version 2. With containerd 2 the
// first wins, and the second alone makes k3s render version 2
// (k3s-io/k3s#11626).
const (
	templateV3 = "config-v3.toml.tmpl"
	templateV2 = "config.toml.tmpl"
)

// Generation is the configuration version that templates make k3s write for
// containerd 2: 2 or 3. Templates are paths in any data directory.
func Generation(templates []string) int {
	have := map[string]bool{}
	for _, t := range templates {
		have[path.Base(t)] = true
	}
	if have[templateV2] && !have[templateV3] {
		return 2
	}
	return 3
}

// ReadTemplates brings back a user's containerd templates, in one command.
// They may hold registry passwords: keep them in memory.
func ReadTemplates(ctx context.Context, on remote.Runner, paths []string) (map[string][]byte, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	mark := "gpuctl-" + randomHex(8)
	res, err := on.Run(ctx, remote.Cmd{
		Name: "read containerd templates", Sudo: true, Timeout: 20 * time.Second, Args: append([]string{mark}, paths...),
		Script: "m=$1\nshift\nfor f; do\n  printf '%s %s\\n' \"$m\" \"$f\"\n  cat \"$f\"\ndone\n",
	})
	if err != nil {
		return nil, fmt.Errorf("reading containerd templates: %w", err)
	}
	out := map[string][]byte{}
	for _, chunk := range strings.Split(string(res.Stdout), mark+" ")[1:] {
		name, body, _ := strings.Cut(chunk, "\n")
		out[name] = []byte(body)
	}
	return out, nil
}

// TemplateFindings says what is wrong with a machine's containerd templates,
// by path. A template that needs nothing gives no finding.
func TemplateFindings(machine string, templates map[string][]byte) []diag.Finding {
	var out []diag.Finding
	v3 := false
	for p := range templates {
		v3 = v3 || path.Base(p) == templateV3
	}
	for _, p := range sortedKeys(templates) {
		text := string(templates[p])
		switch name := path.Base(p); {
		case name == templateV2 && v3:
			out = append(out, diag.Found("containerd-template-dead", machine, p+" is not used: "+templateV3+" is there"))
		case byToolkit(text):
			out = append(out, diag.Found("containerd-template-by-toolkit", machine, p+" is a finished configuration without CNI settings: the next start of k3s uses it"))
		case !baseTemplate(text):
			out = append(out, diag.Found("containerd-template-frozen", machine, p+" does not include k3s's base template"))
		}
	}
	return out
}

func baseTemplate(text string) bool {
	return regexp.MustCompile(`\{\{-?\s*template\s+"base"`).MatchString(text)
}

// byToolkit recognises what the toolkit container writes when CONTAINERD_CONFIG
// points at the template (NVIDIA/gpu-operator#992).
func byToolkit(text string) bool {
	return !strings.Contains(text, "{{") &&
		regexp.MustCompile(`runtimes\.["']?nvidia`).MatchString(text) &&
		!regexp.MustCompile(`\.cni["']?\]`).MatchString(text)
}
