package bootstrap

import (
	"os"
	"slices"
	"testing"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

func TestSSHArgs(t *testing.T) {
	m := inventory.Machine{Name: "gpu-1", Host: "203.0.113.7", Port: 2222, User: "ubuntu", IdentityFile: "/k/id", Jump: "bastion"}
	got := sshArgs(m, "/s/known_hosts", "accept-new", true, []string{"echo", "it's"})
	want := []string{
		"-o", `UserKnownHostsFile="/s/known_hosts" ~/.ssh/known_hosts`, "-o", "StrictHostKeyChecking=accept-new", "-o", "User=ubuntu",
		"-o", "IdentityFile=/k/id", "-o", "ProxyJump=bastion", "-o", "Port=2222", "-t", "--", "203.0.113.7", `'echo' 'it'\''s'`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	line := sshArgs(inventory.Machine{Host: "-oProxyCommand=x"}, "", "strict", false, []string{"uptime | wc"})
	if want := []string{"-o", "StrictHostKeyChecking=yes", "--", "-oProxyCommand=x", "uptime | wc"}; !slices.Equal(line, want) {
		t.Errorf("got  %q\nwant %q", line, want)
	}
}

func TestJumpConfigCarriesTheHostKeys(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, err := writeJumpConfig("/s/known hosts", "strict", "/k/id")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	want := "IdentityFile \"/k/id\"\nUserKnownHostsFile \"/s/known hosts\" ~/.ssh/known_hosts\nStrictHostKeyChecking yes\nInclude ~/.ssh/config\nInclude /etc/ssh/ssh_config\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}
