package config

import (
	"fmt"
	"slices"
)

// A reference stands in a map that is only passed on (k3s keys, registries,
// Helm values) where a secret would: {env: NAME}, {file: PATH}, {prompt: true} or
// {descriptor: N}.
//
// In config.server, config.agent and registries any value may be one. In Helm
// values only those under the name of a secret are: a chart may have keys called
// env and file of its own.

// reference reads one; ok is false for everything else.
func reference(v any) (s Secret, ok bool) {
	m, isMap := v.(map[string]any)
	if !isMap || len(m) != 1 {
		return Secret{}, false
	}
	env, isEnv := m["env"].(string)
	file, isFile := m["file"].(string)
	prompt, isPrompt := m["prompt"].(bool)
	number, isNumber := m["descriptor"].(int64)
	return Secret{Env: env, File: file, Prompt: prompt, Descriptor: int(number)}, isEnv || isFile || isPrompt || isNumber
}

// written is a reference as it stands in a map.
func (s Secret) written() map[string]any {
	switch {
	case s.File != "":
		return map[string]any{"file": s.File}
	case s.Prompt:
		return map[string]any{"prompt": true}
	case s.Descriptor != 0:
		return map[string]any{"descriptor": int64(s.Descriptor)}
	}
	return map[string]any{"env": s.Env}
}

// passed are the maps that may hold references, by field; all says that any
// value may be one, not only those under the name of a secret.
type passed struct {
	field  string
	values map[string]any
	all    bool
}

func (s *Spec) passed() []passed {
	return []passed{
		{"spec.kubernetes.registries", s.Kubernetes.Registries, true},
		{"spec.kubernetes.config.server", s.Kubernetes.Config.Server, true},
		{"spec.kubernetes.config.agent", s.Kubernetes.Config.Agent, true},
		{"spec.gpu.operator.values", s.GPU.Operator.Values, false},
	}
}

// eachReference calls do for every reference below v and puts in its place what
// do returns.
func eachReference(v any, field, key string, all bool, do func(Secret, string) (any, error)) (any, error) {
	if s, ok := reference(v); ok && (all || secretName(key)) {
		return do(s, field)
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range sorted(v) {
			var err error
			if out[k], err = eachReference(v[k], join(field, k), k, all, do); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = eachReference(item, fmt.Sprintf("%s[%d]", field, i), key, all, do); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// mapReferences puts what do returns in the place of each reference. The maps
// are new ones: copies of the configuration keep theirs.
func (s *Spec) mapReferences(do func(s Secret, field string) (any, error)) error {
	places := []*map[string]any{&s.Kubernetes.Registries, &s.Kubernetes.Config.Server, &s.Kubernetes.Config.Agent, &s.GPU.Operator.Values}
	for i, p := range s.passed() {
		if p.values == nil {
			continue
		}
		v, err := eachReference(p.values, p.field, "", p.all, do)
		if err != nil {
			return err
		}
		// A map that is a reference itself becomes a text, which the checks have refused.
		*places[i], _ = v.(map[string]any)
	}
	return nil
}

// Resolved returns the configuration with every reference replaced by the secret
// that read returns for it; field says where it stands. Secrets of sources and of
// the proxy are then to be had by Secret.Text, certificates by Source.CA. Each
// place is read once, however often it is named. The result must not be printed
// or kept. All secrets that are not there stand in one *InvalidError.
func (c Config) Resolved(read func(s Secret, field string) (string, error)) (Config, error) {
	invalid := &InvalidError{}
	known := map[Secret]string{}
	get := func(s Secret, field string) (any, error) {
		if text, again := known[s]; again {
			return text, nil
		}
		text, err := read(s, field)
		if err != nil {
			invalid.Problems = append(invalid.Problems, Problem{Field: field, Message: err.Error()})
			return "", nil
		}
		known[s] = text
		return text, nil
	}
	_ = c.Spec.mapReferences(get) // the problems are kept
	for _, p := range c.Spec.secrets() {
		if *p.secret == nil {
			continue
		}
		s := **p.secret
		text, _ := get(s, p.field)
		s.text, _ = text.(string)
		*p.secret = &s
	}
	for _, src := range c.Spec.Sources.all() {
		if err := src.readCA(); err != nil {
			invalid.Problems = append(invalid.Problems, Problem{Field: "spec.sources." + src.key + ".caFile", Message: err.Error()})
		}
	}
	invalid.Problems = append(invalid.Problems, c.Spec.untakable()...)
	if len(invalid.Problems) > 0 {
		return Config{}, invalid
	}
	return c, nil
}

// SecretEnv names the environment variables that hold secrets of the
// configuration: programs that gpuctl starts must not inherit them.
func (c Config) SecretEnv() []string {
	var names []string
	c.eachSecret(func(s Secret) {
		if s.Env != "" {
			names = append(names, s.Env)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// eachSecret calls do for every place of a secret that the file names.
func (c Config) eachSecret(do func(Secret)) {
	if p := c.Spec.SSH.SudoPassword; p != nil {
		do(*p)
	}
	if e := c.Spec.Kubernetes.Existing; e != nil && e.Token != nil {
		do(*e.Token)
	}
	for _, p := range c.Spec.secrets() {
		if *p.secret != nil {
			do(**p.secret)
		}
	}
	add := func(s Secret, _ string) (any, error) {
		do(s)
		return nil, nil
	}
	c.Spec.visitReferences(add)
	if f := c.Spec.MachinesFrom; f != nil && f.Terraform != nil {
		_, _ = f.Terraform.each(add) // add never fails
	}
}

// visitReferences calls do, which never fails, for every reference of the file.
func (s *Spec) visitReferences(do func(Secret, string) (any, error)) {
	for _, p := range s.passed() {
		_, _ = eachReference(p.values, p.field, "", p.all, do)
	}
}

// references checks what references name.
func (k checker) references(s *Spec) {
	for _, p := range s.passed() {
		if _, ok := reference(p.values); ok && p.all {
			k.problem(p.field, "is a map of its own, not a secret")
		}
	}
	s.visitReferences(func(r Secret, field string) (any, error) {
		k.secret(r, field)
		return nil, nil
	})
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
