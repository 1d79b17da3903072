package gpu

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// deb is one Debian package: its control fields, its files (path to source
// file; a source that begins with "=" is the content) and maintainer scripts.
type deb struct {
	name, version, depends, description string
	files                               map[string]string
	conffiles                           []string
	scripts                             map[string]string
}

// debsRecipe packs the toolkit as its own packaging/debian does, in both
// versions. libnvidia-container is C and not built here.
func debsRecipe(src string, c recipe.Cache) recipe.Recipe {
	salt := ""
	versions := []string{Toolkit, OlderToolkit}
	for _, v := range versions {
		salt += c.Key(toolkitTools(v).recipe(src))
	}
	return recipe.Recipe{
		Name:   "nvidia-debs",
		Inputs: []string{filepath.Join(src, "lab/gpu/debs.go")},
		Salt:   salt,
		Build: func(ctx context.Context, out string) error {
			module, err := moduleDir(ctx, filepath.Join(src, "lab/nvidia/toolkit"), toolkitModule)
			if err != nil {
				return err
			}
			for _, v := range versions {
				bin, err := c.Get(ctx, toolkitTools(v).recipe(src))
				if err != nil {
					return err
				}
				for _, d := range toolkitDebs(v, bin, module) {
					if err := d.pack(ctx, out); err != nil {
						return fmt.Errorf("packing %s %s: %w", d.name, d.version, err)
					}
				}
			}
			return nil
		},
	}
}

// toolkitDebs follows packaging/debian of the toolkit's repository. Units and
// the udev rule come from the module itself.
func toolkitDebs(version, bin, module string) []deb {
	b := func(name string) string { return filepath.Join(bin, name) }
	m := func(path string) string { return filepath.Join(module, path) }
	const units = "/lib/systemd/system/"
	stub := "=#!/bin/sh\necho 'nvidia-container-cli: a stand-in without function' >&2\nexit 1\n"
	return []deb{
		{
			name: "nvidia-container-toolkit", version: version,
			depends:     fmt.Sprintf("nvidia-container-toolkit-base (= %s), libnvidia-container-tools (= %s)", version, version),
			description: "NVIDIA Container toolkit\n Built for the gpuctl lab from NVIDIA's sources.",
			files:       map[string]string{"/usr/bin/nvidia-container-runtime-hook": b("nvidia-container-runtime-hook")},
			scripts: map[string]string{
				"postinst": "#!/bin/sh\nset -e\nif [ \"$1\" = configure ] && [ ! -e /usr/bin/nvidia-container-toolkit ]; then\n" +
					"\tln -s /usr/bin/nvidia-container-runtime-hook /usr/bin/nvidia-container-toolkit\nfi\n",
				"postrm": "#!/bin/sh\nset -e\nif [ \"$1\" = purge ] && [ -L /usr/bin/nvidia-container-toolkit ]; then\n" +
					"\trm /usr/bin/nvidia-container-toolkit\nfi\n",
			},
		},
		{
			name: "nvidia-container-toolkit-base", version: version, depends: "libc6",
			description: "NVIDIA Container Toolkit Base\n Built for the gpuctl lab from NVIDIA's sources.",
			files: map[string]string{
				"/usr/bin/nvidia-container-runtime":                              b("nvidia-container-runtime"),
				"/usr/bin/nvidia-ctk":                                            b("nvidia-ctk"),
				"/usr/bin/nvidia-cdi-hook":                                       b("nvidia-cdi-hook"),
				units + "nvidia-cdi-refresh.service":                             m("deployments/systemd/nvidia-cdi-refresh.service"),
				units + "nvidia-cdi-refresh.path":                                m("deployments/systemd/nvidia-cdi-refresh.path"),
				units + "nvidia-cdi-refresh.service.d/10-container-engines.conf": m("deployments/systemd/10-container-engines.conf"),
				"/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env":           m("deployments/systemd/nvidia-cdi-refresh.env"),
				"/lib/udev/rules.d/99-nvidia-cdi-refresh.rules":                  m("deployments/udev/99-nvidia-cdi-refresh.rules"),
			},
			conffiles: []string{"/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"},
			scripts:   map[string]string{"postinst": basePostinst, "prerm": basePrerm},
		},
		{
			name: "nvidia-container-toolkit-operator-extensions", version: version,
			depends:     fmt.Sprintf("nvidia-container-toolkit-base (= %s)", version),
			description: "NVIDIA Container Toolkit Operator Extensions\n Built for the gpuctl lab from NVIDIA's sources.",
			files:       map[string]string{"/usr/bin/nvidia-container-runtime.cdi": b("nvidia-container-runtime.cdi")},
		},
		{
			name: "libnvidia-container-tools", version: version,
			depends:     fmt.Sprintf("libc6, libnvidia-container1 (>= %s)", version),
			description: "NVIDIA container runtime library (command-line tools)\n A stand-in of the gpuctl lab: it has the files, not the function.",
			files:       map[string]string{"/usr/bin/nvidia-container-cli": stub},
		},
		{
			name: "libnvidia-container1", version: version, depends: "libc6",
			description: "NVIDIA container runtime library\n A stand-in of the gpuctl lab: it has the files, not the function.",
			files: map[string]string{
				"/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1":    "=stand-in\n",
				"/usr/lib/x86_64-linux-gnu/libnvidia-container-go.so.1": "=stand-in\n",
			},
		},
	}
}

