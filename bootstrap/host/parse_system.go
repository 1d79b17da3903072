package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseOSRelease reads os-release(5). Lines that are not KEY=VALUE (a shell's
// locale warnings) are skipped.
func parseOSRelease(text string) (OS, error) {
	m := map[string]string{}
	for _, line := range lines(text) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && isName(k) {
			m[k] = unquote(v)
		}
	}
	if m["ID"] == "" {
		return OS{}, errors.New("os-release has no ID")
	}
	o := OS{
		ID:         strings.ToLower(m["ID"]),
		Like:       strings.Fields(strings.ToLower(m["ID_LIKE"])),
		VersionID:  m["VERSION_ID"],
		Codename:   m["VERSION_CODENAME"],
		PrettyName: m["PRETTY_NAME"],
	}
	o.BaseID, o.BaseVersion = base(o, m["UBUNTU_CODENAME"], m["DEBIAN_CODENAME"])
	o.Family = family(append([]string{o.ID}, o.Like...))
	return o, nil
}

// base finds what a derivative is built on, by the code names it carries.
func base(o OS, ubuntu, debian string) (id, version string) {
	ubuntus := map[string]string{"focal": "20.04", "jammy": "22.04", "noble": "24.04", "resolute": "26.04"}
	debians := map[string]string{"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"}
	switch {
	case o.ID == "ubuntu" || o.ID == "debian":
		return o.ID, o.VersionID
	case ubuntus[ubuntu] != "":
		return "ubuntu", ubuntus[ubuntu]
	case debians[debian] != "":
		return "debian", debians[debian]
	}
	return o.ID, o.VersionID
}

func family(ids []string) string {
	for _, id := range ids {
		switch id {
		case "debian", "ubuntu":
			return "debian"
		case "rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn":
			return "rhel"
		case "suse", "sles", "opensuse", "opensuse-leap":
			return "suse"
		}
	}
	return ""
}

func isName(s string) bool {
	for _, r := range s {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' {
			return false
		}
	}
	return s != ""
}

// unquote undoes the shell quoting that os-release allows.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, `$`, "\\`", "`", `\\`, `\`).Replace(s)
}

func parseSystem(text string) (System, error) {
	m := keys(text)
	if m["kernel"] == "" {
		return System{}, errors.New("no kernel release")
	}
	uptime, _, _ := strings.Cut(m["uptime"], ".")
	uid, err := strconv.Atoi(m["uid"])
	if err != nil {
		return System{}, fmt.Errorf("user id: %w", err)
	}
	return System{
		Kernel: m["kernel"], Arch: m["arch"], Hostname: m["hostname"],
		MachineID: m["machine_id"], ProductUUID: strings.ToLower(m["product_uuid"]),
		Vendor: m["vendor"], Product: m["product"],
		BootID: m["boot_id"], Init: m["init"], UptimeSeconds: number(uptime),
		UID: uid, Login: m["login"], RebootRequired: m["reboot_required"] == "yes",
	}, nil
}

// capSysAdmin is bit 21 of a capability set, see capabilities(7).
const capSysAdmin = 1 << 21

func parseAbilities(text string) (Abilities, error) {
	m := keys(text)
	if m["cgroup"] == "" {
		return Abilities{}, errors.New("no cgroup version")
	}
	caps, err := strconv.ParseUint(m["capeff"], 16, 64)
	if err != nil {
		return Abilities{}, fmt.Errorf("capabilities of process 1: %w", err)
	}
	none := func(s string) string {
		if s == "none" {
			return ""
		}
		return s
	}
	return Abilities{
		Container: none(m["container"]), VM: none(m["vm"]), Markers: values(text, "marker"),
		SysAdmin: caps&capSysAdmin != 0, Mount: m["mount"] == "yes",
		CgroupVersion: int(number(m["cgroup"])), CgroupWritable: m["cgroup_writable"] == "yes",
		MemoryCgroup: m["memory_cgroup"] == "yes",
	}, nil
}

func parseMemory(text string) (Memory, error) {
	var out Memory
	for _, line := range lines(text) {
		k, v, _ := strings.Cut(line, ":")
		n := number(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
		switch k {
		case "MemTotal":
			out.TotalMiB = n / 1024
		case "MemAvailable":
			out.AvailableMiB = n / 1024
		case "SwapTotal":
			out.SwapMiB = n / 1024
		case "CPUs":
			out.CPUs = int(n)
		}
	}
	if out.TotalMiB == 0 {
		return out, errors.New("no MemTotal")
	}
	return out, nil
}

func parseDisks(text string) (Disks, error) {
	out := Disks{Mounts: map[string]Mount{}}
	for _, line := range lines(text) {
		if f := strings.Split(line, "|"); len(f) == 7 && f[0] == "df" {
			out.Mounts[f[1]] = Mount{Device: f[2], On: f[3], SizeMiB: number(f[4]) / 1024, FreeMiB: number(f[5]) / 1024, Type: f[6]}
		} else if strings.HasPrefix(line, "NAME=") {
			p := pairs(line)
			out.Blocks = append(out.Blocks, Block{Name: p["NAME"], Type: p["TYPE"], SizeMiB: number(p["SIZE"]) >> 20, FSType: p["FSTYPE"], On: p["MOUNTPOINT"]})
		}
	}
	if _, ok := out.Mounts["/"]; !ok {
		return out, errors.New("df did not speak of /")
	}
	return out, nil
}

// pairs reads one line of lsblk -P: NAME="sda" TYPE="disk" ...
func pairs(line string) map[string]string {
	m := map[string]string{}
	for {
		k, rest, ok := strings.Cut(line, `="`)
		if !ok {
			return m
		}
		v, tail, ok := strings.Cut(rest, `"`)
		if !ok {
			return m
		}
		m[strings.TrimSpace(k)] = v
		line = tail
	}
}

func parseModules(text string) (map[string]Module, error) {
	out := map[string]Module{}
	for k, v := range keys(text) {
		switch m := Module(v); m {
		case ModuleReady, ModuleAvailable, ModuleMissing:
			out[k] = m
		}
	}
	if len(out) == 0 {
		return nil, errors.New("empty answer")
	}
	return out, nil
}

func parseSysctls(text string) (map[string]string, error) {
	m := keys(text)
	if len(m) == 0 {
		return nil, errors.New("empty answer")
	}
	return m, nil
}
