package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeDocs runs gpuctl docs and returns what it wrote, by name.
func writeDocs(t *testing.T, flag string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made", "here")
	if got := runWith(t, &fakeEngine{}, "", "docs", flag, dir); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	return filesOf(t, dir)
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	}
	return files
}

// docs/cli says what --help says. make docs writes it anew.
func TestReferenceIsUpToDate(t *testing.T) {
	const dir = "../../docs/cli"
	want := writeDocs(t, "--markdown")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	have := filesOf(t, dir)
	for name, text := range want {
		if have[name] != text {
			t.Errorf("docs/cli/%s is not what the command says; run make docs", name)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("docs/cli/%s is of no command; run make docs", name)
	}
}

// Every command has a page in both forms, with an example where it does something.
func TestReferenceHasEveryCommand(t *testing.T) {
	markdown, man := writeDocs(t, "--markdown"), writeDocs(t, "--man")
	if len(markdown) != len(man) {
		t.Errorf("%d pages of Markdown, %d man pages", len(markdown), len(man))
	}
	for _, name := range []string{"gpuctl", "gpuctl_bootstrap", "gpuctl_node_add", "gpuctl_ssh_check", "gpuctl_docs"} {
		page, manual := markdown[name+".md"], man[strings.ReplaceAll(name, "_", "-")+".1"]
		if !strings.Contains(page, "### Examples") || !strings.Contains(page, "### Options") {
			t.Errorf("%s.md lacks examples or options:\n%s", name, page)
		}
		if !strings.HasPrefix(manual, `.nh`) || !strings.Contains(manual, ".SH EXAMPLE") || strings.Contains(manual, "Auto generated") {
			t.Errorf("the man page of %s:\n%s", name, manual)
		}
	}
}

func TestDocsIsUsedRight(t *testing.T) {
	if got := runWith(t, &fakeEngine{}, "", "docs"); got.code != exitUsage || !strings.Contains(got.err, "--man, --markdown") {
		t.Errorf("%d %s", got.code, got.err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runWith(t, &fakeEngine{}, "", "docs", "--man", file); got.code != exitUnexpected {
		t.Errorf("a directory that is a file: %d %s", got.code, got.err)
	}
	if got := runWith(t, &fakeEngine{}, "", "docs", "--man", t.TempDir(), "-o", "json"); got.code != 0 || !strings.Contains(got.out, `"markdown": 0`) {
		t.Errorf("%d %s", got.code, got.out)
	}
}
