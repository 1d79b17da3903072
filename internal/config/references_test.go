package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const withReferences = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  ssh: {sudoPassword: {env: SUDO}}
  kubernetes:
    config: {server: {etcd-s3-secret-key: {env: S3_KEY}, node-label: [{env: PLAIN}]}}
    registries:
      configs:
        reg.example:5000:
          auth: {username: {env: REG_USER}, password: {file: secrets/reg}}
          tls: {ca_file: {file: ca.pem}}
  gpu: {operator: {values: {driver: {licensing: {secret: {env: LICENCE}}, env: [], nested: {file: x}}}}}
  machines: [{host: 203.0.113.1}]
`

func TestReferences(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gpuctl.yaml", withReferences)
	c, err := Load(filepath.Join(dir, "gpuctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.SecretEnv(), " "); got != "LICENCE PLAIN REG_USER S3_KEY SUDO" {
		t.Errorf("variables: %s", got)
	}
	_, err = c.Resolved(readPlace)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 6 || !strings.Contains(err.Error(), "spec.kubernetes.config.server.etcd-s3-secret-key: the environment variable S3_KEY is empty") {
		t.Fatalf("all are missing: %v", err)
	}
	for _, name := range []string{"S3_KEY", "PLAIN", "REG_USER", "LICENCE"} {
		t.Setenv(name, "value of "+name)
	}
	write("ca.pem", "PEM\n")
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("secrets/reg", "hunter2\n")
	var read []string
	r, err := c.Resolved(func(s Secret, _ string) (string, error) {
		text, err := s.Read()
		read = append(read, text)
		return text, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 6 {
		t.Errorf("read %q", read)
	}
	reg := r.Spec.Kubernetes.Registries["configs"].(map[string]any)["reg.example:5000"].(map[string]any)
	if got := reg["auth"].(map[string]any)["password"]; got != "hunter2" {
		t.Errorf("password %v", got)
	}
	if got := reg["tls"].(map[string]any)["ca_file"]; got != "PEM" {
		t.Errorf("CA %v", got)
	}
	driver := r.Spec.GPU.Operator.Values["driver"].(map[string]any)
	if _, kept := driver["nested"].(map[string]any); !kept || driver["licensing"].(map[string]any)["secret"] != "value of LICENCE" {
		t.Errorf("operator values %v", driver)
	}
	// The configuration itself keeps the references.
	if got := c.Spec.Kubernetes.Config.Server["etcd-s3-secret-key"].(map[string]any)["env"]; got != "S3_KEY" {
		t.Errorf("the original has %v", got)
	}
}

func TestParseTaint(t *testing.T) {
	for text, want := range map[string]string{
		"team=ml:NoSchedule": "team=ml:NoSchedule", "spot:PreferNoSchedule": "spot=:PreferNoSchedule", "a.example/b=c:NoSchedule": "a.example/b=c:NoSchedule",
	} {
		if got, err := ParseTaint(text); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"team=ml", "team=ml:NoExecute", "=x:NoSchedule", "gpuctl.dev/unproven:NoSchedule", "nvidia.com/gpu:NoSchedule", "a=b c:NoSchedule"} {
		if got, err := ParseTaint(text); err == nil {
			t.Errorf("%s: taken as %s", text, got)
		}
	}
}

// readPlace reads a secret where it is, whatever it is for.
func readPlace(s Secret, _ string) (string, error) { return s.Read() }
