package diag

// placeProblems are data disks and packet filters of a machine.
func placeProblems() []Problem {
	return []Problem{
		{
			Code: "data-disk-absent", Area: "machine", Severity: Blocks,
			Title:   "The data disk is not there",
			Symptom: "dataDisk.device names no block device of the machine",
			Cause:   "the disk is not attached, or has another name on this machine",
			Fix:     []string{"ls -l /dev/disk/by-id; lsblk", "attach the disk at the provider, or correct dataDisk.device"},
		},
		{
			Code: "data-disk-not-empty", Area: "machine", Severity: Blocks,
			Title:   "The data disk holds something",
			Symptom: "dataDisk.format is set, and the disk has partitions, a file system or another signature; or it is mounted elsewhere",
			Cause:   "the disk was used before, or belongs to something else; gpuctl writes over nothing",
			Fix:     []string{"to use its ext4 or xfs file system as it is: leave dataDisk.format out", "to use a part of the disk: mount it and set machines[].dataDir", "to give it up: wipefs --all DEVICE, by hand"},
		},
		{
			Code: "data-disk-unformatted", Area: "machine", Severity: Blocks,
			Title:   "The data disk has no file system",
			Symptom: "the disk is empty, and dataDisk.format is not set",
			Cause:   "disks are formatted only when that is asked for",
			Fix:     []string{"dataDisk: {device: ..., format: true}", "or mkfs.ext4 DEVICE, by hand"},
		},
		{
			Code: "data-disk-hides-data", Area: "machine", Severity: Blocks,
			Title:   "The data disk would hide k3s's data",
			Symptom: "k3s is installed on the root disk, and dataDisk is to be mounted over its data",
			Cause:   "dataDisk was added to a machine that is a node already",
			Fix:     []string{"gpuctl node remove NAME, then gpuctl node add: the node starts anew on the disk", "or take dataDisk out of gpuctl.yaml"},
		},
		{
			Code: "input-dropped", Area: "network", Severity: Warns,
			Title:     "A packet filter of the machine drops what comes in",
			Symptom:   "the join times out, or pods of other nodes are not reached, though the provider's firewall is open",
			Cause:     "a chain of iptables or nftables drops what no rule before it takes",
			Fix:       []string{"accept TCP 6443 and 10250 and UDP 8472 (51820 with WireGuard) from the other machines, and everything from 10.42.0.0/16 and 10.43.0.0/16"},
			Reference: k3sDocs + "installation/requirements",
		},
	}
}
