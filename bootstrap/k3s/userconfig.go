package k3s

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// userConfigFindings compares the keys of the machine's other k3s
// configuration files with what gpuctl sets. k3s reads config.yaml first, then
// config.yaml.d by name: a later file replaces a plain key, and a plain list
// replaces all that "key+" has collected (pkg/configfilearg/parser.go).
func userConfigFindings(w Want, s Seen) []diag.Finding {
	var out []diag.Finding
	found := func(code diag.Code, severity diag.Severity, file, format string, args ...any) {
		f := diag.Found(code, w.Machine, file+": "+fmt.Sprintf(format, args...))
		f.Severity = severity
		out = append(out, f)
	}
	own := ownKeys(w)
	for _, file := range sortedKeys(s.ConfigKeys) {
		if file == OwnConfig {
			continue
		}
		later := file != UserConfig && path.Base(file) > path.Base(OwnConfig)
		for _, key := range s.ConfigKeys[file] {
			name := strings.TrimSuffix(key, "+")
			adds, isOwn := own[name]
			switch {
			case !w.Server() && !slices.Contains(KnownKeys(w.Role), name):
				found("k3s-unknown-key", diag.Blocks, file, "%s stops a k3s agent", name)
			case name == "data-dir" && w.Data() == DefaultDataDir:
				found("k3s-config-conflict", diag.Blocks, file, "data-dir moves k3s's data: set machines[].dataDir to it")
			case name == "server" && w.First(), strings.HasPrefix(name, "cluster-reset"), name == "datastore-endpoint" && w.Datastore == Etcd:
				found("k3s-config-conflict", diag.Blocks, file, "%s would make this server part of another cluster or reset it", name)
			case later && isOwn && key == name:
				found("k3s-config-conflict", diag.Blocks, file, "%s is read after %s and replaces what gpuctl sets", name, path.Base(OwnConfig))
			case isOwn && !adds:
				found("k3s-config-conflict", diag.Warns, file, "%s is set too; the value of gpuctl counts", name)
			case name == "disable" || name == "flannel-backend" || name == "cluster-cidr" || name == "service-cidr":
				found("k3s-config-conflict", diag.Warns, file, "%s stays in force", name)
			}
		}
	}
	return out
}

// ownKeys are the keys gpuctl's drop-in sets, and whether it adds to them ("key+").
func ownKeys(w Want) map[string]bool {
	keys := map[string]bool{}
	for _, line := range strings.Split(Config(w), "\n") {
		if key, _, ok := strings.Cut(line, ":"); ok && key != "" && !strings.HasPrefix(key, " ") && !strings.HasPrefix(key, "#") {
			name, adds := strings.CutSuffix(key, "+")
			keys[name] = adds
		}
	}
	return keys
}
