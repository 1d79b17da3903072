package charts

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"sort"
	"strings"
)

// Masked stands in the place of a value that may be a secret.
const Masked = "********"

// Change is one value that differs between two sets of Helm values, as text:
// "" is absent. A value that may be a secret is Masked on both sides.
type Change struct {
	// Path is dotted: "driver.enabled".
	Path     string
	From, To string
}

func (c Change) String() string {
	return fmt.Sprintf("%s: %s -> %s", c.Path, orAbsent(c.From), orAbsent(c.To))
}

func orAbsent(s string) string {
	if s == "" {
		return "(absent)"
	}
	return s
}

// Diff lists what differs between two sets of values, by path, fit to be shown:
// what has the name of a secret, or holds one as a URL's password, is masked. It is pure.
func Diff(from, to map[string]any) []Change {
	var all []Change
	diff(from, to, "", &all)
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

func diff(from, to map[string]any, at string, all *[]Change) {
	keys := map[string]bool{}
	for k := range from {
		keys[k] = true
	}
	for k := range to {
		keys[k] = true
	}
	for k := range keys {
		path := k
		if at != "" {
			path = at + "." + k
		}
		had, was := from[k]
		has, is := to[k]
		below, isMap := had.(map[string]any)
		above, isMap2 := has.(map[string]any)
		switch {
		case isMap && isMap2, isMap && !is, isMap2 && !was:
			diff(below, above, path, all)
		case was != is || !reflect.DeepEqual(plain(had), plain(has)):
			*all = append(*all, Change{Path: path, From: shown(path, had, was), To: shown(path, has, is)})
		}
	}
}

// shown is a value as text.
func shown(path string, v any, there bool) string {
	if !there {
		return ""
	}
	text, err := json.Marshal(mask(path[strings.LastIndex(path, ".")+1:], v))
	if err != nil {
		return Masked
	}
	return string(text)
}

// mask replaces what may be a secret in a value that stands under key.
func mask(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = mask(k, x)
		}
		// An environment variable: {name: NGC_API_KEY, value: ...}.
		if name, ok := v["name"].(string); ok && secretName(name) {
			if _, given := v["value"]; given {
				out["value"] = Masked
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = mask(key, x)
		}
		return out
	case string:
		if v != "" && (secretName(key) || hasPassword(v)) {
			return Masked
		}
	case bool, nil:
	default:
		if secretName(key) {
			return Masked
		}
	}
	return v
}

func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "://") && strings.Contains(text, "@")
	}
	return u.User != nil
}

// secretName says whether a key names a secret itself; the names of Kubernetes
// Secret objects are no secrets. It is wider than what gpuctl.yaml refuses:
// showing too little costs nothing here.
func secretName(key string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(key))
	for _, object := range []string{"existingsecret", "imagepullsecret", "imagepullsecrets", "secretname", "secretref"} {
		if strings.HasSuffix(plain, object) {
			return false
		}
	}
	for _, part := range []string{"token", "passw", "passphrase", "secret", "apikey", "accesskey", "privatekey", "credential", "license", "auth"} {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}
