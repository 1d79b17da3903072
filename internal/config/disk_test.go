package config

import (
	"reflect"
	"testing"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// TestDataDisk: a machine's own disk, its group's, none; and where k3s's data go then.
func TestDataDisk(t *testing.T) {
	c, err := Parse([]byte(`apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  groups: [{name: big, dataDisk: {device: /dev/disk/by-id/virtio-data, format: true}}]
  machines:
    - {host: 203.0.113.1, role: server}
    - {host: 203.0.113.2, group: big}
    - {host: 203.0.113.3, group: big, dataDisk: {device: /dev/nvme1n1, mount: /data}}
    - {host: 203.0.113.4, dataDir: /data/other/k3s, dataDisk: {device: /dev/nvme1n1, mount: /data}}
`), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		dir  string
		disk *inventory.DataDisk
	}{
		{"", nil},
		{"", &inventory.DataDisk{Device: "/dev/disk/by-id/virtio-data", Format: true, Mount: "/var/lib/rancher"}},
		{"/data/k3s", &inventory.DataDisk{Device: "/dev/nvme1n1", Mount: "/data"}},
		{"/data/other/k3s", &inventory.DataDisk{Device: "/dev/nvme1n1", Mount: "/data"}},
	} {
		m := c.Inventory().Machines[i]
		if m.DataDir != want.dir || !reflect.DeepEqual(m.DataDisk, want.disk) {
			t.Errorf("machine %d: data in %q on %+v, want %q on %+v", i, m.DataDir, m.DataDisk, want.dir, want.disk)
		}
	}
}
