package k3s

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Lines of k3s v1.36.3, and of k3s-io/k3s#3727, vitobotta/hetzner-k3s#390.
func TestClassify(t *testing.T) {
	for line, code := range map[string]diag.Code{
		`time="2024-07-26T14:00:20Z" level=info msg="Waiting to retrieve agent configuration; server is not ready: Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag"`: "node-password-rejected",
		`time="2026-06-01T00:00:00Z" level=error msg="Failed to validate connection to cluster at https://10.0.0.10:6443: token CA hash does not match the Cluster CA certificate hash: 000 != ba13"`:                                                                                                            "token-ca-mismatch",
		`time="2026-06-01T00:00:00Z" level=info msg="Waiting to retrieve agent configuration; server is not ready: failed to retrieve configuration from server: not authorized"`:                                                                                                                                "token-refused",
		`time="2026-06-01T00:00:00Z" level=fatal msg="Error: preparing server: failed to bootstrap cluster data: not authorized"`:                                                                                                                                                                                "token-refused",
		`time="2026-06-01T00:00:00Z" level=error msg="Failed to validate connection to cluster at https://10.0.0.10:6443: failed to get CA certs: Get \"https://127.0.0.1:6444/cacerts\": EOF"`:                                                                                                                  "server-unreachable",
		`time="2026-06-01T00:00:00Z" level=fatal msg="Error: flag provided but not defined: -no-such-key"`:                                                                                                                                                                                                       "k3s-unknown-key",
		`time="2026-06-01T00:00:00Z" level=error msg="Shutdown request received: \"failed to start container runtime: default runtime nvidia was not found\""`:                                                                                                                                                   "default-runtime-missing",
		`time="2026-06-01T00:00:00Z" level=error msg="Shutdown request received: \"containerd exited: exit status 1\""`:                                                                                                                                                                                          "containerd-config-broken",
		`containerd.log: failed to unmarshal TOML at row 1 column 11: toml: array is incomplete`:                                                                                                                                                                                                                 "containerd-config-broken",
		`time="2026-06-01T00:00:00Z" level=fatal msg="Error: preparing server: failed to bootstrap cluster data: failed to reconcile with local datastore: bootstrap data already found and encrypted with different token"`:                                                                                     "datastore-other-token",
		`time="2026-06-01T00:00:00Z" level=fatal msg="yaml: line 17: did not find expected node content"`:                                                                                                                                                                                                        "k3s-config-invalid",
		`E0601 00:00:00.000000 kubelet: listen tcp 0.0.0.0:10250: bind: address already in use`:                                                                                                                                                                                                                  "port-in-use",
		`time="2026-06-01T00:00:00Z" level=info msg="Waiting to retrieve agent configuration; server is not ready: /x/agent/serving-kubelet.crt: https://127.0.0.1:6444/v1-k3s/serving-kubelet.crt: 503 Service Unavailable"`:                                                                                    "",
		`level=error msg="Failed to process config: failed to process /var/lib/rancher/k3s/server/manifests/registries.yaml: Object 'Kind' is missing in ..."`:                                                                                                                                                   "registries-wrong-place",
		`time="2026-06-01T00:00:00Z" level=info msg="k3s agent is up and running"`:                                                                                                                                                                                                                               "",
	} {
		got, reason := Classify([]string{"first", line})
		if got != code {
			t.Errorf("%q: got %q, want %q", line, got, code)
		}
		if reason == "" || strings.Contains(reason, "level=") {
			t.Errorf("%q: reason %q", line, reason)
		}
	}
	if code, reason := Classify(nil); code != "" || reason != "" {
		t.Errorf("an empty journal: %q %q", code, reason)
	}
}

func TestPatternsAreForGrepToo(t *testing.T) {
	for _, p := range []string{pattern(hopeless()), pattern(healing())} {
		if _, err := regexp.CompilePOSIX(p); err != nil || strings.Contains(p, "||") || p == "" {
			t.Errorf("pattern %q: %v", p, err)
		}
	}
	for _, code := range append(hopeless(), healing()...) {
		if p, ok := diag.Lookup(code); !ok || len(p.Match) == 0 {
			t.Errorf("%s is not in the catalogue or has no fragments", code)
		}
	}
}

func TestCodesAreInTheCatalogue(t *testing.T) {
	for _, code := range Codes() {
		if p, ok := diag.Lookup(code); !ok || p.Code != code || len(p.Fix) == 0 {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

func TestParseCredentials(t *testing.T) {
	agent := "K10" + strings.Repeat("b", 64) + "::node:with:colon"
	out := "Welcome\nM kubeconfig\napiVersion: v1\nkind: Config\n\nM agent-token\n" + agent + "\n\nM server-token\n" + strings.Replace(agent, "node", "server", 1) + "\n\nM end\n"
	c, err := parseCredentials([]byte(out), "M")
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Kubeconfig) != "apiVersion: v1\nkind: Config" || c.AgentToken != agent || secretOf(c.AgentToken) != "with:colon" || c.String() != "********" {
		t.Errorf("got %q %q", c.Kubeconfig, c.AgentToken)
	}
	if c.ClusterID != "" || c.KnownHosts != nil {
		t.Errorf("an old server says it is %q and knows %q", c.ClusterID, c.KnownHosts)
	}
	more := "M cluster\nabcdefgh2345\n\nM known-hosts\na ssh-ed25519 AAAA a\n\nM end\n"
	c, err = parseCredentials([]byte(strings.Replace(out, "M end\n", more, 1)), "M")
	if err != nil || c.ClusterID != "abcdefgh2345" || string(c.KnownHosts) != "a ssh-ed25519 AAAA a\n" {
		t.Errorf("%v: %q, %q", err, c.ClusterID, c.KnownHosts)
	}
	for _, bad := range []string{"", out[:len(out)-6], strings.Replace(out, "K10", "X10", 1)} {
		if _, err := parseCredentials([]byte(bad), "M"); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(`time="t" level=info msg="a \"b\" \\"`)
	f.Add("msg=")
	f.Add(` msg="\`)
	f.Fuzz(func(t *testing.T, text string) {
		code, _ := Classify(strings.Split(text, "\n"))
		if _, ok := diag.Lookup(code); code != "" && !ok {
			t.Errorf("code %q is not in the catalogue", code)
		}
	})
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte("M kubeconfig\nx\nM agent-token\n\nM end\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		c, err := parseCredentials(out, "M")
		if err == nil && (!fullToken(c.AgentToken) || !fullToken(c.ServerToken) || len(c.Kubeconfig) == 0) {
			t.Errorf("accepted %q", out)
		}
	})
}
