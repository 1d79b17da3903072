package host

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// parsePCI reads "address vendor device class driver" lines with sysfs's hexadecimal words.
func parsePCI(text string) ([]PCIDevice, error) {
	out := []PCIDevice{}
	for _, line := range lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		hex := func(s string) string { return strings.ToLower(strings.TrimPrefix(s, "0x")) }
		d := PCIDevice{Address: strings.ToLower(f[0]), Vendor: hex(f[1]), Device: hex(f[2]), Class: hex(f[3])}
		if len(d.Class) > 4 {
			d.Class = d.Class[:4] // base class and subclass, without the programming interface
		}
		if len(f) > 4 {
			d.Driver = f[4]
		}
		out = append(out, d)
	}
	return out, nil
}

// The line has two shapes, for the proprietary and the open module:
// "NVIDIA UNIX x86_64 Kernel Module  580.173.02  date" and
// "NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build ...".
var nvrmLine = regexp.MustCompile(`(Open )?Kernel Module(?: for \S+)?\s+([0-9]+(?:\.[0-9]+)+)`)

func parseDriver(text string) (Driver, error) {
	d := Driver{Modules: map[string]int{}, Nodes: values(text, "node")}
	for _, v := range values(text, "module") {
		name, count, _ := strings.Cut(v, " ")
		d.Modules[name] = int(number(count))
	}
	m := keys(text)
	if f := nvrmLine.FindStringSubmatch(m["nvrm"]); f != nil {
		d.LoadedVersion, d.Flavour = f[2], "proprietary"
		if f[1] != "" {
			d.Flavour = "open"
		}
	}
	d.FileVersion = m["file"]
	switch m["license"] {
	case "NVIDIA":
		d.FileFlavour = "proprietary"
	case "Dual MIT/GPL":
		d.FileFlavour = "open"
	}
	for _, v := range values(text, "library") {
		if strings.Count(v, ".") > strings.Count(d.LibraryVersion, ".") || d.LibraryVersion == "" {
			d.LibraryVersion = v
		}
	}
	d.Runfile = m["runfile"] == "yes"
	d.NouveauBlacklisted = m["nouveau_blacklisted"] == "yes"
	return d, nil
}

// nvidia-smi names a card it cannot open in several ways: "GPU 0000:0B:00.0",
// "GPU0000:CB:00.0", "GPU1: 0000:35:00.0", "gpu 0000:01:00.0".
var lostGPU = regexp.MustCompile(`(?i)unable to determine the device handle for gpu(?:[0-9]+:\s+|\s*)([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])`)

// parseSMI reads "rc N" and "row ..." lines: one CSV row a GPU, mixed with
// sentences about what failed.
func parseSMI(text string) (SMI, error) {
	var s SMI
	var said []string
	seen := false
	list := sliceList{of: map[string][]Slice{}}
	for _, line := range lines(text) {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "rc":
			s.ExitCode, seen = int(number(rest)), true
		case "row":
			if m := lostGPU.FindStringSubmatch(rest); m != nil {
				s.Lost = append(s.Lost, busID(m[1]))
			}
			if g, version, ok := gpuRow(rest); ok {
				s.GPUs = append(s.GPUs, g)
				if version != "" {
					s.DriverVersion = version
				}
			} else if len(said) < 3 && strings.TrimSpace(rest) != "" {
				said = append(said, strings.TrimSpace(rest))
			}
		case "list":
			list.take(rest)
			s.SlicesListed = s.SlicesListed || strings.HasPrefix(rest, "GPU ")
		}
	}
	for i := range s.GPUs {
		s.GPUs[i].Slices = list.of[s.GPUs[i].UUID]
	}
	if !seen {
		return s, errors.New("nvidia-smi left no exit code")
	}
	s.Message = strings.Join(said, "; ")
	return s, nil
}

// sliceList reads nvidia-smi -L: a line for each GPU, followed by its MIG devices.
type sliceList struct {
	gpu string
	of  map[string][]Slice
}

var listLine = regexp.MustCompile(`^\s*(GPU|MIG)\s+(\S+).*\(UUID: ((?:GPU|MIG)-[A-Za-z0-9/-]+)\)`)

