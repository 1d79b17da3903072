package config

import (
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Inventory returns the machines of the file with the cluster's SSH settings
// filled in where a machine says nothing.
func (c Config) Inventory() inventory.Inventory {
	inv := inventory.Inventory{Cluster: c.Metadata.Name}
	ssh := c.Spec.SSH
	for _, m := range c.Spec.Machines {
		im := inventory.Machine{
			Name: m.Name, Role: inventory.Role(m.Role), Group: m.Group,
			Host: m.Host, Port: m.Port, User: m.User,
			IdentityFile: m.IdentityFile, Jump: m.Jump, HostKey: m.HostKey,
			PrivateAddress: m.PrivateAddress, DataDir: m.DataDir,
			GPUs: m.GPUs, GPUModel: m.GPUModel,
		}
		im.User = or(im.User, ssh.User)
		im.IdentityFile = or(im.IdentityFile, ssh.IdentityFile)
		im.Jump = or(im.Jump, ssh.Jump)
		if im.Port == 0 {
			im.Port = ssh.Port
		}
		if d := c.dataDisk(m); d != nil {
			im.DataDisk = &inventory.DataDisk{Device: d.Device, Format: d.Format, Mount: or(d.Mount, DefaultMount)}
			if im.DataDir == "" && im.DataDisk.Mount != DefaultMount {
				im.DataDir = im.DataDisk.Mount + "/k3s"
			}
		}
		inv.Machines = append(inv.Machines, im)
	}
	return inv
}

// dataDisk is the machine's own, else that of its group.
func (c Config) dataDisk(m Machine) *DataDisk {
	if m.DataDisk != nil {
		return m.DataDisk
	}
	return c.Group(m.Group).DataDisk
}

// Group returns the settings of a group. The empty name, and a machine of no
// group, get the defaults.
func (c Config) Group(name string) Group {
	for _, g := range c.Spec.Groups {
		if g.Name == name {
			return g
		}
	}
	g := Group{Name: name}
	g.setDefaults()
	return g
}

// OperatorEnabled says whether the GPU Operator is wanted.
func (c Config) OperatorEnabled() bool {
	return c.Spec.GPU.Operator.Enabled == nil || *c.Spec.GPU.Operator.Enabled
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// WithMachines returns the configuration with machines that another tool named,
// held to the same rules as those of the file. Errors: *InvalidError.
func (c Config) WithMachines(machines []inventory.Machine) (Config, error) {
	c.Spec.Machines = nil
	for _, m := range machines {
		c.Spec.Machines = append(c.Spec.Machines, Machine{
			Name: m.Name, Role: string(m.Role), Group: m.Group, Host: m.Host, Port: m.Port, User: m.User,
			IdentityFile: m.IdentityFile, Jump: m.Jump, HostKey: m.HostKey, PrivateAddress: m.PrivateAddress,
			DataDir: m.DataDir, GPUs: m.GPUs, GPUModel: m.GPUModel,
		})
	}
	c.Spec.setMachineDefaults()
	d := newDecoder()
	checker{d, newPatterns()}.machines(&c.Spec)
	if len(d.problems) > 0 {
		return Config{}, &InvalidError{File: "machinesFrom", Problems: d.problems}
	}
	return c, nil
}
