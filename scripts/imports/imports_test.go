// Package imports holds the rules of which package may import which, as a test.
// The linter (depguard) says the same; this also holds where it is not run.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/gpuctl/gpuctl/"

// rule says who may import packages that begin with target.
type rule struct {
	target string
	only   []string // directories of the module, with everything below
	reason string
}

func rules() []rule {
	return []rule{
		{"github.com/spf13/cobra", []string{"cmd/gpuctl"}, "the command line is cmd/gpuctl's"},
		{"helm.sh/helm", []string{"charts"}, "Helm is wrapped in charts"},
		{"github.com/hashicorp/terraform-exec", []string{"provision"}, "Terraform is wrapped in provision"},
		{"golang.org/x/crypto/ssh", []string{"bootstrap/sshconn", "internal/bench"}, "SSH is wrapped in sshconn"},
		{"k8s.io/client-go", []string{"internal/kube", "internal/smoke", "charts"}, "the Kubernetes API is wrapped in internal/kube"},
		{"github.com/google/go-containerregistry", []string{"internal/image", "e2e"}, "registries are wrapped in internal/image"},
		{module + "bootstrap", []string{"bootstrap", "cmd/gpuctl", "internal/bench"}, "bootstrap is composed once, in cmd/gpuctl; benchmarks measure it"},
		{module + "provision", []string{"provision", "cmd/gpuctl"}, "provision and bootstrap share the inventory and nothing else"},
		{module + "internal/ui", []string{"internal/ui", "cmd/gpuctl"}, "the engine emits events and prints nothing"},
		{module + "internal/state", []string{"internal/state", "cmd/gpuctl"}, "the engine does not know where records are kept"},
		{module + "cmd/", nil, "nothing imports a command"},
	}
}

// leaves import nothing of this module.
func leaves() []string {
	return []string{"bootstrap/plan", "bootstrap/remote", "internal/event", "internal/diag", "internal/inventory"}
}

// free are packages that rules about bootstrap do not bind: small types that
// rooms beside it share.
func free() []string { return []string{"bootstrap/remote", "bootstrap/plan"} }

type pkg struct {
	ImportPath                string
	Imports                   []string
	TestImports, XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func below(path string, dirs []string) bool {
	for _, d := range dirs {
		if path == d || strings.HasPrefix(path, d+"/") {
			return true
		}
	}
	return false
}

// forbidden is why a package may not import another, or "".
func forbidden(from, to string) string {
	dir := strings.TrimPrefix(from, module)
	if inner, ok := strings.CutPrefix(to, module); ok {
		if below(dir, leaves()) && !below(inner, []string{dir}) && !below(dir, []string{inner}) {
			return dir + " is a leaf"
		}
		if below(inner, free()) {
			return ""
		}
	}
	for _, r := range rules() {
		if (to == r.target || strings.HasPrefix(to, strings.TrimSuffix(r.target, "/")+"/")) && !below(dir, r.only) {
			return r.reason
		}
	}
	return ""
}

func TestImports(t *testing.T) {
	all := packages(t)
	if len(all) < 10 {
		t.Fatalf("only %d packages found", len(all))
	}
	for _, p := range all {
		for _, to := range p.Imports {
			if why := forbidden(p.ImportPath, to); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
	}
}

func TestForbidden(t *testing.T) {
	for _, bad := range [][2]string{
		{module + "bootstrap/host", "golang.org/x/crypto/ssh/agent"},
		{module + "bootstrap", module + "provision"},
		{module + "provision", module + "bootstrap"},
		{module + "provision", module + "bootstrap/host"},
		{module + "bootstrap/plan", module + "bootstrap/remote"},
		{module + "internal/event", module + "internal/diag"},
		{module + "bootstrap", "github.com/spf13/cobra"},
		{module + "bootstrap", "helm.sh/helm/v3/pkg/action"},
		{module + "bootstrap", "github.com/google/go-containerregistry/pkg/v1/remote"},
		{module + "internal/config", module + "cmd/gpuctl"},
	} {
		if forbidden(bad[0], bad[1]) == "" {
			t.Errorf("%s may import %s", bad[0], bad[1])
		}
	}
	for _, good := range [][2]string{
		{module + "bootstrap", module + "bootstrap/host"},
		{module + "bootstrap/host", module + "bootstrap/plan"},
		{module + "cmd/gpuctl", module + "bootstrap"},
		{module + "bootstrap/remote/remotetest", module + "bootstrap/remote"},
		{module + "internal/kube", "k8s.io/client-go/kubernetes"},
		{module + "bootstrap/sshconn", "golang.org/x/crypto/ssh/knownhosts"},
	} {
		if why := forbidden(good[0], good[1]); why != "" {
			t.Errorf("%s may not import %s: %s", good[0], good[1], why)
		}
	}
}
