package host

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
)

//go:embed disk.sh
var diskScript string

// Codes of data disks.
const (
	CodeDiskAbsent diag.Code = "data-disk-absent"
	CodeDiskInUse  diag.Code = "data-disk-not-empty"
	CodeDiskHides  diag.Code = "data-disk-hides-data"
	CodeDiskFormat diag.Code = "data-disk-unformatted"
)

// diskLabel is that of file systems gpuctl makes, so that a run that was cut
// off knows its own again.
const diskLabel = "gpuctl-data"

// Disk is a disk that shall hold k3s's data.
type Disk struct {
	Device, Mount string
	// Format allows making a file system where there is nothing at all.
	Format bool
}

// DataDisk is what the probe saw of the disk that it was asked for.
type DataDisk struct {
	// Device is the path after all links.
	Device  string `json:"device"`
	SizeMiB int64  `json:"sizeMiB"`
	// Type, UUID and Label are of a file system or another signature on the
	// whole disk; Table is the kind of partition table.
	Type  string `json:"type,omitempty"`
	UUID  string `json:"uuid,omitempty"`
	Label string `json:"label,omitempty"`
	Table string `json:"table,omitempty"`
	// Uses are partitions, holders (LVM, RAID, LUKS), swap.
	Uses []string `json:"uses,omitempty"`
	// On are the folders it is mounted on.
	On []string `json:"on,omitempty"`
	// Fstab is the line of /etc/fstab that mounts something: source, folder, options.
	Fstab []string `json:"fstab,omitempty"`
}

func parseDataDisk(text string) (DataDisk, error) {
	m := keys(text)
	d := DataDisk{
		Device: m["device"], SizeMiB: number(m["size"]) / 1024, Type: m["TYPE"], UUID: m["UUID"], Label: m["LABEL"], Table: m["PTTYPE"],
		Uses: values(text, "uses"), On: values(text, "on"), Fstab: values(text, "fstab"),
	}
	if d.Device == "" {
		return d, errors.New("no device")
	}
	return d, nil
}

// mounted: it is where it shall be, now and after the next boot.
func (d DataDisk) mounted(want Disk) bool {
	return slices.Contains(d.On, want.Mount) && d.inFstab(want)
}

func (d DataDisk) inFstab(want Disk) bool {
	return d.UUID != "" && slices.ContainsFunc(d.Fstab, func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 3 && f[0] == "UUID="+d.UUID && f[1] == want.Mount && slices.Contains(strings.Split(f[2], ","), "nofail")
	})
}

// holds says what is on the disk that gpuctl has not put there, "" for nothing.
func (d DataDisk) holds() string {
	out := slices.Clone(d.Uses)
	if d.Table != "" {
		out = append(out, "partition table "+d.Table)
	}
	if d.Type != "" && d.Label != diskLabel {
		out = append(out, strings.TrimSpace(d.Type+" "+d.Label))
	}
	return strings.Join(out, ", ")
}

// disk says what stands against the data disk.
func (c *check) disk() {
	want := c.want.Disk
	if want == nil {
		return
	}
	if c.seen.DataDisk.Unsure() {
		if c.seen.K3s.Value.Version == "" {
			// k3s must not start on the root disk because nobody knows of the other.
			c.as(diag.Blocks, CodeProbeIncomplete, "data disk: %s", c.seen.DataDisk.Reason())
		}
		return
	}
	d := c.seen.DataDisk.Value
	fs := d.Table == "" && len(d.Uses) == 0 && (d.Type == "ext4" || d.Type == "xfs")
	other := slices.IndexFunc(d.Fstab, func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 3 && f[1] == want.Mount && f[0] != "UUID="+d.UUID
	})
	switch {
	case !c.seen.DataDisk.Has():
		c.raise(CodeDiskAbsent, "there is no disk %s", want.Device)
	case d.mounted(*want):
	case len(d.On) > 0 && !slices.Contains(d.On, want.Mount):
		c.raise(CodeDiskInUse, "%s is mounted on %s", d.Device, strings.Join(d.On, ", "))
	case other >= 0:
		c.raise(CodeDiskInUse, "/etc/fstab mounts something else on %s: %s", want.Mount, d.Fstab[other])
	case d.holds() != "" && (want.Format || !fs):
		c.raise(CodeDiskInUse, "%s holds %s", d.Device, d.holds())
	case d.Type == "" && !want.Format:
		c.raise(CodeDiskFormat, "%s (%s) has no file system, and format is not set", d.Device, gib(d.SizeMiB))
	case c.seen.K3s.Value.Version != "" && !slices.Contains(d.On, want.Mount):
		c.raise(CodeDiskHides, "k3s is installed; its data in %s would vanish below %s", c.want.dataDir(), want.Mount)
	}
}

// DiskID is the action after which the data disk is mounted.
func DiskID(machine string) string { return machine + "/host-disk" }

// diskAction makes a file system where that is asked for and allowed, and
// mounts it now and at every boot: by UUID, and with nofail, so that a lost
// disk does not keep the machine from booting. k3s waits for the mount.
func diskAction(want Want, seen Facts, on remote.Runner) (plan.Action, bool) {
	if want.Disk == nil || !seen.DataDisk.Has() || seen.DataDisk.Value.mounted(*want.Disk) {
		return plan.Action{}, false
	}
	w, d := *want.Disk, seen.DataDisk.Value
	reason, title := w.Device+" is not mounted on "+w.Mount, "mount the data disk"
	var changes []string
	if d.Type == "" {
		title = "format and mount the data disk"
		changes = append(changes, fmt.Sprintf("mkfs.ext4 on %s (%s), which is empty", d.Device, gib(d.SizeMiB)))
	} else if slices.Contains(d.On, w.Mount) {
		reason = "/etc/fstab does not mount it by its UUID with nofail"
	}
	changes = append(changes, "/etc/fstab: UUID of "+w.Device+" on "+w.Mount+", nofail")
	return plan.Action{
		ID: DiskID(want.Machine), Machine: want.Machine, Title: title, Reason: reason, Changes: changes, Timeout: 10 * time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			format := "no"
			if w.Format {
				format = "yes"
			}
			_, err := on.Run(ctx, remote.Cmd{Name: title, Script: diskScript, Args: []string{w.Device, w.Mount, format, diskLabel}, Sudo: true, Timeout: 9 * time.Minute})
			if err != nil {
				return fmt.Errorf("preparing the data disk: %w", err)
			}
			return nil
		},
	}, true
}
