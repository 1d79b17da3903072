package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

const (
	// migState keeps the MIG modes over a reboot; slices are gone with the boot
	// they were made in, as on real cards (NVIDIA/k8s-device-plugin#225).
	migState = "/var/lib/lab/gpu-mig.json"
	majorCap = 237
)

// cards is the MIG state of a machine.
type cards struct {
	Boot string `json:"boot"`
	GPUs []card `json:"gpus"`
}

type card struct {
	Current, Pending bool
	Slices           []string `json:",omitempty"`
}

// withMIG puts what was changed by nvidia-smi and the MIG manager into a scenario.
func withMIG(s scenario.Scenario, boot string) (scenario.Scenario, error) {
	st, err := readCards(s, boot)
	if err != nil {
		return s, err
	}
	gpus := append([]scenario.GPU(nil), s.GPUs...)
	for i := range gpus {
		if gpus[i].MIG == nil {
			continue
		}
		made, err := gpus[i].Cut(st.GPUs[i].Slices)
		if err != nil {
			return s, err
		}
		gpus[i].MIG = &scenario.MIG{Current: word(st.GPUs[i].Current), Pending: word(st.GPUs[i].Pending), Slices: made}
	}
	s.GPUs = gpus
	return s, nil
}

func word(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}

// readCards is the state of now: what the scenario says until something changed it.
func readCards(s scenario.Scenario, boot string) (cards, error) {
	var st cards
	data, err := os.ReadFile(migState)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return st, err
	default:
		if err := json.Unmarshal(data, &st); err != nil {
			return st, fmt.Errorf("%s: %w", migState, err)
		}
	}
	if len(st.GPUs) != len(s.GPUs) {
		st = cards{Boot: boot, GPUs: make([]card, len(s.GPUs))}
		for i, g := range s.GPUs {
			if g.MIG != nil {
				st.GPUs[i] = card{Current: g.MIG.Current == "Enabled", Pending: g.MIG.Pending == "Enabled"}
			}
		}
	}
	if st.Boot != boot {
		st.Boot = boot
		for i := range st.GPUs {
			st.GPUs[i] = card{Current: st.GPUs[i].Pending, Pending: st.GPUs[i].Pending}
		}
	}
	return st, nil
}

// SetMIGMode is nvidia-smi -mig: a card that needs a reset for it, and has none
// here, keeps the mode pending until the next boot.
func SetMIGMode(on bool) error {
	return changeCards(func(_ int, g scenario.GPU, c *card) error {
		c.Pending = on
		if !g.ModeNeedsReset() {
			c.Current = on
		}
		if !on {
			c.Slices = nil
		}
		return nil
	})
}

// CutMIG makes the slices of each GPU, and with "off" for a GPU turns its mode off.
// It is what the stand-in for the MIG manager runs on the machine.
func CutMIG(layout string) error {
	var want [][]string
	if err := json.Unmarshal([]byte(layout), &want); err != nil {
		return fmt.Errorf("cutting GPUs: %w", err)
	}
	return changeCards(func(i int, g scenario.GPU, c *card) error {
		if i >= len(want) || want[i] == nil {
			return nil
		}
		off := len(want[i]) == 1 && want[i][0] == "off"
		if c.Current == off && g.ModeNeedsReset() {
			return fmt.Errorf("GPU %d: the MIG mode is %s and changes only by a reset", i, strings.ToLower(word(c.Current)))
		}
		c.Current, c.Pending, c.Slices = !off, !off, nil
		if off {
			return nil
		}
		if _, err := g.Cut(want[i]); err != nil {
			return err
		}
		c.Slices = want[i]
		return nil
	})
}

// changeCards keeps a change and lays the library and the device nodes anew.
func changeCards(change func(int, scenario.GPU, *card) error) error {
	s, err := scenario.Load(scenario.Path)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	s = s.For(host)
	st, err := readCards(s, string(boot))
	if err != nil {
		return err
	}
	for i, g := range s.GPUs {
		if g.MIG == nil {
			continue
		}
		if err := change(i, g, &st.GPUs[i]); err != nil {
			return err
		}
	}
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	if err := write(migState, string(data)); err != nil {
		return err
	}
	if s, err = current(s); err != nil {
		return err
	}
	if err := layNVML(s); err != nil {
		return err
	}
	return layCaps(s)
}

// layNVML puts the scenario as it is now into the library.
func layNVML(s scenario.Scenario) error {
	nvml, err := os.ReadFile(filepath.Join(parts, "libnvidia-ml.so"))
	if err != nil {
		return err
	}
	if nvml, err = s.AppendTo(nvml); err != nil {
		return err
	}
	_, err = library("libnvidia-ml.so", s.Library(), nvml)
	return err
}

// layCaps makes the device nodes of MIG instances.
func layCaps(s scenario.Scenario) error {
	const dir = "/dev/nvidia-caps"
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if !s.Loaded() {
		return nil
	}
	minors := []int{}
	for i, g := range s.GPUs {
		if g.MIG == nil {
			continue
		}
		if len(minors) == 0 {
			minors = append(minors, 1, 2)
		}
		for _, slice := range g.MIG.Slices {
			gi, ci := slice.Caps(i)
			minors = append(minors, gi, ci)
		}
	}
	if len(minors) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, minor := range minors {
		path := filepath.Join(dir, fmt.Sprintf("nvidia-cap%d", minor))
		if err := unix.Mknod(path, unix.S_IFCHR|0o444, int(unix.Mkdev(majorCap, uint32(minor)))); err != nil {
			return fmt.Errorf("making %s: %w", path, err)
		}
	}
	return nil
}
