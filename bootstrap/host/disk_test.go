package host

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func onDisk() (Want, Facts) {
	w, f := agent(), fit()
	w.Disk = &Disk{Device: "/dev/disk/by-id/virtio-data", Mount: "/var/lib/rancher", Format: true}
	f.DataDisk = Known(DataDisk{Device: "/dev/vdb", SizeMiB: 1 << 20})
	return w, f
}

// TestDataDisk: what is pending and what is refused, by what is on the disk.
func TestDataDisk(t *testing.T) {
	line := "UUID=u-1 /var/lib/rancher defaults,nofail,x-systemd.device-timeout=60s"
	for name, tc := range map[string]struct {
		disk    DataDisk
		change  func(*Want, *Facts)
		code    diag.Code
		pending string
	}{
		"empty, to be formatted":          {disk: DataDisk{}, pending: "format and mount the data disk"},
		"empty, not to be formatted":      {disk: DataDisk{}, change: func(w *Want, _ *Facts) { w.Disk.Format = false }, code: CodeDiskFormat},
		"it has partitions":               {disk: DataDisk{Table: "gpt", Uses: []string{"partition vdb1"}}, code: CodeDiskInUse},
		"it has a file system":            {disk: DataDisk{Type: "ext4", UUID: "u-1", Label: "photos"}, code: CodeDiskInUse},
		"it is of a RAID":                 {disk: DataDisk{Type: "linux_raid_member", Uses: []string{"holder md0"}}, code: CodeDiskInUse},
		"it is swap, not to be formatted": {disk: DataDisk{Type: "swap", UUID: "u-1"}, change: func(w *Want, _ *Facts) { w.Disk.Format = false }, code: CodeDiskInUse},
		"several signatures":              {disk: DataDisk{Uses: []string{"several signatures"}}, code: CodeDiskInUse},
		"a file system to use as it is":   {disk: DataDisk{Type: "xfs", UUID: "u-1"}, change: func(w *Want, _ *Facts) { w.Disk.Format = false }, pending: "mount the data disk"},
		"formatted by a run that was cut": {disk: DataDisk{Type: "ext4", UUID: "u-1", Label: "gpuctl-data"}, pending: "mount the data disk"},
		"mounted, but not at boot":        {disk: DataDisk{Type: "ext4", UUID: "u-1", Label: "gpuctl-data", On: []string{"/var/lib/rancher"}}, pending: "mount the data disk"},
		"mounted by hand, without nofail": {disk: DataDisk{Type: "ext4", UUID: "u-1", On: []string{"/var/lib/rancher"}, Fstab: []string{"UUID=u-1 /var/lib/rancher defaults"}}, change: func(w *Want, _ *Facts) { w.Disk.Format = false }, pending: "mount the data disk"},
		"mounted, now and at boot":        {disk: DataDisk{Type: "ext4", UUID: "u-1", Label: "gpuctl-data", On: []string{"/var/lib/rancher"}, Fstab: []string{line}}},
		"mounted elsewhere":               {disk: DataDisk{Type: "ext4", UUID: "u-1", Label: "gpuctl-data", On: []string{"/mnt"}}, code: CodeDiskInUse},
		"something else is mounted there": {disk: DataDisk{Fstab: []string{"UUID=other /var/lib/rancher defaults"}}, code: CodeDiskInUse},
		"k3s has its data on the root":    {disk: DataDisk{}, change: func(_ *Want, f *Facts) { f.K3s = Known(K3s{Version: "v1.36.3+k3s1"}) }, code: CodeDiskHides},
		"it is not there":                 {change: func(_ *Want, f *Facts) { f.DataDisk = Absent[DataDisk]() }, code: CodeDiskAbsent},
		"it could not be looked at":       {change: func(_ *Want, f *Facts) { f.DataDisk = Unknown[DataDisk]("timeout") }, code: CodeProbeIncomplete},
		"not looked at, and k3s runs there": {change: func(_ *Want, f *Facts) {
			f.DataDisk, f.K3s = Unknown[DataDisk]("timeout"), Known(K3s{Version: "v1.36.3+k3s1"})
		}},
		"none is asked for": {disk: DataDisk{Table: "gpt"}, change: func(w *Want, _ *Facts) { w.Disk = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := onDisk()
			if tc.disk.SizeMiB = 1 << 20; tc.disk.Device == "" {
				tc.disk.Device = "/dev/vdb"
			}
			f.DataDisk = Known(tc.disk)
			if tc.change != nil {
				tc.change(&w, &f)
			}
			var blocking diag.Code
			for _, x := range Findings(w, f) {
				if x.Severity == diag.Blocks {
					blocking = x.Code
				}
			}
			if blocking != tc.code {
				t.Fatalf("%q blocks, want %q", blocking, tc.code)
			}
			pending := ""
			for _, a := range Plan(w, f, nil) {
				if a.ID == DiskID(w.Machine) {
					pending = a.Title
				}
			}
			if tc.code == "" && pending != tc.pending {
				t.Errorf("pending %q, want %q", pending, tc.pending)
			}
		})
	}
}

