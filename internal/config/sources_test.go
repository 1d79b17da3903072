//go:build unix

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A self-signed certificate made for this test; nobody trusts it.
const someCA = `# what a tool wrote before it
-----BEGIN CERTIFICATE-----
MIIBdDCCARmgAwIBAgIUTqLrhCU1mAxYq1g1cHq2qx3c8VwwCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----
`

const guarded = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  sources:
    k3s: {url: "https://m.example/k3s", token: {descriptor: FD}}
    packages: {url: "https://m.example/apt", username: bob, password: {env: SOURCE_TEST_P}}
    charts: "https://m.example/charts"
    images: {url: "https://m.example", username: "robot$x", password: {prompt: true}}
  proxy: {http: "http://10.0.0.9:3128", username: "a@b", password: {file: pw}}
  machines: [{host: 203.0.113.1}]
`

func TestSourcesWithSecrets(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "t0k")
	w.Close()
	defer r.Close()
	// Reading a secret closes its descriptor: it must be nobody else's.
	given, err := syscall.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gpuctl.yaml")
	for name, text := range map[string]string{"gpuctl.yaml": strings.ReplaceAll(guarded, "FD", fmt.Sprint(given)), "pw": "p w'd\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Spec.Sources.Charts.URL != "https://m.example/charts" || strings.Join(c.SecretEnv(), " ") != "SOURCE_TEST_P" {
		t.Errorf("%+v, %v", c.Spec.Sources.Charts, c.SecretEnv())
	}
	t.Setenv("SOURCE_TEST_P", "hush")
	asked := ""
	got, err := c.Resolved(func(s Secret, field string) (string, error) {
		if s.Prompt {
			asked = field
			return "typed", nil
		}
		return s.Read()
	})
	if err != nil {
		t.Fatal(err)
	}
	s := got.Spec.Sources
	if s.K3s.Token.Text() != "t0k" || s.Packages.Password.Text() != "hush" || s.Images.Password.Text() != "typed" || asked != "spec.sources.images.password" {
		t.Errorf("%q %q %q, asked for %s", s.K3s.Token.Text(), s.Packages.Password.Text(), s.Images.Password.Text(), asked)
	}
	if p := got.Spec.Proxy.With(got.Spec.Proxy.HTTP); p != "http://a%40b:p%20w%27d@10.0.0.9:3128" {
		t.Errorf("the proxy is %s", p)
	}
	if c.Spec.Sources.Packages.Password.Text() != "" || strings.Contains(fmt.Sprintf("%+v %v", got.Spec.Sources.Packages.Password, s.K3s.Token), "hush") {
		t.Error("the secret is in the configuration itself, or printed")
	}
}

func TestSourcesThatCannotBeGiven(t *testing.T) {
	dir := t.TempDir()
	text := strings.ReplaceAll(guarded, "token: {descriptor: FD}", "token: {env: SOURCE_TEST_T}, caFile: ca.pem")
	for name, text := range map[string]string{"gpuctl.yaml": text, "pw": "x", "ca.pem": someCA} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(filepath.Join(dir, "gpuctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_TEST_P", "hu sh")
	t.Setenv("SOURCE_TEST_T", `t"k`)
	_, err = c.Resolved(readPlace)
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"spec.sources.images.password: prompt needs a terminal",
		"spec.sources.packages.password: holds a space, which apt cannot take",
		"spec.sources.k3s.token: is no bearer token",
		"spec.sources.k3s.caFile: " + filepath.Join(dir, "ca.pem") + " holds something that is no certificate",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said:\n%v", want, err)
		}
	}
}
