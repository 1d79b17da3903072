package config

import (
	"slices"
	"strconv"
	"strings"
)

// field is a key and its value as YAML text.
type field struct{ key, value string }

// machineFields are the fields of a machine that are said, in the order in which people write them.
func machineFields(m Machine) []field {
	var out []field
	say := func(key, value string) {
		if value != "" {
			out = append(out, field{key, scalarYAML(value)})
		}
	}
	say("name", m.Name)
	say("role", m.Role)
	say("group", m.Group)
	say("host", m.Host)
	say("user", m.User)
	if m.Port != 0 {
		out = append(out, field{"port", strconv.Itoa(m.Port)})
	}
	say("identityFile", m.IdentityFile)
	say("jump", m.Jump)
	say("hostKey", m.HostKey)
	say("privateAddress", m.PrivateAddress)
	say("dataDir", m.DataDir)
	if m.GPUs != nil {
		out = append(out, field{"gpus", strconv.Itoa(*m.GPUs)})
	}
	say("gpuModel", m.GPUModel)
	return out
}

// addressFields are those of a machine's way that differ from the old ones.
func addressFields(m, old Machine) []field {
	var out []field
	if m.Host != old.Host {
		out = append(out, field{"host", scalarYAML(m.Host)})
	}
	if m.User != old.User {
		out = append(out, field{"user", scalarYAML(m.User)})
	}
	if m.Port != old.Port {
		out = append(out, field{"port", strconv.Itoa(m.Port)})
	}
	return out
}

func inline(m Machine) string {
	var parts []string
	for _, f := range machineFields(m) {
		parts = append(parts, f.key+": "+f.value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// scalarYAML writes a string that is read back as the same string: plain where
// it can be nothing else, quoted otherwise.
func scalarYAML(s string) string {
	plain := s != "" && strings.ContainsAny(s[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/~")
	for _, r := range s {
		plain = plain && (r == '-' || r == '.' || r == '_' || r == '/' || r == '@' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z'))
	}
	if plain && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "inf", "nan"}, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}
