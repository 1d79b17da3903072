package k3s

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// box is a folder with fake commands in front of PATH.
type box struct {
	t   *testing.T
	dir string
	env []string
}

func newBox(t *testing.T) box {
	b := box{t: t, dir: t.TempDir()}
	b.command("restorecon", "exit 0")
	return b
}

func (b box) path(name string) string { return filepath.Join(b.dir, name) }

func (b box) command(name, body string) {
	b.t.Helper()
	b.file("bin/"+name, "#!/bin/sh\n"+body+"\n", 0o755)
}

func (b box) file(name, content string, mode os.FileMode) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(content), mode); err != nil {
		b.t.Fatal(err)
	}
}

func (b box) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// run runs a script as the machine would: on standard input of sh.
func (b box) run(script string, args ...string) (out string, code int) {
	b.t.Helper()
	cmd := exec.Command("sh", append([]string{"-s"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"PATH=" + b.path("bin") + ":" + os.Getenv("PATH"), "BOX=" + b.dir}
	cmd.Env = append(cmd.Env, b.env...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(text), exit.ExitCode()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text), 0
}

// start runs the start script over a unit whose states come from a file, one
// line a look (ActiveState SubState NRestarts InvocationID), the last for ever.
func (b box) start(order, states, journal string) (string, int) {
	b.t.Helper()
	b.file("states", states, 0o644)
	b.file("journal", journal, 0o644)
	b.file("data/agent/containerd/containerd.log", "toml: table runc already exists\n", 0o644)
	b.command("systemctl", `case $1 in show)
  read -r a s n i <"$BOX/states"
  echo "ActiveState=$a"; echo "SubState=$s"; echo "NRestarts=$n"; echo "InvocationID=$i"
  [ "$(wc -l <"$BOX/states")" -lt 2 ] || sed -i 1d "$BOX/states"
  ;;
*) echo "$*" >>"$BOX/orders" ;;
esac`)
	b.command("journalctl", `cat "$BOX/journal"`)
	b.command("sleep", "exit 0")
	b.command("date", `echo x >>"$BOX/clock"; wc -l <"$BOX/clock"`)
	b.command("k3s", `[ "$1" = crictl ]`)
	socket := b.path("c.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	return b.run(startScript, "k3s-agent", order, "40", b.path("bin/k3s"), b.path("data"), pattern(hopeless()), pattern(healing()), socket)
}

func TestStartScript(t *testing.T) {
	waiting := `time="t" level=info msg="Waiting to retrieve agent configuration; server is not ready: %"` + "\n"
	refused := strings.Replace(waiting, "%", "Node password rejected, duplicate hostname", 1)
	for name, c := range map[string]struct {
		order, states, journal string
		code                   int
		out                    string
	}{
		"comes up":           {"restart", "active running 0 old\nactivating start 0 new\nactive running 0 new\n", "fine\n", 0, "up 0"},
		"restart is awaited": {"restart", "active running 0 old\nactive running 0 old\nactive running 0 old\nactive running 0 old\nactive running 0 old\nactive running 0 new\n", "fine\n", 0, "up 0"},
		"look":               {"look", "active running 7 same\n", "", 0, "up 7"},
		"hopeless":           {"restart", "inactive dead 0 \nactivating start 0 new\n", refused + refused, 31, "journal time="},
		"says why it waits":  {"restart", "inactive dead 0 \nactivating start 0 new\n", strings.Replace(waiting, "%", "503", 1), 33, "say activating (start): time="},
		"crashes with exit code 0": {"restart",
			"active running 0 old\nactive running 0 a\nactivating auto-restart 0 a\nactive running 1 b\nactivating auto-restart 1 b\nactive running 2 c\nactivating auto-restart 2 c\nactive running 3 d\nactivating auto-restart 3 d\n",
			`level=error msg="Shutdown request received: containerd exited: exit status 1"` + "\n", 32, "journal containerd.log: toml: table runc already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := newBox(t).start(c.order, c.states, c.journal)
			if code != c.code || !strings.Contains(out, c.out) {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
	}
}

func TestStartNoticesAClusterOfItsOwn(t *testing.T) {
	ca := "-----BEGIN CERTIFICATE-----\nx\n"
	sum := sha256.Sum256([]byte(ca))
	for hash, want := range map[string]int{hex.EncodeToString(sum[:]): 0, strings.Repeat("0", 64): 34} {
		b := newBox(t)
		b.file("data/server/tls/server-ca.crt", ca, 0o644)
		b.env = []string{"SERVER_TOKEN=K10" + hash + "::server:x"}
		if out, code := b.start("look", "active running 0 a\n", ""); code != want {
			t.Errorf("exit code %d, want %d: %s", code, want, out)
		}
	}
}

func TestStartDoesNotBlock(t *testing.T) {
	b := newBox(t)
	b.start("restart", "inactive dead 0 \nactive running 0 new\n", "")
	if got := b.read("orders"); got != "reset-failed k3s-agent.service\nrestart --no-block k3s-agent.service\n" {
		t.Errorf("orders:\n%s", got)
	}
	b = newBox(t)
	b.start("look", "active running 0 new\n", "")
	if _, err := os.Stat(b.path("orders")); err == nil {
		t.Errorf("looking gave orders: %s", b.read("orders"))
	}
}

func TestLayScript(t *testing.T) {
	b := newBox(t)
	b.file("etc/same", "same\n", 0o600)
	b.file("etc/mode", "mode\n", 0o644)
	b.file("etc/token", "kept\n", 0o644)
	before, err := os.Stat(b.path("etc/same"))
	if err != nil {
		t.Fatal(err)
	}
	odd := "it's $HOME `x` \\ \"q\"\nGPUCTL_EOF\nend\n"
	script := layScript + "dir 0700 " + b.path("etc/new/deep") + "\n" +
		heredoc("stage 0600 "+b.path("etc/same"), "same\n") +
		heredoc("stage 0600 "+b.path("etc/mode"), "mode\n") +
		heredoc("stage 0755 "+b.path("etc/new/deep/odd"), odd) +
		heredoc("stage 0600 "+b.path("etc/empty"), "") +
		"once 0600 " + b.path("etc/token") + " other\nonce 0600 " + b.path("etc/token2") + " fresh\n" +
		"[ ! -e " + b.path("etc/empty") + " ] || exit 9\nswap\n"
	if out, code := b.run(script); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for name, want := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		"etc/same": {"same\n", 0o600}, "etc/mode": {"mode\n", 0o600}, "etc/new/deep/odd": {odd, 0o755},
		"etc/empty": {"", 0o600}, "etc/token": {"kept\n", 0o600}, "etc/token2": {"fresh\n", 0o600},
	} {
		info, err := os.Stat(b.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.read(name); got != want.content || info.Mode().Perm() != want.mode {
			t.Errorf("%s: %q with mode %v", name, got, info.Mode())
		}
	}
	after, _ := os.Stat(b.path("etc/same"))
	if !os.SameFile(before, after) {
		t.Error("an equal file was replaced")
	}
	dir, _ := os.Stat(b.path("etc/new/deep"))
	parent, _ := os.Stat(b.path("etc/new"))
	if dir.Mode().Perm() != 0o700 || parent.Mode().Perm() != 0o755 {
		t.Errorf("modes %v and %v", dir.Mode(), parent.Mode())
	}
	left, _ := filepath.Glob(b.path("etc/.gpuctl*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLayLeavesNothingWhenItFails(t *testing.T) {
	b := newBox(t)
	b.file("etc/a", "old\n", 0o600)
	_, code := b.run(layScript + heredoc("stage 0600 "+b.path("etc/a"), "new\n") + heredoc("stage 0600 "+b.path("absent/b"), "x\n") + "swap\n")
	left, _ := filepath.Glob(b.path("etc/.gpuctl*"))
	if code == 0 || b.read("etc/a") != "old\n" || len(left) > 0 {
		t.Errorf("exit code %d, content %q, left %v", code, b.read("etc/a"), left)
	}
}

func TestDownloadScript(t *testing.T) {
	binary := strings.Repeat("k3s binary ", 1000)
	sum := sha256.Sum256([]byte(binary))
	right := hex.EncodeToString(sum[:])
	var ranges []string
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/k3s":
			ranges = append(ranges, r.Header.Get("Range"))
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(binary))
		case "/sums":
			w.Write([]byte(strings.Repeat("0", 64) + "  k3s-airgap-images-amd64.tar\n" + right + "  k3s\n"))
		case "/portal": // in capitals, as some write their pages
			w.Write([]byte("<!DOCTYPE html>\n<HTML><title>Log in first</title></HTML>"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer mirror.Close()
	for name, c := range map[string]struct {
		part, path, sum, list string
		code                  int
		ranged                string
	}{
		"whole":                  {path: "/k3s", sum: right},
		"from the list":          {path: "/k3s", list: "/sums"},
		"resumed":                {path: "/k3s", sum: right, part: binary[:100], ranged: "bytes=100-"},
		"resumed over rubbish":   {path: "/k3s", sum: right, part: strings.Repeat("x", 50), ranged: "bytes=50-"},
		"complete already":       {path: "/none", sum: right, part: binary},
		"longer than the binary": {path: "/k3s", sum: right, part: binary + "x", ranged: "bytes=11001-"},
		"absent":                 {path: "/none", sum: right, code: 42},
		"other bytes":            {path: "/k3s", sum: strings.Repeat("0", 64), code: 44},
		"a web page":             {path: "/portal", sum: right, code: 45},
		"no list":                {path: "/k3s", list: "/none", code: 43},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			ranges = nil
			if c.part != "" {
				b.file("opt/.k3s.part", c.part, 0o600)
			}
			out, code := b.run(downloadScript, b.path("opt/.k3s"), mirror.URL+c.path, c.sum, mirror.URL+c.list, "k3s", "network")
			if code != c.code {
				t.Fatalf("exit code %d: %s", code, out)
			}
			if c.ranged != "" && (len(ranges) == 0 || ranges[0] != c.ranged) {
				t.Errorf("ranges %q, want %q first", ranges, c.ranged)
			}
			if code != 0 {
				if _, err := os.Stat(b.path("opt/.k3s")); err == nil {
					t.Error("a binary that was not verified is there")
				}
				return
			}
			if info, err := os.Stat(b.path("opt/.k3s")); err != nil || info.Mode().Perm() != 0o755 || b.read("opt/.k3s") != binary {
				t.Errorf("the staged binary is not right: %v", err)
			}
			if out, code := b.run(downloadScript, b.path("opt/.k3s"), mirror.URL+"/none", right, "", "k3s", "network"); code != 0 {
				t.Errorf("a second run: %d %s", code, out)
			}
		})
	}
}

func TestScriptsParse(t *testing.T) {
	for name, script := range map[string]string{
		"install": installScript(serverWant(), change{registries: "mirrors: {}\n"}), "join": installScript(agentWant(), change{}), "moved": movedScript(serverWant()),
		"killall": killallScript(agentWant()), "uninstall": uninstallScript(agentWant()), "reset": resetScript,
		"credentials": credentialsScript, "download": downloadScript,
	} {
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.Contains(script, "@DATA_DIR@") || strings.Contains(script, "@UNIT@") {
			t.Errorf("%s: a placeholder is left", name)
		}
	}
}
