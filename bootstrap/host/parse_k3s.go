package host

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

func parseK3s(text string) (K3s, error) {
	m := keys(text)
	k := K3s{
		Banner: m["banner"], Path: m["path"], SHA256: m["sha256"], ServerURL: unquote(m["url"]),
		Units: map[string]Unit{}, ConfigKeys: map[string][]string{},
	}
	for _, w := range strings.Fields(k.Banner) {
		if strings.HasPrefix(w, "v") && strings.Contains(w, ".") && k.Version == "" {
			k.Version = w
		}
	}
	for _, v := range values(text, "key") {
		if file, key, ok := strings.Cut(v, " "); ok {
			k.ConfigKeys[file] = append(k.ConfigKeys[file], key)
		}
	}
	for _, v := range values(text, "own") {
		if k.InForce == nil {
			k.InForce = map[string]string{}
		}
		key, value, _ := strings.Cut(v, " ")
		k.InForce[key] = unquote(value)
	}
	unit := ""
	for _, line := range lines(text) {
		key, v, _ := strings.Cut(line, "=")
		if key == "unit" {
			unit = strings.TrimSpace(v)
			k.Units[unit] = Unit{}
		} else if unit != "" {
			k.Units[unit] = k.Units[unit].with(key, strings.TrimSpace(v))
		}
	}
	k.Containerd = parseContainerd(values(text, "toml"))
	k.Containerd.Templates = values(text, "template")
	return k, nil
}

// with sets a property of systemctl show; others are ignored.
func (u Unit) with(key, value string) Unit {
	switch key {
	case "ActiveState":
		u.Active = value
	case "SubState":
		u.Sub = value
	case "UnitFileState":
		u.Enabled = value
	case "NRestarts":
		u.Restarts = int(number(value))
	case "ExecMainStartTimestampMonotonic":
		u.StartedMonotonic = number(value)
	case "MainPID":
		u.PID = int(number(value))
	}
	return u
}

// The name of a runtime is in quotes or not: runtimes.'nvidia', runtimes."nvidia", runtimes.nvidia.
var runtimeTable = regexp.MustCompile(`\.runtimes\.['"]?([A-Za-z0-9_-]+)['"]?(?:\.options)?\]`)

func parseContainerd(toml []string) ContainerdConfig {
	c := ContainerdConfig{Runtimes: map[string]string{}}
	table := ""
	for _, line := range toml {
		if strings.HasPrefix(line, "[") {
			table = ""
			if f := runtimeTable.FindStringSubmatch(line); f != nil {
				table = f[1]
				c.Runtimes[table] += ""
			}
			continue
		}
		key, v, _ := strings.Cut(line, "=")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "version":
			c.Schema = int(number(v))
		case "imports":
			c.Imports = v
		case "default_runtime_name":
			c.Default = unquote(v)
		case "BinaryName":
			if table != "" {
				c.Runtimes[table] = unquote(v)
			}
		}
	}
	return c
}

// parseFiles reads kind, "mode uid gid size", hash, path and link target, by tabs.
func parseFiles(text string) (map[string]File, error) {
	out := map[string]File{}
	for _, line := range lines(text) {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			continue
		}
		stat := strings.Fields(f[1])
		if len(stat) != 4 {
			return out, errors.New("stat of " + strconv.Quote(f[3]) + " failed")
		}
		file := File{Kind: f[0], Mode: stat[0], UID: int(number(stat[1])), GID: int(number(stat[2])), Size: number(stat[3])}
		if f[2] != "-" {
			file.Hash = f[2]
		}
		if f[4] != "-" {
			file.Target = f[4]
		}
		out[f[3]] = file
	}
	return out, nil
}

// parseOthers joins traces on disk with running processes. A foreign kubelet
// is only ever told by its process.
func parseOthers(text string) ([]Other, error) {
	out := []Other{}
	at := map[string]int{}
	names := map[string]string{"kubelite": "microk8s", "dockerd": "docker", "crio": "cri-o"}
	for _, line := range lines(text) {
		f := strings.Split(line, "|")
		if len(f) != 3 {
			continue
		}
		name, detail := f[1], f[2]
		running := f[0] == "process"
		if running {
			detail = f[1] + " (process " + f[2] + ")"
			if n := names[name]; n != "" {
				name = n
			}
		}
		i, ok := at[name]
		if !ok {
			at[name] = len(out)
			out = append(out, Other{Name: name, Detail: detail, Running: running})
			continue
		}
		if running && !out[i].Running {
			out[i].Detail, out[i].Running = detail, true
		}
	}
	return out, nil
}
