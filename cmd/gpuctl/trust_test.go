package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

const (
	keyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHgcK4jQlIxK2xGfLe4J5AlFl3xJkZvqoFUAsTRbXn2P"
	keyTwo = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHgcK4jQlIxK2xGfLe4J5AlFl3xJkZvqoFUAsTRbXn2Q"
)

// A second computer takes over what the server has: new keys are pinned, a
// different one is named and stays, until --replace.
func TestTrust(t *testing.T) {
	home := t.TempDir()
	file, state := filepath.Join(home, "gpuctl.yaml"), filepath.Join(home, "state", "gpuctl", "lab")
	if err := os.WriteFile(file, []byte(twoMachines), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	key := keyOne
	trust := func(args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		code := run(append([]string{"-f", file, "trust", "-o", "json"}, args...), app{
			in: strings.NewReader(""), out: &out, err: &errOut, size: func() ui.Size { return ui.Size{Width: 80, Height: 24} },
			newEngine: func(engineDeps) (Engine, error) {
				return &fakeEngine{t: t, trust: func(context.Context) (bootstrap.TrustResult, error) {
					return bootstrap.TrustResult{Cluster: "lab", ID: "abcdefgh", Kubeconfig: []byte("the kubeconfig"), KnownHosts: map[string]string{
						"gpu-2": "203.0.113.11 " + key, "gone": "203.0.113.99 " + key,
					}}, nil
				}}, nil
			},
		})
		return code, out.String(), errOut.String()
	}
	for _, c := range []struct {
		key  string
		args []string
		code int
		want string
	}{
		{keyOne, nil, 0, "new"}, {keyOne, nil, 0, "known"}, {keyTwo, nil, 3, "conflict"}, {keyTwo, []string{"--replace"}, 0, "replaced"}, {keyTwo, nil, 0, "known"},
	} {
		key = c.key
		code, out, errOut := trust(c.args...)
		if code != c.code || !strings.Contains(strings.Join(strings.Fields(out), ""), `{"name":"gpu-2","key":"`+c.want+`"}`) || !strings.Contains(out, "missing") || !strings.Contains(out, "abcdefgh") {
			t.Errorf("trust %v: exit code %d, want %d and %s:\n%s%s", c.args, code, c.code, c.want, out, errOut)
		}
	}
	known, err := os.ReadFile(filepath.Join(state, "known_hosts"))
	if err != nil || string(known) != "203.0.113.11 "+keyTwo+"\n" {
		t.Errorf("%v: %s", err, known)
	}
	if data, err := os.ReadFile(filepath.Join(state, "kubeconfig")); err != nil || string(data) != "the kubeconfig" {
		t.Errorf("%v: %s", err, data)
	}
}
