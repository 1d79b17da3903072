package host

import (
	"net/netip"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// NamedFacts are the facts of one machine of several.
type NamedFacts struct {
	Machine string
	Facts   Facts
}

// CrossFindings compares machines with each other: what one alone cannot show.
// It is pure; each finding names all machines it concerns and stands at the
// later ones, so that the first may stay.
func CrossFindings(all []NamedFacts) []diag.Finding {
	var found []diag.Finding
	twice := map[string]bool{}
	groups(all, func(f Facts) []string {
		s := f.System.Value
		if s.BootID == "" || s.MachineID == "" {
			return nil
		}
		return []string{s.BootID + "/" + s.MachineID}
	}, func(_, first, name string) {
		twice[name] = true
		found = append(found, diag.Found(CodeSameMachine, name, "is the same machine as "+first))
	})
	add := func(code diag.Code, what string) func(key, first, name string) {
		return func(key, first, name string) {
			if !twice[name] {
				found = append(found, diag.Found(code, name, what+" "+key+" is also that of "+first))
			}
		}
	}
	groups(all, one(func(f Facts) string { return strings.ToLower(f.System.Value.Hostname) }), add(CodeSameHostname, "host name"))
	groups(all, one(func(f Facts) string { return f.System.Value.MachineID }), add(CodeSameMachineID, "machine id"))
	groups(all, one(func(f Facts) string { return usableUUID(f.System.Value.ProductUUID) }), add(CodeSameMachineID, "product UUID"))
	groups(all, addresses, add(CodeSameAddress, "address"))
	return found
}

// groups calls report for every machine that shares a key with an earlier one.
func groups(all []NamedFacts, keysOf func(Facts) []string, report func(key, first, name string)) {
	first := map[string]string{}
	for _, n := range all {
		for _, k := range keysOf(n.Facts) {
			if k == "" {
				continue
			}
			if f, ok := first[k]; ok {
				report(k, f, n.Machine)
				continue
			}
			first[k] = n.Machine
		}
	}
}

func one(f func(Facts) string) func(Facts) []string {
	return func(facts Facts) []string { return []string{f(facts)} }
}

// usableUUID drops values that boards carry when nobody set one.
func usableUUID(s string) string {
	s = strings.ToLower(s)
	switch s {
	case "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "03000200-0400-0500-0006-000700080009":
		return ""
	}
	return s
}

// addresses are those of real interfaces: bridges of container engines have the
// same ones everywhere.
func addresses(f Facts) []string {
	var out []string
	for _, i := range f.Network.Value.Interfaces {
		if virtual(i.Name) {
			continue
		}
		for _, a := range i.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil {
				out = append(out, p.Addr().String())
			}
		}
	}
	sort.Strings(out)
	return out
}

func virtual(name string) bool {
	for _, p := range []string{"docker", "br-", "cni", "flannel", "virbr", "podman", "lxd", "kube"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
