package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// ErrMachinesElsewhere says that the file lists no machines of its own: another
// tool does, and the change belongs there.
var ErrMachinesElsewhere = errors.New("the machines come from machinesFrom: change them there")

// AddMachines returns a gpuctl.yaml with machines added at the end of its list.
// Everything else stays to the byte: comments, order, spelling. A machine that
// is there already with the same values is left as it is. Errors: *InvalidError
// for a machine that the rules refuse, such as a name that is taken.
func AddMachines(data []byte, file string, machines ...Machine) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	want := slices.Clone(old.Spec.Machines)
	var fresh []Machine
	for _, m := range machines {
		if !slices.ContainsFunc(want, func(have Machine) bool { return reflect.DeepEqual(have, m) }) {
			fresh, want = append(fresh, m), append(want, m)
		}
	}
	if len(fresh) == 0 {
		return data, nil
	}
	t, err := openText(data)
	if err != nil {
		return nil, err
	}
	t.add(fresh)
	return t.checked(old, want, file)
}

// RemoveMachines returns a gpuctl.yaml without the machines of these names; a
// name that is not there is no error. Comments inside a machine's entry go with
// it, everything else stays to the byte.
func RemoveMachines(data []byte, file string, names ...string) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	t, err := openText(data)
	if err != nil {
		return nil, err
	}
	var want []Machine
	var cuts []int
	for i, m := range old.Spec.Machines {
		if slices.Contains(names, m.Name) {
			cuts = append(cuts, i)
			continue
		}
		want = append(want, m)
	}
	if len(cuts) == 0 {
		return data, nil
	}
	t.remove(cuts)
	return t.checked(old, want, file)
}

// SetAddress returns a gpuctl.yaml in which a machine is reached at another
// place. A user or port that the target does not say stays as it is, and so
// does everything else to the byte.
func SetAddress(data []byte, file, machine string, target Target) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(old.Spec.Machines, func(m Machine) bool { return m.Name == machine })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no machine %q", file, machine)
	}
	t, err := openText(data)
	if err != nil {
		return nil, err
	}
	want := slices.Clone(old.Spec.Machines)
	m := &want[i]
	m.Host, m.User = target.Host, or(target.User, m.User)
	if target.Port != 0 {
		m.Port = target.Port
	}
	if reflect.DeepEqual(*m, old.Spec.Machines[i]) {
		return data, nil
	}
	t.set(i, addressFields(*m, old.Spec.Machines[i]))
	return t.checked(old, want, file)
}

// checked reads the changed text back: it must say exactly what was wanted, or
// it is not written. Broken rules come back as the *InvalidError of the new text.
func (t *text) checked(old Config, want []Machine, file string) ([]byte, error) {
	data := t.bytes()
	got, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	old.Spec.Machines = want
	if !reflect.DeepEqual(got, old) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed safely: change spec.machines by hand", file)
	}
	return data, nil
}

// Rewrite replaces a file by what edit makes of its content, at once: a reader
// sees the old text or the new. Mode and symbolic links stay. Where edit fails
// or changes nothing, nothing is written; changed says whether something was.
func Rewrite(path string, edit func(data []byte) ([]byte, error)) (changed bool, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", path, err)
	}
	old, err := os.ReadFile(real)
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", path, err)
	}
	data, err := edit(old)
	if err != nil || string(data) == string(old) {
		return false, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(real), "."+filepath.Base(real)+"-*")
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", path, err)
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), real)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("changing %s: %w", path, err), os.Remove(tmp.Name()))
	}
	return true, nil
}

// NewMachines makes machines of hosts as a user types them (see ParseTarget),
// as agents with names that are not taken. like carries what is the same for
// all of them (group, number of GPUs); its name counts for a single host only.
func (c Config) NewMachines(hosts []string, like Machine) ([]Machine, error) {
	if like.Name != "" && len(hosts) > 1 {
		return nil, errors.New("a name belongs to one machine; several hosts were given")
	}
	taken := map[string]bool{}
	for _, m := range c.Spec.Machines {
		taken[m.Name] = true
	}
	var out []Machine
	for _, h := range hosts {
		t, err := ParseTarget(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h, err)
		}
		m := like
		m.Host, m.User, m.Port, m.Role = t.Host, t.User, t.Port, or(like.Role, "agent")
		if have, ok := c.at(t); ok && (like.Name == "" || like.Name == have.Name) {
			m.Name = have.Name // the same machine once more: an add that was cut short
		}
		if m.Name == "" {
			n := len(c.Spec.Machines) + len(out)
			for m.Name = hostsName(t.Host, n, taken); taken[m.Name]; m.Name = fmt.Sprintf("node-%d", n) {
				n++
			}
		}
		m.Name = strings.ToLower(m.Name)
		taken[m.Name] = true
		out = append(out, m)
	}
	return out, nil
}

// at finds the machine of the file that is reached at a target.
func (c Config) at(t Target) (Machine, bool) {
	for _, m := range c.Spec.Machines {
		if strings.EqualFold(m.Host, t.Host) && m.Port == t.Port {
			return m, true
		}
	}
	return Machine{}, false
}
