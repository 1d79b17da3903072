package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheUnitOfATransactionKnowsTheProxy lays the unit's script as the
// transaction does and runs its beginning without the variables.
func TestTheUnitOfATransactionKnowsTheProxy(t *testing.T) {
	from := strings.Index(transactionScript, `: >"$d/$unit.sh"`)
	to := strings.Index(transactionScript, `cat >>"$d/$unit.sh"`)
	if from < 0 || to < from {
		t.Fatal("the script does not write its unit")
	}
	dir := t.TempDir()
	for proxy, want := range map[string]string{"": "|", "http://10.0.0.1:3128": "http://10.0.0.1:3128|a,b"} {
		cmd := exec.Command("sh", "-eu", "-c", "d="+dir+" unit=u\n"+transactionScript[from:to]+"\n"+
			`env -u http_proxy -u no_proxy sh -c '. "$1"; echo "${http_proxy:-}|${no_proxy:-}"' x "$d/u.sh"`)
		cmd.Env = append(os.Environ(), "http_proxy="+proxy, "https_proxy=", "no_proxy=a,b")
		if proxy == "" {
			cmd.Env = append(os.Environ(), "http_proxy=", "https_proxy=", "no_proxy=")
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.TrimSpace(string(out)); got != want {
			script, _ := os.ReadFile(filepath.Join(dir, "u.sh"))
			t.Errorf("proxy %q: got %q, want %q; the unit:\n%s", proxy, got, want, script)
		}
	}
}
