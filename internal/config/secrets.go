package config

import (
	"fmt"
	"strings"
)

// noSecrets refuses values under names of secrets in maps that are only passed
// on. Names of files, and names of Kubernetes Secret objects, are no secrets.
func (k checker) noSecrets(v any, field string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			at := join(field, key)
			if secretName(key) && holdsText(value) {
				k.problem(at, "has the name of a secret, and secrets do not stand in this file; say where it is instead: {env: NAME} or {file: PATH}")
				continue
			}
			k.noSecrets(value, at)
		}
	case []any:
		for i, item := range v {
			k.noSecrets(item, fmt.Sprintf("%s[%d]", field, i))
		}
	}
}

func holdsText(v any) bool {
	switch v := v.(type) {
	case string:
		return v != ""
	case int64, float64:
		return true
	}
	return false
}

func secretName(key string) bool {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(key))
	for _, object := range []string{"existingsecret", "imagepullsecret"} {
		if strings.HasSuffix(plain, object) {
			return false
		}
	}
	for _, end := range []string{"token", "password", "passwd", "passphrase", "secret", "secretkey", "apikey", "accesskey", "privatekey", "credentials", "datastoreendpoint"} {
		if strings.HasSuffix(plain, end) {
			return true
		}
	}
	return false
}
