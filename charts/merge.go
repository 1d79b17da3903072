package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
)

// Merge lays over onto base and returns a new map; both stay as they are. A map
// is merged key by key, anything else (a list too) replaces what was there. The
// second result lists, sorted, the dotted paths where over changed a value that
// base had already: the overrides a report has to name.
func Merge(base, over map[string]any) (map[string]any, []string) {
	var overrides []string
	merged := merge(base, over, "", &overrides)
	sort.Strings(overrides)
	return merged, overrides
}

func merge(base, over map[string]any, at string, overrides *[]string) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	for k, v := range base {
		out[k] = clone(v)
	}
	for k, v := range over {
		path := k
		if at != "" {
			path = at + "." + k
		}
		below, isMap := out[k].(map[string]any)
		if mine, ok := v.(map[string]any); ok && isMap {
			out[k] = merge(below, mine, path, overrides)
			continue
		}
		if had, ok := out[k]; ok && !reflect.DeepEqual(plain(had), plain(v)) {
			*overrides = append(*overrides, path)
		}
		out[k] = clone(v)
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	default:
		return v
	}
}

// plain brings a value to what JSON makes of it, so that 1 (int), 1 (uint64, from
// YAML) and 1 (float64, from a stored release) are the same.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return v
	}
	return out
}

// HashValues is a fingerprint of values, the same for equal values in any order
// and number type. It does not reveal them.
func HashValues(values map[string]any) (string, error) {
	if len(values) == 0 {
		values = map[string]any{}
	}
	text, err := json.Marshal(plain(values))
	if err != nil {
		return "", fmt.Errorf("hashing values: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
