package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/source"
)

// resolve fetches the secrets that the configuration only names, once, and
// tells them to whoever masks records. Commands that need none never ask.
func (e *Engine) resolve() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.want.resolved {
		return nil
	}
	var secrets []string
	keep := func(text string) {
		e.settings.Secret(text)
		secrets = append(secrets, text)
	}
	c, err := e.want.config.Resolved(func(s config.Secret, field string) (string, error) {
		text, err := e.settings.Read(s, field)
		if err == nil {
			keep(text)
		}
		return text, err
	})
	if err != nil {
		return err
	}
	for _, encoded := range encodedSecrets(c.Spec) {
		keep(encoded)
	}
	want := e.want
	if want.token, err = want.joinToken(); err != nil {
		return err
	}
	if want.token != "" {
		e.settings.Secret(want.token)
		secrets = append(secrets, want.token)
	}
	want.config, want.secrets, want.resolved = c, secrets, true
	if _, _, err := want.registries(); err != nil {
		return &config.InvalidError{Problems: []config.Problem{{Field: "spec.kubernetes.registries", Message: err.Error()}}}
	}
	e.want = want
	e.fleet.setEnv(downloadEnv(c.Spec.Proxy))
	return nil
}

// encodedSecrets are secrets in the form in which they travel.
func encodedSecrets(s config.Spec) []string {
	var out []string
	for _, src := range []config.Source{s.Sources.K3s, s.Sources.Packages, s.Sources.Charts, s.Sources.Images} {
		out = append(out, sourceOf(src).Secrets()...)
	}
	for _, proxy := range []string{s.Proxy.HTTP, s.Proxy.HTTPS} {
		if with := s.Proxy.With(proxy); with != proxy {
			out = append(out, with)
		}
	}
	return out
}

// sourceOf is how to be let into a mirror.
func sourceOf(s config.Source) source.Source {
	return source.Source{URL: s.URL, Username: s.Username, Password: s.Password.Text(), Token: s.Token.Text(), CA: s.CA()}
}

// whole stands something in for secrets that were not fetched, so that whoever
// only looks is not told that a reference is no value.
func (w wanted) whole() wanted {
	if !w.resolved {
		c, err := w.config.Resolved(func(config.Secret, string) (string, error) { return "not-fetched", nil })
		if err == nil { // certificates may be missing, and whoever only looks does without
			w.config = c
		}
	}
	return w
}

// observeToPlan is observe for those who plan: what is wanted must be whole then.
func (e *Engine) observeToPlan(ctx context.Context) (sight, error) {
	if err := e.resolve(); err != nil {
		return sight{}, err
	}
	return e.observe(ctx)
}

// registries is the user's registries.yaml and the files it needs beside it: a
// certificate or key that stands in the place of a path is laid on the machine.
func (w wanted) registries() ([]byte, []k3s.File, error) {
	given := w.shared(w.withMirror(w.config.Spec.Kubernetes.Registries))
	if len(given) == 0 {
		return nil, nil, nil
	}
	out := maps.Clone(given)
	var files []k3s.File
	if configs, ok := given["configs"].(map[string]any); ok {
		lay := maps.Clone(configs)
		for _, host := range slices.Sorted(maps.Keys(configs)) {
			entry, beside, err := layTLS(host, configs[host])
			if err != nil {
				return nil, nil, fmt.Errorf("configs.%s.tls: %w", host, err)
			}
			lay[host], files = entry, append(files, beside...)
		}
		out["configs"] = lay
	}
	data, err := yaml.Marshal(out)
	if err != nil {
		return nil, nil, fmt.Errorf("writing registries.yaml: %w", err)
	}
	return data, files, nil
}

// shared names the registries whose images nodes give each other by k3s's
// embedded registry: an empty entry is enough (k3s-io/docs, installation/registry-mirror).
// A mirror of sources.images names them itself.
func (w wanted) shared(given map[string]any) map[string]any {
	if !w.config.Spec.Kubernetes.EmbeddedRegistry || w.config.Spec.Sources.Images.URL != "" {
		return given
	}
	given = maps.Clone(given)
	if given == nil {
		given = map[string]any{}
	}
	mirrors := map[string]any{}
	if own, ok := given["mirrors"].(map[string]any); ok {
		mirrors = maps.Clone(own)
	}
	for _, host := range k3s.Mirrored() {
		if _, there := mirrors[host]; !there {
			mirrors[host] = map[string]any{}
		}
	}
	given["mirrors"] = mirrors
	return given
}

// withMirror adds how to be let into the mirror of images. The configuration has
// checked that its registry does not stand there already.
func (w wanted) withMirror(given map[string]any) map[string]any {
	images := sourceOf(w.config.Spec.Sources.Images)
	if images.Plain() {
		return given
	}
	entry := map[string]any{}
	if images.Username != "" {
		entry["auth"] = map[string]any{"username": images.Username, "password": images.Password}
	}
	if images.CA != "" {
		entry["tls"] = map[string]any{"ca_file": images.CA}
	}
	given = maps.Clone(given)
	if given == nil {
		given = map[string]any{}
	}
	configs, _ := given["configs"].(map[string]any)
	configs = maps.Clone(configs)
	if configs == nil {
		configs = map[string]any{}
	}
	configs[images.Host()] = entry
	given["configs"] = configs
	return given
}

// layTLS replaces the certificates and keys of one registry by paths of files.
func layTLS(host string, entry any) (any, []k3s.File, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return entry, nil, nil
	}
	tls, ok := fields["tls"].(map[string]any)
	if !ok {
		return entry, nil, nil
	}
	fields, tls = maps.Clone(fields), maps.Clone(tls)
	fields["tls"] = tls
	var files []k3s.File
	for _, key := range []string{"ca_file", "cert_file", "key_file"} {
		text, given := tls[key].(string)
		if !given || (strings.HasPrefix(text, "/") && !strings.Contains(text, "\n")) {
			continue
		}
		if !strings.HasPrefix(text, "-----BEGIN ") {
			return nil, nil, fmt.Errorf("%s is neither a path on the machines nor PEM", key)
		}
		sum := sha256.Sum256([]byte(host))
		path := k3s.ConfigDir + "/gpuctl-registry-" + hex.EncodeToString(sum[:4]) + "-" + strings.TrimSuffix(key, "_file") + ".pem"
		files = append(files, k3s.File{Path: path, Mode: "0600", Content: text + "\n", AtStart: true})
		tls[key] = path
	}
	return fields, files, nil
}

// downloadEnv are the variables by which curl, wget and apt find the proxy.
func downloadEnv(p config.Proxy) map[string]string {
	if p.HTTP == "" && p.HTTPS == "" {
		return nil
	}
	env := map[string]string{"no_proxy": strings.Trim("localhost,127.0.0.1,"+p.No, ",")}
	for name, value := range map[string]string{"http_proxy": p.With(p.HTTP), "https_proxy": p.With(p.HTTPS)} {
		if value != "" {
			env[name] = value
		}
	}
	return env
}
