package config

import (
	"errors"
	"strings"
	"testing"
)

const fromTerraform = `# rented by hand of Terraform
apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: a}
spec:
  groups:
    - {name: h100, hourly: 2.5, terraformVariable: gpus}
  machinesFrom:
    terraform:
      dir: infra # ours
`

func TestSetVariableKeepsTheRest(t *testing.T) {
	const dir = "      dir: infra # ours\n"
	for name, tc := range map[string]struct{ before, after string }{
		"no variables yet":   {dir, dir + "      variables: {gpus: 3}\n"},
		"others, in a block": {dir + "      variables:\n        region: x # near\n", dir + "      variables:\n        gpus: 3\n        region: x # near\n"},
		"others, in braces":  {dir + "      variables: {region: x}\n", dir + "      variables: {gpus: 3, region: x}\n"},
		"another value":      {dir + "      variables: {gpus: 12, region: x}\n", dir + "      variables: {gpus: 3, region: x}\n"},
		"in a block":         {dir + "      variables:\n        gpus: 12 # now\n", dir + "      variables:\n        gpus: 3 # now\n"},
		"the same":           {dir + "      variables: {gpus: 3}\n", dir + "      variables: {gpus: 3}\n"},
	} {
		before, after := strings.Replace(fromTerraform, dir, tc.before, 1), strings.Replace(fromTerraform, dir, tc.after, 1)
		got, err := SetVariable([]byte(before), "gpuctl.yaml", "gpus", 3)
		if err != nil || string(got) != after {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	flow := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {machinesFrom: {terraform: {dir: infra}}}"
	got, err := SetVariable([]byte(flow), "gpuctl.yaml", "gpus", 0)
	if err != nil || !strings.Contains(string(got), "{terraform: {dir: infra, variables: {gpus: 0}}}") {
		t.Errorf("in braces: %v\n%s", err, got)
	}
	odd := strings.Replace(fromTerraform, dir, dir+"      variables: {gpus: [1]}\n", 1)
	if _, err := SetVariable([]byte(odd), "gpuctl.yaml", "gpus", 3); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("a list: %v", err)
	}
	if _, err := SetVariable([]byte(blockFile), "gpuctl.yaml", "gpus", 3); err == nil {
		t.Error("machines of the file have a variable")
	}
}

func TestVariablesHoldReferencesAndNoSecrets(t *testing.T) {
	vars := fromTerraform + "      variables: {gpus: 2, on: true, names: [a], api_token: {env: TOKEN}, deep: {key: {file: k}}}\n"
	c, err := Parse([]byte(vars), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if env := c.SecretEnv(); strings.Join(env, " ") != "TOKEN" {
		t.Errorf("variables that hold secrets: %v", env)
	}
	tf := *c.Spec.MachinesFrom.Terraform
	values, secrets, err := tf.Values(func(s Secret) (string, error) { return "S-" + s.Env + s.File, nil })
	if err != nil || strings.Join(secrets, " ") != "S-TOKEN S-k" || values["api_token"] != "S-TOKEN" || values["on"] != true {
		t.Errorf("%v: %v, secrets %v", err, values, secrets)
	}
	var invalid *InvalidError
	if _, _, err := tf.Values(func(Secret) (string, error) { return "", errors.New("not there") }); !errors.As(err, &invalid) || len(invalid.Problems) != 2 {
		t.Errorf("secrets that are not there: %v", err)
	}
	for _, bad := range []string{"{api_token: s3cret}", "{\"a b\": 1}", "{x: {env: \"not a name\"}}"} {
		_, err := Parse([]byte(fromTerraform+"      variables: "+bad+"\n"), "gpuctl.yaml")
		if !errors.As(err, &invalid) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
