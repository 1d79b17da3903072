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

func since[T any](now, earlier Fact[T]) Fact[T] {
	if now.Unsure() && !earlier.Unsure() {
		return earlier
	}
	return now
}