func TestSmallRootIsNoTroubleWithADataDisk(t *testing.T) {
	w, f := onDisk()
	f.Disks.Value.Mounts = map[string]Mount{"/var/lib": {Type: "ext4", On: "/", SizeMiB: 8 << 10, FreeMiB: 3 << 10}}
	for _, x := range Findings(w, f) {
		t.Errorf("%s: %s", x.Code, x.Evidence)
	}
	w.Disk = nil
	if !diag.AnyBlocks(Findings(w, f)) {
		t.Error("without it, 3 GiB are enough")
	}
}

func TestDiskAndFirewallPlansAreGolden(t *testing.T) {
	w, f := onDisk()
	w.Open = &Open{Machines: []string{"10.0.0.4", "10.0.0.6"}, Ports: []string{"10250/tcp", "8472/udp"}, Pods: []string{"10.42.0.0/16", "10.43.0.0/16"}}
	f.Firewall = Known(Firewall{UFW: true, Firewalld: true, Rules: []string{"allow from 10.0.0.9 comment 'gpuctl'"}})
	fake := remotetest.New(t)
	var scripts strings.Builder
	record := func(_ context.Context, c remote.Cmd, stdin []byte) (remote.Result, error) {
		c.Stdin = strings.NewReader(string(stdin))
		scripts.Write(rendered(c))
		return remote.Result{}, nil
	}
	fake.Expect("format and mount the data disk").Do(record)
	fake.Expect("set firewall rules").Do(record).Times(2)
	actions := Plan(w, f, fake)[:2]
	for _, a := range append(actions, ResetPlan("gpu-1", f, fake)...) {
		if err := a.Apply(t.Context(), say); err != nil {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
	text, err := json.MarshalIndent(append(actions, ResetPlan("gpu-1", f, fake)...), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan-disk-firewall.golden.json", append(text, '\n'))
	golden(t, "script-disk-firewall.golden", []byte(scripts.String()))
}

func TestDataDiskSection(t *testing.T) {
	d, err := parseDataDisk("device=/dev/vdb\nsize=1048576\nuses=partition vdb1\non=/mnt\nTYPE=ext4\nUUID=u-1\nLABEL=data\nPTTYPE=gpt\nfstab=UUID=u-1 /mnt defaults\n")
	if err != nil || d.SizeMiB != 1024 || d.UUID != "u-1" || d.Table != "gpt" || d.holds() != "partition vdb1, partition table gpt, ext4 data" || len(d.Fstab) != 1 || d.On[0] != "/mnt" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := parseDataDisk("size=5\n"); err == nil {
		t.Error("an answer without a device is taken")
	}
}

// TestDiskScriptWritesOverNothing runs the script with tools that answer for a disk.
func TestDiskScriptWritesOverNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		format, wipefs, blkid string
		made                  bool
	}{
		"a signature appeared meanwhile": {"yes", "vdb offset 0x438 ext4", "", false},
		"not asked for":                  {"no", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for command, body := range map[string]string{
				"readlink": "echo /dev/null", "blkid": "exit 2", "wipefs": "echo '" + tc.wipefs + "'", "mkfs.ext4": "touch '" + dir + "/made'",
			} {
				if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// /dev/null is no block device; the check for one is taken out so that the rest is reached.
			script := strings.Replace(diskScript, `[ -b "$device" ] ||`, "true ||", 1)
			cmd := exec.Command("sh", "-s", "--", "/dev/x", filepath.Join(dir, "mount"), tc.format, "gpuctl-data")
			cmd.Stdin, cmd.Env = strings.NewReader(script), []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if _, made := os.Stat(filepath.Join(dir, "made")); err == nil || made == nil || !strings.Contains(string(out), "not empty") {
				t.Errorf("%v: %s; formatted: %v", err, out, made == nil)
			}
		})
	}
}
