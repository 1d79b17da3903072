package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/ui"
)

func (f *fakeEngine) Tunnel(context.Context, net.Listener, string, func([]byte) error) error {
	return f.unexpected("Tunnel")
}

// kubeEngine has a kubeconfig to give and a tunnel that ends at once.
type kubeEngine struct {
	*fakeEngine
	server string
}

func kubeconfigOf(name, server string) []byte {
	return []byte("apiVersion: v1\nkind: Config\nclusters:\n- cluster: {server: \"" + server + "\"}\n  name: " + name +
		"\nusers:\n- name: " + name + "\n  user: {token: hush}\ncontexts:\n- context: {cluster: " + name + ", user: " + name + "}\n  name: " + name +
		"\ncurrent-context: " + name + "\n")
}

func (k *kubeEngine) Kubeconfig(context.Context) ([]byte, error) {
	return kubeconfigOf("lab", k.server), nil
}

func (k *kubeEngine) Tunnel(_ context.Context, l net.Listener, name string, ready func([]byte) error) error {
	defer func() { _ = l.Close() }()
	return ready(kubeconfigOf(name, "https://"+l.Addr().String()))
}

// kubeconfigRun runs gpuctl kubeconfig in a home of its own, which stays between runs.
func kubeconfigRun(t *testing.T, home, server string, args ...string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(home, "gpuctl.yaml")
	if err := os.WriteFile(file, []byte(twoMachines), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	var o, e bytes.Buffer
	code = run(append([]string{"-f", file, "kubeconfig"}, args...), app{
		in: strings.NewReader(""), out: &o, err: &e, size: func() ui.Size { return ui.Size{Width: 80, Height: 24} },
		newEngine: func(engineDeps) (Engine, error) { return &kubeEngine{&fakeEngine{t: t}, server}, nil },
	})
	return code, strings.ReplaceAll(o.String(), home, "HOME"), strings.ReplaceAll(e.String(), home, "HOME")
}

func TestKubeconfigMerge(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := "# mine\n" + string(kubeconfigOf("prod", "https://prod.example:6443"))
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	read := func() string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	code, out, errOut := kubeconfigRun(t, home, "https://203.0.113.10:6443", "--merge")
	if code != 0 || out != "context lab is in HOME/.kube/config; use it with: kubectl --context lab get nodes\n" || errOut != "" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	if text := read(); !strings.HasPrefix(text, "# mine\n") || !strings.Contains(text, "current-context: prod") || !strings.Contains(text, "https://203.0.113.10:6443") {
		t.Errorf("merged:\n%s", text)
	}
	before := read()
	code, out, _ = kubeconfigRun(t, home, "https://203.0.113.10:6443", "--merge", "-o", "json")
	if code != 0 || read() != before || !strings.Contains(out, `"written": []`) {
		t.Errorf("again: %d %s", code, out)
	}
	code, _, errOut = kubeconfigRun(t, home, "https://198.51.100.1:6443", "--merge")
	if code != exitUsage || read() != before || !strings.Contains(errOut, "--overwrite replaces it") {
		t.Errorf("another cluster of that name: %d %s", code, errOut)
	}
	if code, _, errOut = kubeconfigRun(t, home, "https://198.51.100.1:6443", "--merge", "--overwrite", "--set-current"); code != 0 {
		t.Errorf("overwrite: %d %s", code, errOut)
	}
	if text := read(); !strings.Contains(text, "current-context: lab") || !strings.Contains(text, "https://198.51.100.1:6443") || strings.Contains(text, "203.0.113.10") {
		t.Errorf("overwritten:\n%s", text)
	}
	for _, args := range [][]string{{"--merge", "--to", "x"}, {"--set-current"}, {"--port", "1"}, {"--tunnel", "--port", "70000"}} {
		if code, _, _ := kubeconfigRun(t, home, "https://x", args...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

func TestKubeconfigTunnel(t *testing.T) {
	home := t.TempDir()
	t.Setenv("KUBECONFIG", "")
	code, out, errOut := kubeconfigRun(t, home, "", "--tunnel")
	if code != 0 || !strings.HasPrefix(out, "export KUBECONFIG=HOME/state/gpuctl/lab/kubeconfig-tunnel\nthe API is at https://127.0.0.1:") {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	path := filepath.Join(home, "state/gpuctl/lab/kubeconfig-tunnel")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(home, ".kube")); err == nil {
		t.Error("~/.kube was touched without --merge")
	}
	// A merged tunnel has another port each time and its own context.
	for range 2 {
		code, out, errOut = kubeconfigRun(t, home, "", "--tunnel", "--merge", "-o", "json")
		var v tunnelView
		if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || v.Context != "lab-tunnel" || len(v.Written) != 1 {
			t.Errorf("%d %v %s %s", code, err, out, errOut)
		}
	}
}
