package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// pluginConfig looks at the configurations that the device plugin was given,
// also those of an operator that gpuctl did not install: keys that it passes
// over without a word, and what it rejects (k8s-device-plugin#1433, #353, #929).
func (e *exam) pluginConfig() {
	for _, name := range slices.Sorted(maps.Keys(e.seen.PluginConfigs)) {
		refused, dead := sharing.CheckDocument(e.seen.PluginConfigs[name])
		if len(refused) > 0 {
			e.raise("sharing-refused", "", "%s: %s", name, strings.Join(refused, "; "))
		}
		if len(dead) > 0 {
			e.raise("sharing-dead-keys", "", "%s: %s", name, strings.Join(dead, "; "))
		}
	}
}
