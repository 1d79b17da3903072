package host

import (
	"errors"
	"strings"
)

// parsePackages reads lines "pkg|ii |name|version" (dpkg's abbreviated state:
// wanted, actual, error) and what stands beside them.
func parsePackages(text string) (Packages, error) {
	p := Packages{Installed: map[string]string{}}
	for _, line := range lines(text) {
		if f := strings.Split(line, "|"); len(f) == 4 && f[0] == "pkg" {
			p.add(f[1], f[2], strings.TrimSpace(f[3]))
			continue
		}
		k, v, _ := strings.Cut(line, "=")
		switch k {
		case "manager":
			p.Manager = v
		case "audit":
			p.Audit = v
		case "lock":
			p.LockHolders = append(p.LockHolders, v)
		case "source":
			p.NVIDIASources = append(p.NVIDIASources, v)
		case "unattended":
			p.UnattendedUpgrades = true
		case "unit":
			p.AptUnits = append(p.AptUnits, v)
		}
	}
	if p.Manager == "" {
		return p, errors.New("no package manager was named")
	}
	return p, nil
}

func (p *Packages) add(state, name, version string) {
	if len(state) < 2 {
		return
	}
	switch state[1] {
	case 'n', 'c': // not installed, only configuration left
		return
	case 'i':
		p.Installed[name] = version
	default:
		p.Installed[name] = version
		p.Broken = append(p.Broken, name)
	}
	if state[0] == 'h' {
		p.Held = append(p.Held, name)
	}
}

// parseMadison reads "name | version | repository" lines, newest first.
func parseMadison(text string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, line := range lines(text) {
		f := strings.Split(line, "|")
		if len(f) != 3 {
			continue
		}
		name, version := strings.TrimSpace(f[0]), strings.TrimSpace(f[1])
		if have := out[name]; len(have) == 0 || have[len(have)-1] != version {
			out[name] = append(have, version)
		}
	}
	return out, nil
}

func parseSecureBoot(text string) (bool, error) {
	switch strings.TrimSpace(text) {
	case "1":
		return true, nil
	case "0":
		return false, nil
	}
	return false, errors.New("the EFI variable SecureBoot has no value")
}
