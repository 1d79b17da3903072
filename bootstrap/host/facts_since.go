package host

// Since fills in what could not be seen this time from an earlier look of the
// same run. It takes over only what a run does not change: a machine that is
// too busy to answer has not lost its addresses or its GPUs meanwhile. What
// actions change (files, packages, driver, k3s) stays unknown.
func (f Facts) Since(earlier Facts) Facts {
	f.OS = since(f.OS, earlier.OS)
	f.System = since(f.System, earlier.System)
	f.Abilities = since(f.Abilities, earlier.Abilities)
	f.Memory = since(f.Memory, earlier.Memory)
	f.Disks = since(f.Disks, earlier.Disks)
	f.Network = since(f.Network, earlier.Network)
	f.SecureBoot = since(f.SecureBoot, earlier.SecureBoot)
	f.PCI = since(f.PCI, earlier.PCI)
	f.Others = since(f.Others, earlier.Others)
	return f
}

// Lost says which facts that plans rest on could be seen earlier in the run and
// not now, "" for none. A machine that was just made to start k3s may be too
// busy for one look, and for a second; that is no reason to end the run.
func (f Facts) Lost(earlier Facts) string {
	for _, x := range []struct {
		name     string
		now, was bool
	}{
		{"k3s", f.K3s.Unsure(), earlier.K3s.Unsure()},
		{"files", f.Files.Unsure(), earlier.Files.Unsure()},
		{"packages", f.Packages.Unsure(), earlier.Packages.Unsure()},
		{"network", f.Network.Unsure(), earlier.Network.Unsure()},
		{"PCI devices", f.PCI.Unsure(), earlier.PCI.Unsure()},
	} {
		if x.now && !x.was {
			return x.name
		}
	}
	return ""
}

func since[T any](now, earlier Fact[T]) Fact[T] {
	if now.Unsure() && !earlier.Unsure() {
		return earlier
	}
	return now
}
