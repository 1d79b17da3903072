package provision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Machine is the contract with Terraform modules: what one element of the output
// may say. The output is a list of these, a map from name to these, a map from
// name to address or a list of addresses. It may be sensitive: nothing of it is
// printed but names and addresses. Fields that are not listed here are ignored. A typical module ends with
//
//	output "gpuctl" {
//	  value = [for i, vm in example_instance.gpu : {
//	    name    = vm.name
//	    role    = i == 0 ? "server" : "agent"
//	    host    = vm.public_ip
//	    user    = "ubuntu"
//	    private = vm.private_ip
//	  }]
//	}
type Machine struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Group is a group of gpuctl.yaml.
	Group string `json:"group"`
	// Host is where to connect: an address, with or without the mask some
	// providers add, or user@host:port. PublicIP and Address are other names of it.
	Host     string `json:"host"`
	PublicIP string `json:"public_ip"`
	Address  string `json:"address"`
	// Private is the address the other machines use. PrivateIP is another name of it.
	Private   string `json:"private"`
	PrivateIP string `json:"private_ip"`
	User      string `json:"user"`
	Port      int    `json:"port"`
	Jump      string `json:"jump"`
	// HostKey is the machine's public host key ("ssh-ed25519 AAAA..."); it is
	// pinned, so that the first connection is no leap of faith. A comment and a
	// line break at its end, as tls_private_key adds, are cut.
	HostKey  string `json:"host_key"`
	GPUs     *int   `json:"gpus"`
	GPUModel string `json:"gpu_model"`
	// State, where it is given, must not say that the machine is off.
	State string `json:"state"`
}

// ParseOutput reads the value of an output. Entries that are off or have no
// address are skipped with a reason; values that cannot be right are errors, all
// at once. JSON objects have no order: maps come back sorted by name.
func ParseOutput(value json.RawMessage) (Found, error) {
	entries, err := split(value)
	if err != nil {
		return Found{}, err
	}
	var found Found
	var errs []error
	for i, e := range entries {
		m, skip, err := e.machine()
		name := or(m.Name, e.name, fmt.Sprintf("entry %d", i+1))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case skip != "":
			found.Skipped = append(found.Skipped, Skipped{name, skip})
		default:
			found.Machines = append(found.Machines, m)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Found{}, err
	}
	if len(found.Machines) == 0 {
		var why []string
		for _, s := range found.Skipped {
			why = append(why, s.Name+": "+s.Reason)
		}
		return Found{}, fmt.Errorf("no machine in it: %s", or(strings.Join(why, "; "), "it is empty"))
	}
	return found, nil
}

// entry is one machine of the output, named by its map key if there is one.
type entry struct {
	name  string
	value json.RawMessage
}

func split(value json.RawMessage) ([]entry, error) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var out []entry
		for _, v := range list {
			out = append(out, entry{value: v})
		}
		return out, nil
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(value, &byName); err != nil {
		return nil, errors.New("neither a list nor a map of machines")
	}
	var out []entry
	for name, v := range byName {
		out = append(out, entry{name, v})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out, nil
}

// machine reads an entry. skip says why an entry that is right is no machine now.
func (e entry) machine() (m inventory.Machine, skip string, err error) {
	t := Machine{Name: e.name}
	var address string
	switch {
	case string(bytes.TrimSpace(e.value)) == "null":
		return m, "it is null", nil
	case json.Unmarshal(e.value, &address) == nil:
		t.Host = address
	default:
		if err := json.Unmarshal(e.value, &t); err != nil {
			return m, "", fmt.Errorf("neither an address nor an object of the known form: %w", err)
		}
	}
	m = inventory.Machine{Name: t.Name, Role: inventory.Role(t.Role), Group: t.Group, User: t.User, Port: t.Port,
		Jump: t.Jump, HostKey: plainKey(t.HostKey), GPUs: t.GPUs, GPUModel: t.GPUModel}
	if off(t.State) {
		return m, "its state is " + t.State, nil
	}
	if err := setHost(&m, or(t.Host, t.PublicIP, t.Address)); err != nil || m.Host == "" {
		if err == nil {
			skip = "it has no host, public_ip or address; reach it by its private address with host and jump"
		}
		return m, skip, err
	}
	if m.PrivateAddress, err = plainAddress(or(t.Private, t.PrivateIP)); err != nil {
		return m, "", fmt.Errorf("private address: %w", err)
	}
	return m, "", nil
}

// plainKey is a key without its comment.
func plainKey(key string) string {
	fields := strings.Fields(key)
	return strings.Join(fields[:min(len(fields), 2)], " ")
}

// off knows the words of providers for a machine that does not run.
func off(state string) bool {
	s := strings.ToLower(state)
	for _, word := range []string{"shutoff", "stopped", "terminated", "deallocated", "off", "suspended"} {
		if s == word || strings.HasSuffix(s, "_"+word) {
			return true
		}
	}
	return false
}

// setHost understands an address with its mask and user@host:port.
func setHost(m *inventory.Machine, text string) error {
	host, err := plainAddress(text)
	if err != nil || host == "" {
		return err
	}
	t, err := config.ParseTarget(host)
	if err != nil {
		return err
	}
	m.Host = t.Host
	m.User = or(m.User, t.User)
	if m.Port == 0 {
		m.Port = t.Port
	}
	return nil
}

// plainAddress trims blanks and the mask of an interface address. A network is
// no address: 10.0.0.0/24 would be dialled in vain.
func plainAddress(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "null" {
		return "", nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return text, nil
	}
	if prefix.Masked() == prefix && prefix.Bits() < prefix.Addr().BitLen() {
		return "", fmt.Errorf("%s is a network, not the address of a machine", text)
	}
	return prefix.Addr().String(), nil
}

func or(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
