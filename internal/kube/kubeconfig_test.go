package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const labServer = "https://203.0.113.44:6443"

// place copies testdata into a folder of the test.
func place(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", from))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func renamed(t *testing.T, server string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/073/k3s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Rename(data, "lab-gpu", server)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t *testing.T, path string) *api.Config {
	t.Helper()
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func merge(t *testing.T, paths []string, kubeconfig []byte, o MergeOptions) string {
	t.Helper()
	written, err := MergeFiles(paths, kubeconfig, o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(written, " ")
}

// Case of alexellis/k3sup#316: "default" of an old cluster and of the new one.
func TestMergeMeetsAnOldCluster(t *testing.T) {
	path := place(t, "073/old.yaml", filepath.Join(t.TempDir(), "config"))
	if got := merge(t, []string{path}, renamed(t, labServer), MergeOptions{}); got != path {
		t.Errorf("written: %q", got)
	}
	c := load(t, path)
	if c.CurrentContext != "default" || string(c.Clusters["default"].CertificateAuthorityData) != "OLD-CA" || c.Contexts["default"].Namespace != "training" {
		t.Errorf("the old cluster was touched: %+v", c.Clusters["default"])
	}
	lab := c.Contexts["lab-gpu"]
	if lab == nil || lab.Cluster != "lab-gpu" || lab.AuthInfo != "lab-gpu" || c.Clusters["lab-gpu"].Server != labServer || string(c.AuthInfos["lab-gpu"].ClientCertificateData) != "NEW-CERT" {
		t.Fatalf("the new cluster is not whole: %+v", lab)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	before, _ := os.ReadFile(path)
	if got := merge(t, []string{path}, renamed(t, labServer), MergeOptions{}); got != "" {
		t.Errorf("a second run wrote %q", got)
	}
	// A new CA replaces all three entries, without a mixture.
	again := strings.NewReplacer("TkVXLUNB", "TkVXRVItQ0E=", "TkVXLUNFUlQ=", "TkVXRVItQ0VSVA==").Replace(string(renamed(t, labServer)))
	merge(t, []string{path}, []byte(again), MergeOptions{UseContext: true})
	c = load(t, path)
	if string(c.Clusters["lab-gpu"].CertificateAuthorityData) != "NEWER-CA" || string(c.AuthInfos["lab-gpu"].ClientCertificateData) != "NEWER-CERT" || c.CurrentContext != "lab-gpu" {
		t.Errorf("not replaced as a whole: %s", before)
	}
}

func TestMergeRefusesAForeignName(t *testing.T) {
	path := place(t, "073/old.yaml", filepath.Join(t.TempDir(), "config"))
	merge(t, []string{path}, renamed(t, "https://192.0.2.99:6443"), MergeOptions{})
	before, _ := os.ReadFile(path)
	_, err := MergeFiles([]string{path}, renamed(t, labServer), MergeOptions{})
	var taken *TakenError
	if !errors.As(err, &taken) || taken.Server != "https://192.0.2.99:6443" {
		t.Fatalf("got %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the file was changed all the same")
	}
	merge(t, []string{path}, renamed(t, labServer), MergeOptions{Overwrite: true})
	if got := load(t, path).Clusters["lab-gpu"].Server; got != labServer {
		t.Errorf("server %s", got)
	}
}

func TestMergeKeepsALinkAndComments(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles", "config")
	if err := os.MkdirAll(filepath.Dir(real), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "# my clusters\napiVersion: v1\nkind: Config\nclusters: []\nx-mine: {a: 0123}\n"
	if err := os.WriteFile(real, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "config")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	merge(t, []string{link}, renamed(t, labServer), MergeOptions{})
	if target, err := os.Readlink(link); err != nil || target != real {
		t.Errorf("the link became something else: %v", err)
	}
	after, _ := os.ReadFile(real)
	for _, keep := range []string{"# my clusters", "x-mine: {a: 0123}", "name: lab-gpu"} {
		if !strings.Contains(string(after), keep) {
			t.Errorf("lost %q in\n%s", keep, after)
		}
	}
}

// kubernetes-client/csharp#411, kubernetes/kubectl#1054: a list of files, one of
// them missing, one with paths that are relative to it.
func TestMergeIntoSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	a := place(t, "075/project/a.yaml", filepath.Join(dir, "project", "a.yaml"))
	place(t, "075/project/pki/ca.crt", filepath.Join(dir, "project", "pki", "ca.crt"))
	b := place(t, "075/home/b.yaml", filepath.Join(dir, "home", "b.yaml"))
	missing := filepath.Join(dir, "missing.yaml")
	env := a + string(filepath.ListSeparator) + string(filepath.ListSeparator) + missing + string(filepath.ListSeparator) + b
	paths := Files(env, dir)
	if len(paths) != 3 {
		t.Fatalf("paths %q", paths)
	}
	beforeA, _ := os.ReadFile(a)

	// The entry that is in home/b.yaml is changed there; nothing else is.
	if got := merge(t, paths, renamed(t, labServer), MergeOptions{}); got != b {
		t.Errorf("written: %q", got)
	}
	if after, _ := os.ReadFile(a); string(after) != string(beforeA) {
		t.Error("project/a.yaml was changed")
	}
	if got := string(load(t, b).Clusters["lab-gpu"].CertificateAuthorityData); got != "NEW-CA" {
		t.Errorf("CA %q", got)
	}

	// A new name goes into the first file that exists, whose relative paths stay.
	other, err := Rename(renamed(t, labServer), "second", "https://192.0.2.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	if got := merge(t, paths, other, MergeOptions{UseContext: true}); got != a+" "+b {
		t.Errorf("written: %q", got)
	}
	after, _ := os.ReadFile(a)
	if !strings.Contains(string(after), "certificate-authority: pki/ca.crt") || !strings.Contains(string(after), "name: second") {
		t.Errorf("project/a.yaml:\n%s", after)
	}
	if got := load(t, b).CurrentContext; got != "second" {
		t.Errorf("current context %q, it belongs to the first file that sets it", got)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the missing file was made")
	}

	// For a connection of one's own the relative path is resolved.
	flat, err := LoadFiles(paths, "prod")
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.Load(flat)
	if err != nil || !strings.HasPrefix(string(c.Clusters["prod"].CertificateAuthorityData), "made-up, no certificate") || len(c.Clusters) != 1 {
		t.Errorf("flattened: %v %s", err, flat)
	}

	// When no file exists the last of the list is made.
	none := Files(filepath.Join(dir, "x")+string(filepath.ListSeparator)+filepath.Join(dir, "y", "z"), dir)
	if got := merge(t, none, renamed(t, labServer), MergeOptions{}); got != filepath.Join(dir, "y", "z") {
		t.Errorf("written: %q", got)
	}
	if got := load(t, filepath.Join(dir, "y", "z")).CurrentContext; got != "" {
		t.Errorf("current context %q was set without being asked", got)
	}
	if got := Files("", "/home/me"); len(got) != 1 || got[0] != filepath.Join("/home/me", ".kube", "config") {
		t.Errorf("default files %q", got)
	}
}

func TestMergeRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	masked := strings.Replace(string(renamed(t, labServer)), "TkVXLUNB", "DATA+OMITTED", 1)
	if _, err := MergeFiles([]string{path}, []byte(masked), MergeOptions{}); err == nil || !strings.Contains(err.Error(), "masked") {
		t.Errorf("masked: %v", err)
	}
	for _, text := range []string{"clusters: {}\n", "- a\n", "a: [\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := MergeFiles([]string{path}, renamed(t, labServer), MergeOptions{}); err == nil {
			t.Errorf("merged into %q", text)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%q was changed", text)
		}
	}
	if _, err := Rename([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"), "a", ""); err == nil {
		t.Error("renamed a kubeconfig without entries")
	}
}

func FuzzMerge(f *testing.F) {
	data, err := os.ReadFile("testdata/073/k3s.yaml")
	if err != nil {
		f.Fatal(err)
	}
	kubeconfig, err := Rename(data, "lab-gpu", labServer)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "clusters:\n", "clusters: [{name: lab-gpu}]\n", "users: &a [*a]\n", string(data)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, existing []byte) {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, existing, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := MergeFiles([]string{path}, kubeconfig, MergeOptions{}); err != nil {
			return
		}
		after, _ := os.ReadFile(path)
		doc, err := parseDocument(after)
		if err != nil {
			t.Fatalf("the merged file cannot be read: %v\n%s", err, after)
		}
		for _, list := range []string{"clusters", "users", "contexts"} {
			if doc.entry(list, "lab-gpu") == nil {
				t.Fatalf("%s has no entry in\n%s", list, after)
			}
		}
	})
}
