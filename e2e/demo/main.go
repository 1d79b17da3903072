// Command demo brings up two machines with two simulated GPUs each and writes a
// gpuctl.yaml for them, for a first look at gpuctl without renting anything.
//
//	go run ./demo up DIR      machines and DIR/gpuctl.yaml
//	go run ./demo summary S   say what gpuctl status -o json, read from standard input, came to in S seconds
//	go run ./demo down        take the machines away
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/template"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "up":
		err = up(ctx, args[1])
	case len(args) == 1 && args[0] == "down":
		err = down(ctx)
	case len(args) == 2 && args[0] == "summary":
		err = summary(args[1])
	default:
		err = fmt.Errorf("usage: demo up DIR | demo summary SECONDS | demo down")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// summary prints the last line of a demo. It fails when a GPU is not proven.
func summary(seconds string) error {
	var status struct {
		Nodes []struct {
			Proven      bool
			Allocatable int
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&status); err != nil {
		return err
	}
	gpus := 0
	for _, n := range status.Nodes {
		if !n.Proven {
			return fmt.Errorf("a node is not proven")
		}
		gpus += n.Allocatable
	}
	took, err := time.ParseDuration(seconds + "s")
	if err != nil {
		return err
	}
	fmt.Printf("demo: %d machines, %d GPUs proven in %s\n", len(status.Nodes), gpus, took)
	return nil
}

func options() lab.Options { return lab.Options{ID: "demo", Out: os.Stderr} }

func up(ctx context.Context, dir string) error {
	l, err := lab.Up(ctx, options())
	if err != nil {
		return err
	}
	scenario, err := json.Marshal(gpu.H100(2))
	if err != nil {
		return err
	}
	machines, err := l.Machines(ctx, machine.Spec{Name: "gpu-1", GPU: scenario}, machine.Spec{Name: "gpu-2", GPU: scenario})
	if err != nil {
		return err
	}
	set, err := l.SetFile()
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "gpuctl.yaml"), view{set, l.Key(), l.Sources(), machines})
}

func down(ctx context.Context) error {
	l, err := lab.Find(ctx, options())
	if err != nil {
		return err
	}
	return l.Down(ctx)
}

type view struct {
	Set, Key string
	Sources  map[string]string
	Machines []*machine.Machine
}

func write(path string, v view) error {
	var out bytes.Buffer
	if err := template.Must(template.New("gpuctl.yaml").Parse(text)).Execute(&out, v); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

const text = `# Machines of the demo: containers with simulated GPUs, and a mirror of what they download.
apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata:
  name: demo
spec:
  set: {{.Set}}
  ssh:
    user: ubuntu
    identityFile: {{.Key}}
  sources:
{{- range $name, $url := .Sources}}
    {{$name}}: {{$url}}
{{- end}}
  machines:
{{- range $i, $m := .Machines}}
    - name: {{$m.Name}}
      role: {{if $i}}agent{{else}}server{{end}}
      host: {{$m.IP}}
      port: {{$m.Port}}
      gpus: 2
{{- end}}
`
