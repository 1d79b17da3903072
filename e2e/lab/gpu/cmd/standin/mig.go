package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu/smi"
)

const (
	configLabel = "nvidia.com/mig.config"
	stateLabel  = "nvidia.com/mig.config.state"
	// off is the layout of a GPU whose MIG mode is off, see boot.CutMIG.
	off    = "off"
	paused = "paused-for-mig-change"
)

// operands are what holds GPUs of a node; they pause by their deploy labels, as
// NVIDIA's MIG manager makes them (mig-parted, deployments/container). The
// validator stays, and is made to run once more afterwards.
func operands() []string {
	return []string{"device-plugin", "gpu-feature-discovery", "dcgm-exporter"}
}

const validator = "nvidia-operator-validator"

// entry is one of a configuration of mig-parted, version v1.
type entry struct {
	Filter  any            `json:"device-filter"`
	Devices any            `json:"devices"`
	Enabled bool           `json:"mig-enabled"`
	Slices  map[string]int `json:"mig-devices"`
}

// manageMIG stands in for NVIDIA's MIG manager: it reads the node's label and the
// operator's own list of configurations, and has the machine cut its GPUs.
func manageMIG(node string) error {
	if node == "" {
		return errors.New("NODE_NAME is not set")
	}
	failed := ""
	for ; ; time.Sleep(2 * time.Second) {
		labels, err := labelsOf(node)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		config := labels[configLabel]
		if config == "" || failed == config && labels[stateLabel] == "failed" {
			continue
		}
		failed = ""
		state, err := settle(node, config, labels)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", config, err)
			failed, state = config, "failed"
		}
		if state != labels[stateLabel] {
			if err := setLabels(node, map[string]string{stateLabel: state}); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}

// settle makes the machine's slices those of a configuration and says what state that is.
func settle(node, config string, labels map[string]string) (string, error) {
	s, err := smi.Library("/host")
	if err != nil {
		return "", err
	}
	want, err := layoutOf(os.Getenv("CONFIG_FILE"), config, s)
	if err != nil {
		return "", err
	}
	if !differs(want, s) {
		return "success", resume(node, labels)
	}
	fmt.Printf("%s: cutting GPUs into %v\n", config, want)
	if err := pause(node, labels); err != nil {
		return "", err
	}
	text, err := json.Marshal(want)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("nsenter", "-t", "1", "-m", "-u", "/usr/lib/lab/gpu-boot", "mig-cut", string(text)).CombinedOutput()
	if labels, again := labelsOf(node); again == nil {
		err = errors.Join(err, resume(node, labels), validateAgain(node))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return "success", nil
}

// layoutOf is what a configuration means for each GPU of a machine; nil leaves one alone.
func layoutOf(file, config string, s scenario.Scenario) ([][]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct {
		Version string             `json:"version"`
		Configs map[string][]entry `json:"mig-configs"`
	}
	if err := yaml.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	entries, known := list.Configs[config]
	if !known || list.Version != "v1" {
		return nil, fmt.Errorf("there is no configuration %s in %s", config, file)
	}
	want := make([][]string, len(s.GPUs))
	for _, e := range entries {
		for i, g := range s.GPUs {
			if g.MIG == nil || !e.covers(i, g) {
				continue
			}
			want[i] = []string{off}
			if e.Enabled {
				want[i] = e.profiles()
			}
		}
	}
	return want, nil
}

func (e entry) covers(i int, g scenario.GPU) bool {
	_, device, _ := strings.Cut(strings.ToUpper(g.PCI), ":")
	id := "0x" + device + "10DE"
	matches := e.Filter == nil || e.Filter == id
	if list, ok := e.Filter.([]any); ok {
		matches = slices.Contains(list, any(id))
	}
	listed := e.Devices == "all"
	if list, ok := e.Devices.([]any); ok {
		listed = slices.Contains(list, any(float64(i)))
	}
	return matches && listed
}

func (e entry) profiles() []string {
	out := []string{}
	for name, n := range e.Slices {
		for range n {
			out = append(out, name)
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(out)))
	return out
}

func differs(want [][]string, s scenario.Scenario) bool {
	for i, g := range s.GPUs {
		if g.MIG == nil || want[i] == nil {
			continue
		}
		have := []string{off}
		if g.MIG.Current == "Enabled" {
			have = []string{}
			for _, slice := range g.MIG.Slices {
				have = append(have, slice.Profile)
			}
		}
		if !slices.Equal(have, want[i]) {
			return true
		}
	}
	return false
}

// pause takes the operands off the node and waits until they are gone.
func pause(node string, labels map[string]string) error {
	set := map[string]string{stateLabel: "pending"}
	for _, name := range operands() {
		if labels["nvidia.com/gpu.deploy."+name] == "true" {
			set["nvidia.com/gpu.deploy."+name] = paused
		}
	}
	if err := setLabels(node, set); err != nil {
		return err
	}
	apps := []string{"nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-dcgm-exporter"}
	for range 120 {
		pods, err := podsOf(node)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(p pod) bool { return slices.Contains(apps, p.Metadata.Labels["app"]) }) {
			return nil
		}
		time.Sleep(time.Second)
	}
	return errors.New("operands that hold GPUs do not leave the node")
}

// pod is what is read of one.
type pod struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
}

func namespace() string {
	return "/api/v1/namespaces/" + os.Getenv("DEFAULT_GPU_CLIENTS_NAMESPACE") + "/pods"
}

func podsOf(node string) ([]pod, error) {
	data, _, err := call(http.MethodGet, namespace()+"?fieldSelector=spec.nodeName%3D"+node, "application/json", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	err = json.Unmarshal(data, &list)
	return list.Items, err
}

// validateAgain takes the validator's pod away, whose successor runs all validations.
func validateAgain(node string) error {
	pods, err := podsOf(node)
	for _, p := range pods {
		if p.Metadata.Labels["app"] == validator {
			_, _, gone := call(http.MethodDelete, namespace()+"/"+p.Metadata.Name, "application/json", nil)
			err = errors.Join(err, gone)
		}
	}
	return err
}

func resume(node string, labels map[string]string) error {
	set := map[string]string{}
	for _, name := range operands() {
		if labels["nvidia.com/gpu.deploy."+name] == paused {
			set["nvidia.com/gpu.deploy."+name] = "true"
		}
	}
	if len(set) == 0 {
		return nil
	}
	return setLabels(node, set)
}

func labelsOf(node string) (map[string]string, error) {
	data, _, err := call(http.MethodGet, "/api/v1/nodes/"+node, "application/json", nil)
	if err != nil {
		return nil, err
	}
	var n struct {
		Metadata struct{ Labels map[string]string }
	}
	err = json.Unmarshal(data, &n)
	return n.Metadata.Labels, err
}

func setLabels(node string, set map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": set}})
	if err != nil {
		return err
	}
	_, _, err = call(http.MethodPatch, "/api/v1/nodes/"+node, "application/merge-patch+json", patch)
	return err
}