// What debhelper makes of #DEBHELPER# for two units, shortened.
const basePostinst = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
	/usr/bin/nvidia-ctk --quiet config --config-file=/etc/nvidia-container-runtime/config.toml --in-place
	if command -v udevadm >/dev/null 2>&1; then
		udevadm control --reload-rules >/dev/null 2>&1 || true
	fi
	for unit in nvidia-cdi-refresh.service nvidia-cdi-refresh.path; do
		deb-systemd-helper unmask $unit >/dev/null || true
		if deb-systemd-helper --quiet was-enabled $unit; then
			deb-systemd-helper enable $unit >/dev/null || true
		fi
	done
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		deb-systemd-invoke start nvidia-cdi-refresh.path nvidia-cdi-refresh.service >/dev/null || true
	fi
fi
`

const basePrerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop nvidia-cdi-refresh.path nvidia-cdi-refresh.service >/dev/null || true
fi
`

func (d deb) pack(ctx context.Context, out string) error {
	root, err := os.MkdirTemp(out, ".deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		if err := lay(filepath.Join(root, path), d.files[path], 0o644); err != nil {
			return err
		}
		if strings.HasPrefix(path, "/usr/bin/") {
			if err := os.Chmod(filepath.Join(root, path), 0o755); err != nil {
				return err
			}
		}
	}
	control := map[string]string{
		"control": fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nSection: utils\nPriority: optional\n"+
			"Maintainer: gpuctl lab <lab@gpuctl.dev>\nDepends: %s\nDescription: %s\n", d.name, d.version, d.depends, d.description),
	}
	if len(d.conffiles) > 0 {
		control["conffiles"] = strings.Join(d.conffiles, "\n") + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(control)) {
		if err := lay(filepath.Join(root, "DEBIAN", name), "="+control[name], 0o644); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.scripts)) {
		if err := lay(filepath.Join(root, "DEBIAN", name), "="+d.scripts[name], 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	file := filepath.Join(out, fmt.Sprintf("%s_%s_amd64.deb", d.name, d.version))
	_, err = run(ctx, "", nil, "dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "--build", root, file)
	return err
}

// lay copies from, or writes it when it begins with "=".
func lay(path, from string, mode os.FileMode) error {
	content, literal := strings.CutPrefix(from, "=")
	data := []byte(content)
	if !literal {
		var err error
		if data, err = os.ReadFile(from); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, mode)
}
