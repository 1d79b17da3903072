package config

func (c *Config) setDefaults() {
	s := &c.Spec
	s.SSH.HostKeys = or(s.SSH.HostKeys, "accept-new")
	k := &s.Kubernetes
	k.Datastore = or(k.Datastore, "etcd")
	k.Network.Backend = or(k.Network.Backend, "auto")
	k.Network.UseAddress = or(k.Network.UseAddress, "auto")
	k.Network.Firewall = or(k.Network.Firewall, "leave")
	if k.Disable == nil {
		// What listens on ports 80 and 443 of every node is for the user to choose.
		k.Disable = []string{"traefik", "servicelb"}
	}
	for i := range s.Groups {
		s.Groups[i].setDefaults()
	}
	if s.MachinesFrom != nil && s.MachinesFrom.Terraform != nil {
		t := s.MachinesFrom.Terraform
		t.Output = or(t.Output, "gpuctl")
	}
	s.setMachineDefaults()
}

func (g *Group) setDefaults() {
	d := &g.Driver
	d.Mode = or(d.Mode, "auto")
	d.Modules = or(d.Modules, "auto")
	d.Reboot = or(d.Reboot, "allow")
}

// setMachineDefaults names machines after their host and gives out roles: a
// lone machine is the server, and where a server is named the others are agents.
// Which of several is the server is never guessed.
func (s *Spec) setMachineDefaults() {
	servers := 0
	for i := range s.Machines {
		m := &s.Machines[i]
		if m.Name == "" {
			m.Name = NodeName(m.Host)
		}
		if m.Role == "server" {
			servers++
		}
	}
	for i := range s.Machines {
		m := &s.Machines[i]
		switch {
		case m.Role != "":
		case s.Kubernetes.Existing != nil:
			m.Role = "agent" // the cluster has its servers
		case len(s.Machines) == 1:
			m.Role = "server"
		case servers > 0:
			m.Role = "agent"
		}
	}
}
