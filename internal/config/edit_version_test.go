package config

import (
	"strings"
	"testing"
)

func TestSetVersion(t *testing.T) {
	const head, tail = "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab} # ours\nspec:\n", "  machines: [{name: a, role: server, host: 203.0.113.1}]\n"
	for name, c := range map[string]struct{ before, after string }{
		"replaced":            {"  kubernetes:\n    version: v1.34.4+k3s1 # pinned\n    datastore: etcd\n", "  kubernetes:\n    version: \"v1.34.5+k3s1\" # pinned\n    datastore: etcd\n"},
		"beside other keys":   {"  kubernetes:\n    datastore: sqlite\n", "  kubernetes:\n    version: \"v1.34.5+k3s1\"\n    datastore: sqlite\n"},
		"in braces":           {"  kubernetes: {datastore: etcd}\n", "  kubernetes: {version: \"v1.34.5+k3s1\", datastore: etcd}\n"},
		"no kubernetes there": {"", "  kubernetes: {version: \"v1.34.5+k3s1\"}\n"},
	} {
		got, err := SetVersion([]byte(head+c.before+tail), "gpuctl.yaml", "v1.34.5+k3s1")
		if err != nil || string(got) != head+c.after+tail {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		again, err := SetVersion(got, "gpuctl.yaml", "v1.34.5+k3s1")
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: once more: %v\n%s", name, err, again)
		}
	}
	if _, err := SetVersion([]byte(head+tail), "gpuctl.yaml", "1.35"); err == nil || !strings.Contains(err.Error(), "spec.kubernetes.version") {
		t.Errorf("no release: %v", err)
	}
}

func TestServersOfAFile(t *testing.T) {
	file := func(kubernetes string, servers int) string {
		text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec:\n  kubernetes: {" + kubernetes + "}\n  machines:\n"
		for i := range servers {
			text += "    - {name: s" + string(rune('1'+i)) + ", role: server, host: 203.0.113." + string(rune('1'+i)) + "}\n"
		}
		return text
	}
	for name, c := range map[string]struct{ text, problem string }{
		"three":              {file("datastore: etcd", 3), ""},
		"two, shown later":   {file("datastore: etcd", 2), ""},
		"seven":              {file("datastore: etcd", 7), "three or five"},
		"three with sqlite":  {file("datastore: sqlite", 3), "sqlite serves one server"},
		"a load balancer":    {file("endpoint: \"k8s.example.com:6443\"", 3), ""},
		"an address":         {file("endpoint: 10.0.0.100", 3), ""},
		"a URL":              {file("endpoint: \"https://k8s.example.com\"", 3), "spec.kubernetes.endpoint"},
		"a port too high":    {file("endpoint: \"k8s.example.com:70000\"", 3), "is not a TCP port"},
		"an address of IPv6": {file("endpoint: \"[fd12::1]:6443\"", 3), ""},
	} {
		_, err := Parse([]byte(c.text), "gpuctl.yaml")
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
}
