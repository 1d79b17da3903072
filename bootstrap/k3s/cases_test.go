package k3s

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// The files of k3s-io/k3s#2228 and #9626: the user's names of the API and
// kubelet arguments stay (gpuctl adds with "key+"), the moved data directory
// stops the run, disable is told.
func TestTheMachinesOwnConfigOfAList(t *testing.T) {
	s := Seen{ConfigKeys: map[string][]string{
		UserConfig: {"write-kubeconfig-mode", "tls-san", "node-label", "data-dir", "kubelet-arg", "disable", "token"},
		"/etc/rancher/k3s/config.yaml.d/10-tool.yaml": {"tls-san+"},
		OwnConfig: {"node-name"},
	}}
	blocks := map[string]bool{}
	for _, f := range userConfigFindings(serverWant(), s) {
		if f.Code != "k3s-config-conflict" {
			t.Errorf("%+v", f)
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(f.Evidence, UserConfig+": "), " ")
		blocks[key] = f.Severity == diag.Blocks
	}
	if !blocks["data-dir"] {
		t.Error("data-dir in the user's file does not stop the run")
	}
	for _, key := range []string{"tls-san", "node-label", "kubelet-arg"} {
		if blocks[key] {
			t.Errorf("%s of the user's file stops the run", key)
		}
	}
	if _, told := blocks["disable"]; !told {
		t.Error("disable of the user's file is not told")
	}
}
