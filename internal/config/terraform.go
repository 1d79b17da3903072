package config

import "strings"

const variablesField = "spec.machinesFrom.terraform.variables"

// terraform checks what reaches a command line and the file of variables.
func (k checker) terraform(t Terraform) {
	const field = "spec.machinesFrom.terraform"
	k.match(k.file, t.Dir, field+".dir", "a path")
	k.match(k.file, t.Binary, field+".binary", "a path, or a name in the PATH")
	k.match(k.env, strings.ReplaceAll(t.Output, "-", "_"), field+".output", "the name of an output")
	for name := range t.Variables {
		k.match(k.env, strings.ReplaceAll(name, "-", "_"), join(variablesField, name), "the name of a variable")
	}
	k.noSecrets(t.Variables, variablesField)
	_, _ = t.each(func(s Secret, at string) (any, error) {
		k.secret(s, at)
		return nil, nil
	}) // it never fails
}

// each returns the variables with what do returns in the place of every reference.
func (t Terraform) each(do func(Secret, string) (any, error)) (map[string]any, error) {
	out := make(map[string]any, len(t.Variables))
	for _, name := range sorted(t.Variables) {
		v, err := eachReference(t.Variables[name], join(variablesField, name), name, true, do)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// resolvePaths sets the paths of the block in relation to gpuctl.yaml. A program
// without a slash is looked for in the PATH and stays as it is.
func (t *Terraform) resolvePaths(fix func(*string)) {
	fix(&t.Dir)
	if strings.ContainsAny(t.Binary, `/\`) {
		fix(&t.Binary)
	}
	if t.Variables == nil {
		return
	}
	t.Variables, _ = t.each(func(s Secret, _ string) (any, error) {
		fix(&s.File) // an empty path stays empty
		return s.written(), nil
	}) // it never fails
}

// Values are the variables with the secrets that read returns in their places.
// The secrets are returned too: nothing may show them. Errors: *InvalidError
// with every secret that is not there.
func (t Terraform) Values(read func(Secret) (string, error)) (values map[string]any, secrets []string, err error) {
	invalid := &InvalidError{}
	values, _ = t.each(func(s Secret, field string) (any, error) {
		text, err := read(s)
		if err != nil {
			invalid.Problems = append(invalid.Problems, Problem{Field: field, Message: err.Error()})
		}
		secrets = append(secrets, text)
		return text, nil
	}) // the problems are kept
	if len(invalid.Problems) > 0 {
		return nil, nil, invalid
	}
	return values, secrets, nil
}
