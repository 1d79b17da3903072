package nvidia

import (
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Repositories is where NVIDIA's package repositories lie, one directory a
// distribution: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/.
const Repositories = "https://developer.download.nvidia.com/compute/cuda/repos"

// Origin says whose packages bring a driver.
type Origin string

const (
	// OriginNVIDIA: NVIDIA's repository, modules built on the machine by DKMS.
	OriginNVIDIA Origin = "nvidia"
	// OriginUbuntu: Ubuntu's archive, modules built and signed by Canonical.
	OriginUbuntu Origin = "ubuntu"
)

// Source is a package repository of gpuctl's on a machine; the zero value is
// one that the machine has already.
type Source struct {
	Repository     string `json:"repository,omitempty"`
	KeyURL         string `json:"keyURL,omitempty"`
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
}

// DriverPackages are the packages that bring a driver.
type DriverPackages struct {
	Origin Origin `json:"origin"`
	Source Source `json:"source,omitzero"`
	// Pin is a package that keeps apt on the branch; it is installed first.
	Pin string `json:"pin,omitempty"`
	// Kernel and a kernel's release make the package that belongs to that kernel:
	// headers, or signed modules.
	Kernel   string   `json:"kernel"`
	Packages []string `json:"packages"`
	// FabricManager is the package of the fabric manager; its version must be the driver's.
	FabricManager string `json:"fabricManager"`
}

// keyFile is the name of a repository's key beside its packages, "" where none
// is known. Ubuntu and Debian 12: NVIDIA's installation guide. Debian 13 has a
// key of its own. That of Ubuntu 26.04 could not be confirmed.
func keyFile(name string) string {
	switch name {
	case "ubuntu2204", "ubuntu2404", "debian12":
		return "3bf863cc.pub"
	case "debian13":
		return "8793F200.pub"
	}
	return ""
}

// PackagesFor names the packages of a choice on a machine, or returns the
// finding that says why there are none.
//
// NVIDIA's repositories hold nvidia-open and cuda-drivers, and from 2025 on
// nvidia-driver-pinning-BRANCH (driver installation guide, "Version locking").
// Under Secure Boot only Ubuntu has modules that load:
// linux-modules-nvidia-BRANCH-server[-open]-KERNEL with nvidia-headless-no-dkms-
// and nvidia-utils- of the same branch (Ubuntu's "ubuntu-drivers list --gpgpu").
func PackagesFor(want Want, seen host.Facts, c Choice) (DriverPackages, *diag.Finding) {
	refuse := func(code diag.Code, format string, args ...any) (DriverPackages, *diag.Finding) {
		f := diag.Found(code, want.Machine, fmt.Sprintf(format, args...))
		return DriverPackages{}, &f
	}
	os := seen.OS.Value
	if !seen.OS.Has() || seen.Packages.Value.Manager != "apt" {
		return refuse(CodeNoPackage, "%s: gpuctl knows the driver packages of Ubuntu and Debian", os.PrettyName)
	}
	signed := seen.SecureBoot.Has() && seen.SecureBoot.Value
	name := os.BaseID + strings.ReplaceAll(os.BaseVersion, ".", "")
	switch {
	case os.BaseID == "ubuntu" && (signed || origin(seen) == OriginUbuntu || keyFile(name) == ""):
		return ubuntuPackages(c), nil
	case signed:
		return refuse(CodeSecureBoot, "Secure Boot is on, and %s has no signed modules", os.PrettyName)
	case keyFile(name) == "":
		return refuse(CodeNoPackage, "NVIDIA's repository for %s %s is not known", os.BaseID, os.BaseVersion)
	}
	arch := "x86_64"
	if seen.System.Value.Arch == "aarch64" {
		if os.BaseID != "ubuntu" {
			return refuse(CodeNoPackage, "NVIDIA's repository for %s on %s is not known", name, seen.System.Value.Arch)
		}
		arch = "sbsa"
	}
	return nvidiaPackages(c, want.source(name, arch)), nil
}

func ubuntuPackages(c Choice) DriverPackages {
	open := ""
	if c.Flavour == FlavourOpen {
		open = "-open"
	}
	return DriverPackages{
		Origin: OriginUbuntu,
		Kernel: fmt.Sprintf("linux-modules-nvidia-%d-server%s", c.Branch, open),
		Packages: []string{
			fmt.Sprintf("nvidia-headless-no-dkms-%d-server%s", c.Branch, open), fmt.Sprintf("nvidia-utils-%d-server", c.Branch),
		},
		FabricManager: fmt.Sprintf("nvidia-fabricmanager-%d", c.Branch),
	}
}

func nvidiaPackages(c Choice, s Source) DriverPackages {
	p := DriverPackages{
		Origin: OriginNVIDIA, Source: s, Pin: fmt.Sprintf("nvidia-driver-pinning-%d", c.Branch),
		Kernel: "linux-headers", Packages: []string{"nvidia-open"}, FabricManager: "nvidia-fabricmanager",
	}
	if c.Flavour == FlavourProprietary {
		p.Packages = []string{"cuda-drivers"}
	}
	if c.Branch < 580 { // later ones carry no branch in the name
		p.FabricManager = fmt.Sprintf("nvidia-fabricmanager-%d", c.Branch)
	}
	return p
}

// source is NVIDIA's repository of that name, at its own place or a mirror's.
func (w Want) source(name, arch string) Source {
	base := strings.TrimRight(w.Driver.Repository, "/")
	if base == "" {
		base = Repositories
	}
	s := Source{Repository: base + "/" + name + "/" + arch, KeyFingerprint: w.Driver.KeyFingerprint}
	s.KeyURL = s.Repository + "/" + keyFile(name)
	if own := w.Driver.Keys[name]; own != "" {
		s.KeyFingerprint = own
	}
	return s
}

// origin tells whose driver packages are installed, "" where none are.
func origin(seen host.Facts) Origin {
	found := Origin("")
	for name := range seen.Packages.Value.Installed {
		switch {
		case strings.HasPrefix(name, "linux-modules-nvidia-"), strings.HasPrefix(name, "nvidia-utils-") && strings.HasSuffix(name, "-server"):
			return OriginUbuntu
		case name == "nvidia-open", name == "cuda-drivers", name == "nvidia-driver-cuda", strings.HasPrefix(name, "nvidia-driver-pinning-"):
			found = OriginNVIDIA
		}
	}
	return found
}

// names lists what is installed on a kernel, in order.
func (p DriverPackages) names(kernel string) []string {
	var out []string
	if p.Pin != "" {
		out = append(out, p.Pin)
	}
	return append(append(out, p.Kernel+"-"+kernel), p.Packages...)
}

// DriverSource is NVIDIA's repository of drivers for a system ("ubuntu2404") and
// an architecture as Go names it, at its own place or below a mirror.
func DriverSource(system, arch, mirror, fingerprint string, keys map[string]string) (Source, error) {
	if keyFile(system) == "" {
		return Source{}, fmt.Errorf("NVIDIA's repository for %q is not known; there are ubuntu2204, ubuntu2404, debian12, debian13", system)
	}
	folder := "x86_64"
	if arch == "arm64" {
		if !strings.HasPrefix(system, "ubuntu") {
			return Source{}, fmt.Errorf("NVIDIA's repository for %s on arm64 is not known", system)
		}
		folder = "sbsa"
	}
	w := Want{Driver: Driver{KeyFingerprint: fingerprint, Keys: keys}}
	if mirror != "" {
		w.Driver.Repository = mirror + "/cuda/repos"
	}
	return w.source(system, folder), nil
}