func (l *sliceList) take(line string) {
	m := listLine.FindStringSubmatch(line)
	switch {
	case m == nil:
	case m[1] == "GPU":
		l.gpu = m[3]
	case l.gpu != "":
		l.of[l.gpu] = append(l.of[l.gpu], Slice{UUID: m[3], Profile: m[2]})
	}
}

// gpuRow reads index, uuid, name, bus, memory, driver and, where the driver
// knew them, MIG current, MIG pending, ECC, persistence, compute capability,
// fabric, serial number.
func gpuRow(row string) (g GPU, driver string, ok bool) {
	f := strings.SplitN(row, ", ", 13)
	index, err := strconv.Atoi(strings.TrimSpace(f[0]))
	if err != nil || len(f) < 6 || index < 0 {
		return GPU{}, "", false
	}
	for len(f) < 13 {
		f = append(f, "")
	}
	for i := range f {
		var trouble string
		if f[i], trouble = told(f[i]); trouble != "" && g.Trouble == "" {
			g.Trouble = trouble
		}
	}
	g.Index, g.UUID, g.Name, g.PCI, g.MemoryMiB = index, f[1], f[2], busID(f[3]), number(f[4])
	g.MIG, g.MIGPending, g.ECC, g.Persistence, g.Compute, g.Fabric = f[6], f[7], f[8], f[9], f[10], f[11]
	g.Serial = f[12]
	return g, f[5], true
}

// told separates a value from the phrases that stand where a value is missing;
// phrases about health are kept.
func told(s string) (value, trouble string) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "Requested functionality") {
		if s == "N/A" {
			return "", ""
		}
		return s, ""
	}
	phrase := strings.Trim(s, "[]")
	for _, bad := range []string{"requires reset", "is lost"} {
		if strings.Contains(phrase, bad) {
			return "", phrase
		}
	}
	return "", ""
}

// busID writes nvidia-smi's "00000000:0B:00.0" as sysfs does: "0000:0b:00.0".
func busID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	domain, rest, ok := strings.Cut(s, ":")
	for ok && len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	if !ok {
		return s
	}
	return domain + ":" + rest
}

func parseBusy(text string) ([]string, error) {
	var out []string
	for _, line := range lines(text) {
		if uuid, _, _ := strings.Cut(line, ","); strings.HasPrefix(uuid, "GPU-") {
			out = append(out, uuid)
		}
	}
	return unique(out), nil
}

func parseFabric(text string) (Fabric, error) {
	m := keys(text)
	return Fabric{
		Switches: int(number(m["switches"])), Manager: m["nvidia-fabricmanager"],
		ManagerMessage: m["message"], Persistenced: m["nvidia-persistenced"],
	}, nil
}

var toolkitVersion = regexp.MustCompile(`version ([0-9]+\.[0-9]+\.[0-9]+\S*)`)

func parseToolkit(text string) (Toolkit, error) {
	t := Toolkit{Binaries: map[string]string{}, CDISpecs: values(text, "cdi")}
	for _, v := range values(text, "bin") {
		if name, path, ok := strings.Cut(v, " "); ok {
			t.Binaries[name] = path
		}
	}
	m := keys(text)
	t.Runtime = t.Binaries["nvidia-container-runtime"]
	t.OperatorCopy = m["operator"] == "yes"
	if f := toolkitVersion.FindStringSubmatch(m["version"]); f != nil {
		t.Version = f[1]
	}
	return t, nil
}

var xidLine = regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): ([0-9]+)`)

// kernelStamp is what dmesg puts before a line: "[   41.123456]".
var kernelStamp = regexp.MustCompile(`^\[ *([0-9]+\.[0-9]+)\]`)

// parseKernelLog keeps lines from "NVRM:" or "nouveau" on.
func parseKernelLog(text string) ([]KernelMsg, error) {
	out := []KernelMsg{}
	for _, line := range lines(text) {
		at := strings.Index(line, "NVRM")
		if at < 0 {
			at = max(strings.Index(line, "nouveau"), 0)
		}
		msg := KernelMsg{Text: strings.TrimSpace(line[at:])}
		if f := xidLine.FindStringSubmatch(line); f != nil {
			msg.PCI, msg.Xid = strings.ToLower(f[1]), int(number(f[2]))
		}
		if f := kernelStamp.FindStringSubmatch(line); f != nil {
			msg.Uptime, _ = strconv.ParseFloat(f[1], 64) // digits and a point
		}
		out = append(out, msg)
	}
	return out, nil
}
