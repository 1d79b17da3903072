package gpu

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/boot"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Versions of the stand-in driver packages. Without a pin apt takes the newer one.
const (
	Driver      = "580.95.05"
	NewerDriver = "595.71.05"
)

// Drivers returns a directory of .deb files that stand in for NVIDIA's driver
// packages: true names, and contents that make a machine's simulated GPUs come
// alive as a driver would.
func Drivers(ctx context.Context, c recipe.Cache) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	kernel := unix.ByteSliceToString(u.Release[:])
	return c.Get(ctx, recipe.Recipe{
		Name:   "driver-debs",
		Inputs: []string{filepath.Join(src, "lab/gpu/drivers.go"), filepath.Join(src, "lab/gpu/debs.go"), filepath.Join(src, "lab/gpu/boot/installed.go")},
		Salt:   kernel,
		Build: func(ctx context.Context, out string) error {
			for _, d := range driverDebs(kernel) {
				if err := d.pack(ctx, out); err != nil {
					return fmt.Errorf("packing %s %s: %w", d.name, d.version, err)
				}
			}
			return nil
		},
	})
}

// standsIn is the description of every package here.
const standsIn = "A stand-in of the gpuctl lab: it has the name, not NVIDIA's software."

func driverDebs(kernel string) []deb {
	out := []deb{
		pinOf("580", Driver), pinOf("595", NewerDriver),
		{
			name: "linux-headers-" + kernel, version: "1-1", depends: "libc6",
			description: "Headers of the kernel that runs here\n " + standsIn,
			files:       map[string]string{"/usr/src/linux-headers-" + kernel + "/README": "=stand-in\n"},
		},
	}
	for _, v := range []string{Driver, NewerDriver} {
		out = append(out, driverOf(v)...)
	}
	return out
}

func pinOf(branch, version string) deb {
	name := "nvidia-driver-pinning-" + branch
	return deb{
		name: name, version: version + "-1", depends: "libc6", description: "Keeps apt on driver branch " + branch + "\n " + standsIn,
		files: map[string]string{
			"/etc/apt/preferences.d/" + name: "=Package: nvidia-* cuda-drivers libnv*\nPin: version " + branch + ".*\nPin-Priority: 1001\n",
		},
	}
}

func driverOf(version string) []deb {
	v := version + "-1"
	unit := func(what string) string {
		return "=[Unit]\nDescription=" + what + " (stand-in)\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n" +
			"[Install]\nWantedBy=multi-user.target\n"
	}
	laid := map[string]string{"postinst": "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n\t/usr/lib/lab/gpu-boot installed\nfi\n"}
	meta := func(name, modules string) deb {
		return deb{name: name, version: v, depends: fmt.Sprintf("%s (= %s), nvidia-driver-cuda (= %s)", modules, v, v),
			description: "NVIDIA driver\n " + standsIn, files: map[string]string{"/usr/share/doc/" + name + "/README": "=stand-in\n"}}
	}
	modules := func(name, flavour, other string) deb {
		return deb{name: name, version: v, depends: "libc6\nConflicts: " + other, description: "NVIDIA kernel modules\n " + standsIn,
			files: map[string]string{boot.InstalledModules: "=" + flavour + " " + version + "\n"}, scripts: laid}
	}
	return []deb{
		meta("nvidia-open", "nvidia-kernel-open-dkms"), meta("cuda-drivers", "nvidia-kernel-dkms"),
		modules("nvidia-kernel-open-dkms", "open", "nvidia-kernel-dkms"),
		modules("nvidia-kernel-dkms", "proprietary", "nvidia-kernel-open-dkms"),
		{
			name: "nvidia-driver-cuda", version: v, depends: "libc6", description: "NVIDIA driver libraries\n " + standsIn,
			files: map[string]string{
				boot.InstalledLibrary:                             "=" + version + "\n",
				"/lib/systemd/system/nvidia-persistenced.service": unit("NVIDIA Persistence Daemon"),
			},
			scripts: laid,
		},
		{
			name: "nvidia-fabricmanager", version: v, depends: "libc6", description: "NVIDIA Fabric Manager\n " + standsIn,
			files:   map[string]string{boot.InstalledFabric: unit("NVIDIA Fabric Manager")},
			scripts: laid,
		},
	}
}
