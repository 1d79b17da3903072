package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The scenario travels inside the simulated libnvidia-ml.so, behind the ELF
// image: whoever mounts the library into a container takes the scenario along,
// as the real library takes its knowledge of the hardware from the driver.
//
//	text lines "key\tvalue..." for the C side, one line "json\t{...}" for Go,
//	then a footer of 32 bytes: magic, decimal length of the text, newline.
const (
	magic      = "GPUCTLLAB1 "
	footerSize = 32
)

// ErrNoTrailer is returned by ReadLibrary for a library without a scenario.
var ErrNoTrailer = errors.New("library carries no scenario")

// AppendTo returns the library's bytes with the scenario behind them.
func (s Scenario) AppendTo(library []byte) ([]byte, error) {
	doc, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding scenario: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module\t%s\nlibrary\t%s\ncuda\t%s\n", s.Driver, s.Library(), s.CUDA)
	for i, g := range s.GPUs {
		var domain, bus, dev, vendor, device int
		if _, err := fmt.Sscanf(g.Bus, "%x:%x:%x.0", &domain, &bus, &dev); err != nil {
			return nil, fmt.Errorf("gpu %d: bus %q: %w", i, g.Bus, err)
		}
		if _, err := fmt.Sscanf(g.PCI, "%x:%x", &vendor, &device); err != nil {
			return nil, fmt.Errorf("gpu %d: pci %q: %w", i, g.PCI, err)
		}
		major, minor, _ := strings.Cut(g.ComputeCapability, ".")
		fmt.Fprintf(&b, "gpu\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", i, g.UUID, g.Model,
			g.MemoryMiB, major, minor, device<<16|vendor, domain, bus, dev, migCode(g.MIG), flag(s.lost(i)))
	}
	b.WriteString(s.migLines())
	fmt.Fprintf(&b, "json\t%s\n", doc)
	out := append(bytes.Clone(library), b.String()...)
	return append(out, fmt.Sprintf("%s%*d\n", magic, footerSize-len(magic)-1, b.Len())...), nil
}

// ReadLibrary finds the scenario behind a library.
func ReadLibrary(path string) (Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, err
	}
	if len(data) < footerSize || !bytes.HasPrefix(data[len(data)-footerSize:], []byte(magic)) {
		return Scenario{}, fmt.Errorf("%s: %w", path, ErrNoTrailer)
	}
	_, doc, ok := bytes.Cut(data, []byte("\njson\t"))
	if !ok {
		return Scenario{}, fmt.Errorf("%s: %w", path, ErrNoTrailer)
	}
	var s Scenario
	if err := json.NewDecoder(bytes.NewReader(doc)).Decode(&s); err != nil {
		return Scenario{}, fmt.Errorf("%s: scenario: %w", path, err)
	}
	return s, nil
}

func (s Scenario) lost(i int) bool {
	for _, l := range s.Faults.Lost {
		if l == i {
			return true
		}
	}
	return false
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// migCode is 0 for no MIG, else 1 for current and 2 for pending, plus 4.
func migCode(m *MIG) int {
	if m == nil {
		return 0
	}
	return 4 | flag(m.Current == "Enabled") | flag(m.Pending == "Enabled")<<1
}
