package config

import (
	"path"
	"regexp"
)

// DataDisk is a disk of the machine that holds k3s's data: images, volumes, etcd.
type DataDisk struct {
	// Device is the disk; a name below /dev/disk/by-id stays the same from boot to boot.
	Device string `yaml:"device" jsonschema:"required"`
	// Format makes a file system on it. A disk that holds anything at all is refused.
	Format bool `yaml:"format,omitempty"`
	// Mount is where it is mounted; empty means /var/lib/rancher, where k3s keeps its data by itself.
	Mount string `yaml:"mount,omitempty" jsonschema:"default=/var/lib/rancher"`
}

// DefaultMount is where a data disk goes unless said otherwise.
const DefaultMount = "/var/lib/rancher"

func (k checker) dataDisk(d *DataDisk, dataDir, field string) {
	if d == nil {
		return
	}
	if !regexp.MustCompile(`^/dev(/[A-Za-z0-9._:+@-]+)+$`).MatchString(d.Device) || path.Clean(d.Device) != d.Device {
		if d.Device != "" {
			k.problem(field+".device", "%q is not the path of a disk; they look like /dev/disk/by-id/...", d.Device)
		}
	}
	k.dataDir(d.Mount, field+".mount")
	if on := or(d.Mount, DefaultMount); on != path.Clean(on) || on == "/" || on == "/var" || on == "/var/lib" || on == "/home" || on == "/usr" {
		k.problem(field+".mount", "%q holds files of the system; give a folder of its own, such as /data", on)
	} else if dataDir != "" && !within(dataDir, on) {
		k.problem(field, "it is mounted on %s, and dataDir is %s, which is not on it", on, dataDir)
	}
}

func within(dir, parent string) bool {
	return dir == parent || len(dir) > len(parent) && dir[:len(parent)+1] == parent+"/"
}
