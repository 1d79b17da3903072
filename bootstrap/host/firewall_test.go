package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func openFor(machines ...string) *Open {
	return &Open{Machines: machines, Ports: []string{"10250/tcp", "6443/tcp", "8472/udp"}, Pods: []string{"10.42.0.0/16"}}
}

// TestFirewallIsOpenedOnlyWhenAsked: seen, told, opened, and left alone once it is open.
func TestFirewallIsOpenedOnlyWhenAsked(t *testing.T) {
	o := openFor("10.0.0.4")
	zones := ZoneFiles(*o)
	whole := map[string]File{PathZoneNodes: {Hash: KeyedHash("k", zones[PathZoneNodes])}, PathZonePods: {Hash: KeyedHash("k", zones[PathZonePods])}}
	for name, tc := range map[string]struct {
		firewall Firewall
		files    map[string]File
		open     *Open
		code     diag.Code
		pending  bool
	}{
		"ufw, not asked":                {firewall: Firewall{UFW: true}, code: CodeUFW},
		"firewalld, not asked":          {firewall: Firewall{Firewalld: true}, code: CodeFirewalld},
		"ufw, asked":                    {firewall: Firewall{UFW: true}, open: o, pending: true},
		"ufw, open":                     {firewall: Firewall{UFW: true, Rules: UFWRules(*o)}, open: o},
		"ufw, open for one that left":   {firewall: Firewall{UFW: true, Rules: UFWRules(*openFor("10.0.0.4", "10.0.0.5"))}, open: o, pending: true},
		"firewalld, asked":              {firewall: Firewall{Firewalld: true}, open: o, pending: true},
		"firewalld, open":               {firewall: Firewall{Firewalld: true}, files: whole, open: o},
		"asked, and there is none":      {open: o},
		"ufw is off, its rules are not": {firewall: Firewall{Rules: UFWRules(*o)}},
		"iptables drops":                {firewall: Firewall{InputPolicy: "DROP"}, code: CodeInputDrop},
		"iptables drops for ufw":        {firewall: Firewall{InputPolicy: "DROP", UFW: true}, open: o, pending: true},
		"nftables drops":                {firewall: Firewall{NFTDrop: []string{"inet filter input"}}, code: CodeInputDrop},
		"nothing drops":                 {firewall: Firewall{InputPolicy: "ACCEPT"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := agent(), fit()
			w.Open, f.Firewall = tc.open, Known(tc.firewall)
			if tc.files != nil {
				f.Files = Known(tc.files)
			}
			var code diag.Code
			for _, x := range Findings(w, f) {
				code = x.Code
			}
			pending := false
			for _, a := range Plan(w, f, nil) {
				pending = pending || a.ID == FirewallID(w.Machine)
			}
			if code != tc.code || pending != tc.pending {
				t.Errorf("finding %q, pending %v; want %q, %v", code, pending, tc.code, tc.pending)
			}
		})
	}
}

func TestFirewallSection(t *testing.T) {
	f, err := parseFirewall("ufw\nrule allow from 10.0.0.5 to any port 6443 proto tcp comment 'gpuctl'\nnftdrop inet filter input\n-P INPUT DROP\n")
	if err != nil || !f.UFW || len(f.Rules) != 1 || f.Rules[0] != UFWRules(Open{Machines: []string{"10.0.0.5"}, Ports: []string{"6443/tcp"}})[0] || f.NFTDrop[0] != "inet filter input" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestFirewallScript runs the script with a ufw that keeps its rules in a file:
// rules come, come once, go where a machine left, and go all.
func TestFirewallScript(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules")
	ufw := `#!/bin/sh
case $1 in
show) sed 's/^/ufw /' "` + rules + `" ;;
delete) shift; grep -vxF "$* comment 'gpuctl'" "` + rules + `" >"` + rules + `.new"; mv "` + rules + `.new" "` + rules + `" ;;
*) echo "$*" | sed "s/ comment gpuctl$/ comment 'gpuctl'/" >>"` + rules + `" ;;
esac
`
	for path, text := range map[string]string{rules: "allow 22/tcp\n", filepath.Join(dir, "ufw"): ufw} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set := func(want []string) {
		t.Helper()
		text := strings.Join(want, "\n")
		if text != "" {
			text += "\n"
		}
		input := filepath.Join(dir, "input")
		if err := os.WriteFile(input, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(dir, "script.sh")
		if err := os.WriteFile(script, []byte(firewallScript), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", `sh "$1" "$2" 0 ufw <"$3"`, "sh", script, strconv.Itoa(len(text)), input)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		have, err := os.ReadFile(rules)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(have); got != "allow 22/tcp\n"+text {
			t.Errorf("ufw has\n%swant\n%s", got, text)
		}
	}
	two := UFWRules(*openFor("10.0.0.4", "10.0.0.5"))
	set(two)
	set(two)
	set(UFWRules(*openFor("10.0.0.4")))
	set(nil)
}
