package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host/probe"
)

// Parse reads the output of the command made by Command with this mark. It is
// pure. A section that failed becomes an unknown fact; the error is for output
// that is not a probe's or is cut off (probe.ErrCut).
func Parse(output []byte, mark string) (Facts, error) {
	out, err := probe.Split(output, mark)
	return factsOf(out), err
}

func factsOf(out probe.Output) Facts {
	f := Facts{
		OS:         read(out, "os", parseOSRelease),
		System:     read(out, "system", parseSystem),
		Abilities:  read(out, "abilities", parseAbilities),
		Memory:     read(out, "memory", parseMemory),
		Disks:      read(out, "disks", parseDisks),
		DataDisk:   read(out, "datadisk", parseDataDisk),
		Modules:    read(out, "modules", parseModules),
		Sysctls:    read(out, "sysctls", parseSysctls),
		Network:    read(out, "network", parseNetwork),
		Firewall:   read(out, "firewall", parseFirewall),
		Ports:      read(out, "ports", parsePorts),
		CloudInit:  read(out, "cloudinit", parseWord),
		Packages:   read(out, "packages", parsePackages),
		SecureBoot: read(out, "secureboot", parseSecureBoot),
		PCI:        read(out, "pci", parsePCI),
		Driver:     read(out, "driver", parseDriver),
		SMI:        read(out, "smi", parseSMI),
		Fabric:     read(out, "fabric", parseFabric),
		Toolkit:    read(out, "toolkit", parseToolkit),
		K3s:        read(out, "k3s", parseK3s),
		Files:      read(out, "files", parseFiles),
		Others:     read(out, "others", parseOthers),
		KernelLog:  read(out, "kernellog", parseKernelLog),
	}
	if f.Packages.Has() {
		candidates := read(out, "candidates", parseMadison)
		f.Packages.Value.Candidates = candidates.Value
	}
	if f.SMI.Has() {
		f.SMI.Value.Busy = read(out, "busy", parseBusy).Value
	}
	f.Clock = clock(out)
	return f
}

func read[T any](out probe.Output, name string, parse func(string) (T, error)) Fact[T] {
	a, ok := out.Answers[name]
	if !ok {
		return Unknown[T]("no answer to " + name)
	}
	switch a.Status {
	case probe.OK:
		v, err := parse(a.Text)
		if err != nil {
			return Unknown[T](fmt.Sprintf("reading %s: %v", name, err))
		}
		return Known(v)
	case probe.Absent:
		return Absent[T]()
	case probe.Denied, probe.Failed, probe.Timeout:
		why := string(a.Status)
		if a.Note != "" {
			why += ": " + a.Note
		}
		return Unknown[T](why)
	}
	return Unknown[T]("the probe's answer has no status")
}

func clock(out probe.Output) Fact[Clock] {
	if out.First.IsZero() {
		return Unknown[Clock]("date printed no number")
	}
	c := Clock{First: out.First, Last: out.Last}
	if ntp := out.Answers["ntp"]; ntp.Status == probe.OK {
		c.Synchronized = keys(ntp.Text)["synchronized"]
	}
	return Known(c)
}

// keys reads lines of "key=value"; other lines are skipped, the last value wins.
func keys(text string) map[string]string {
	m := map[string]string{}
	for _, line := range lines(text) {
		if k, v, ok := strings.Cut(line, "="); ok {
			m[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return m
}

// values returns every value of "key=value" lines with this key, in order.
func values(text, key string) []string {
	var out []string
	for _, line := range lines(text) {
		if v, ok := strings.CutPrefix(line, key+"="); ok && strings.TrimSpace(v) != "" {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

// lines splits text and drops empty lines.
func lines(text string) []string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

func number(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func parseWord(text string) (string, error) {
	all := lines(text)
	if len(all) == 0 {
		return "", fmt.Errorf("empty answer")
	}
	return strings.TrimSpace(all[0]), nil
}
