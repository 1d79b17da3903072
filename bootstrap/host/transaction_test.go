package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// aptGet is the function of that name in the transaction's script.
func aptGet(t *testing.T, dir string) string {
	t.Helper()
	_, rest, ok := strings.Cut(transactionScript, "apt_get() {\n")
	body, _, found := strings.Cut(rest, "\n}\n")
	if !ok || !found {
		t.Fatal("the script has no apt_get")
	}
	return "apt_get() {\n" + strings.ReplaceAll(body, "/run/gpuctl", dir) + "\n}\n"
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestAptIsAskedAgainOnlyWhereALockIsHeld runs apt_get against an apt-get that
// fails with each message once and then succeeds.
func TestAptIsAskedAgainOnlyWhereALockIsHeld(t *testing.T) {
	for _, line := range lines(caseFile(t, "028-messages.txt")) {
		kind, message, _ := strings.Cut(line, "  ")
		if strings.HasPrefix(message, "Waiting for") || strings.HasPrefix(message, "E: Unable to acquire") {
			continue // said beside the others, never alone
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "message"), message+"\n")
		write(t, filepath.Join(dir, "apt-get"), `#!/bin/sh
cd "${0%/*}"
echo x >>calls
[ "$(wc -l <calls)" -eq 1 ] || exit 0
cat message >&2
exit 100
`)
		script := "PATH=" + dir + ":$PATH\nsleep() { :; }\n" + aptGet(t, dir) + `
rc=0
apt_get install x >/dev/null || rc=$?
echo "$rc $(wc -l <` + filepath.Join(dir, "calls") + `)"
`
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := "0 2"
		if strings.HasPrefix(kind, "X") {
			want = "100 1"
		}
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s: exit code and calls %q, want %q", message, got, want)
		}
	}
}

func TestTransactionIsWhole(t *testing.T) {
	c := Transaction{Name: "x", Unit: "gpuctl-apt-x", Prepare: "echo prepare\n", Change: "echo change\n", Verify: "echo verify\n", Args: []string{"a"}}.Cmd()
	prepare, change, verify := strings.Index(c.Script, "echo prepare"), strings.Index(c.Script, "echo change"), strings.Index(c.Script, "echo verify")
	if prepare < 0 || change < prepare || verify < change || strings.Contains(c.Script, "#PREPARE#") || strings.Contains(c.Script, "#CHANGE#") || strings.Contains(c.Script, "#VERIFY#") {
		t.Errorf("prepare at %d, change at %d, verify at %d", prepare, change, verify)
	}
	if strings.Join(c.Args, " ") != "gpuctl-apt-x "+strconv.Itoa(600)+" a" || !c.Sudo {
		t.Errorf("args %q", c.Args)
	}
}
