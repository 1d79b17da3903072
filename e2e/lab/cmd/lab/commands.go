package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/dockerd"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

func up(ctx context.Context, args []string, out io.Writer) error {
	set, o := flags("up")
	count := set.Int("machines", 0, "start machines m1 ... mN")
	model := set.String("gpu", "", "their GPUs, MODEL:COUNT; h100, a100, t4, hgx:8, nodriver, nouveau")
	if err := set.Parse(args); err != nil {
		return err
	}
	o.Out = out
	l, err := lab.Up(ctx, *o)
	if err != nil {
		return err
	}
	scenario, err := parseGPU(*model)
	if err != nil {
		return err
	}
	var specs []machine.Spec
	for i := range *count {
		specs = append(specs, machine.Spec{Name: "m" + strconv.Itoa(i+1), GPU: scenario})
	}
	if err := start(ctx, l, out, specs...); err != nil {
		return err
	}
	return show(ctx, l, out)
}

func start(ctx context.Context, l *lab.Lab, out io.Writer, specs ...machine.Spec) error {
	if len(specs) == 0 {
		return nil
	}
	began := time.Now()
	if _, err := l.Machines(ctx, specs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d machines in %s\n", len(specs), time.Since(began).Round(10*time.Millisecond))
	return nil
}

func down(ctx context.Context, args []string, out io.Writer) error {
	set, o := flags("down")
	engine := set.Bool("engine", false, "stop the lab's own Docker engine too")
	if err := set.Parse(args); err != nil {
		return err
	}
	l, err := lab.Find(ctx, *o)
	if err != nil {
		return err
	}
	if err := l.Down(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "lab %s is down\n", l.ID)
	if *engine && l.Engine.Own {
		return dockerd.Stop(ctx, l.EngineDir())
	}
	return nil
}

func status(ctx context.Context, args []string, out io.Writer) error {
	set, o := flags("status")
	if err := set.Parse(args); err != nil {
		return err
	}
	l, err := lab.Find(ctx, *o)
	if err != nil {
		return err
	}
	return show(ctx, l, out)
}

func show(ctx context.Context, l *lab.Lab, out io.Writer) error {
	machines, err := l.All(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "key      %s\n", l.Key())
	if l.Engine.Host != "" {
		fmt.Fprintf(out, "docker   DOCKER_HOST=%s\n", l.Engine.Host)
	}
	sources := l.Sources()
	for _, name := range []string{"k3s", "packages", "charts", "images"} {
		fmt.Fprintf(out, "source   %-8s %s\n", name, sources[name])
	}
	for _, m := range machines {
		fmt.Fprintf(out, "machine  %-8s %s port %d reach %s\n", m.Name, strings.Join(m.IPs, ","), m.Port, m.Reach)
	}
	return nil
}

func machineCommand(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("machine: want add|remove|reboot|kill|start and a name")
	}
	verb, name := args[0], args[1]
	set, o := flags("machine " + verb)
	var spec machine.Spec
	model := machineFlags(set, &spec)
	if err := set.Parse(args[2:]); err != nil {
		return err
	}
	spec.Name = name
	if verb == "add" {
		o.Out = out
		l, err := lab.Up(ctx, *o)
		if err != nil {
			return err
		}
		if spec.GPU, err = parseGPU(*model); err != nil {
			return err
		}
		return start(ctx, l, out, spec)
	}
	l, err := lab.Find(ctx, *o)
	if err != nil {
		return err
	}
	m, err := l.Get(ctx, name)
	if err != nil {
		return err
	}
	switch verb {
	case "remove":
		return m.Remove(ctx)
	case "reboot":
		return m.Reboot(ctx)
	case "kill":
		return m.Kill(ctx)
	case "start":
		if err := m.Start(ctx); err != nil {
			return err
		}
		return m.Wait(ctx)
	}
	return fmt.Errorf("machine: unknown verb %q", verb)
}

func machineFlags(set *flag.FlagSet, spec *machine.Spec) (gpus *string) {
	list := func(into *[]string) func(string) error {
		return func(s string) error { *into = append(*into, s); return nil }
	}
	set.StringVar(&spec.Shell, "shell", "", "login shell")
	set.IntVar(&spec.SSHPort, "port", 0, "SSH port")
	set.Func("reach", "what the host may reach: all, ssh, none", func(s string) error { spec.Reach = machine.Reach(s); return nil })
	set.BoolVar(&spec.Unprivileged, "unprivileged", false, "a mere container")
	set.Func("network", "network to attach to, main or any name; repeatable", list(&spec.Networks))
	set.Func("sshd", "line for sshd_config; repeatable", list(&spec.SSHD))
	set.Func("volume", "path on a disk of its own; repeatable", list(&spec.Volumes))
	return set.String("gpu", "", "GPUs, MODEL:COUNT; h100, a100, t4, hgx:8, nodriver, nouveau, or a file with a scenario")
}

// parseGPU reads MODEL:COUNT or the name of a scenario file.
func parseGPU(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	model, number, ok := strings.Cut(text, ":")
	if !ok {
		return os.ReadFile(text)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("GPUs %q: want MODEL:COUNT", text)
	}
	models := map[string]func(int) gpu.Scenario{
		"h100": gpu.H100, "a100": gpu.A100, "t4": gpu.T4, "hgx": func(int) gpu.Scenario { return gpu.HGX() },
		"nodriver": gpu.NoDriver, "nouveau": gpu.Nouveau,
	}
	scenario, ok := models[model]
	if !ok {
		return nil, fmt.Errorf("GPU model %q: want h100, a100, t4, hgx, nodriver or nouveau", model)
	}
	return json.Marshal(scenario(n))
}

func shell(ctx context.Context, args []string) error {
	set, o := flags("shell")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("shell: want [USER@]NAME")
	}
	user, name, ok := strings.Cut(set.Arg(0), "@")
	if !ok {
		user, name = "ubuntu", set.Arg(0)
	}
	l, err := lab.Find(ctx, *o)
	if err != nil {
		return err
	}
	m, err := l.Get(ctx, name)
	if err != nil {
		return err
	}
	argv := append(l.SSH(user, m), set.Args()[1:]...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
