//go:build lab

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// outside are two machines that reach each other in one network alone, which is
// not that of their default routes.
func outside(s *scene.Scene) (a, b *machine.Machine) {
	m := s.Machines(
		machine.Spec{Name: "a", GPU: scene.H100(1), Networks: []string{s.Name + "-a", "inside"}},
		machine.Spec{Name: "b", GPU: scene.H100(1), Networks: []string{s.Name + "-b", "inside"}},
	)
	return m[0], m[1]
}

// addressed fails the test unless every node is known by its address inside,
// and its pods' traffic too.
func addressed(t *testing.T, s *scene.Scene, server *machine.Machine, want map[string]string) {
	t.Helper()
	for name, ip := range want {
		got := s.Exec(server, fmt.Sprintf(`timeout 30 k3s kubectl get node %s -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address} {.metadata.annotations.flannel\.alpha\.coreos\.com/public-ip}'`, name))
		if got != ip+" "+ip {
			t.Errorf("node %s has address and overlay %q, want %s for both", name, got, ip)
		}
	}
}

// interfaceOf is the interface that holds a machine's address inside; Docker
// numbers them as it likes.
func interfaceOf(s *scene.Scene, m *machine.Machine) string {
	return s.Exec(m, "ip -o -4 addr show | awk '$4 == \""+m.IPs[1]+"/24\" { print $2 }'")
}

// disk gives a machine an empty disk of a stable name. It goes when its last
// user does: a mount of the machine.
func disk(t *testing.T, s *scene.Scene, m *machine.Machine, gib int) (device, loop string) {
	t.Helper()
	loop = s.Exec(m, fmt.Sprintf(`set -e
truncate -s %dG /srv/disk
n=$(losetup -f)
[ -b "$n" ] || mknod "$n" b 7 "${n#/dev/loop}"
losetup "$n" /srv/disk
mkdir -p /dev/disk/by-id
ln -sf "$n" /dev/disk/by-id/lab-data
echo "$n"`, gib))
	t.Cleanup(func() { s.TryExec(m, "losetup -d "+loop) }) // the machine may be gone
	return "/dev/disk/by-id/lab-data", loop
}

// TestPlaces: of two networks the one is taken that the machines share, a disk is
// formatted only when that is asked for and holds k3s's data then, and both
// machines' GPUs are proven.
func TestPlaces(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "places")
	a, b := outside(s)
	device, loop := disk(t, s, b, 12)
	members := func(format bool) scene.Cluster {
		return scene.Cluster{Members: []scene.Member{
			{Machine: a, GPUs: 1}, {Machine: b, GPUs: 1, More: map[string]any{"dataDisk": map[string]any{"device": device, "format": format}}},
		}}
	}
	s.Write(members(false))
	r := s.Must(exitFindings, "plan")
	mentions(t, "a plan with an empty disk", r.Stdout+r.Stderr, "data-disk-unformatted", loop)
	if got := s.Exec(b, "blkid -p "+loop+" || :"); got != "" {
		t.Errorf("the disk was written: %s", got)
	}

	s.Write(members(true))
	r = s.Must(0, "plan", "-v")
	mentions(t, "the plan", r.Stdout+r.Stderr, "node-ip "+a.IPs[1]+": ", "which all machines share", "flannel-iface "+interfaceOf(s, a)+": holds "+a.IPs[1], "mkfs.ext4 on "+loop)
	s.Must(0, "bootstrap")
	proven(t, s, map[string]int{a.Name: 1, b.Name: 1})
	addressed(t, s, a, map[string]string{a.Name: a.IPs[1], b.Name: b.IPs[1]})
	got := s.Exec(b, `df --output=source /var/lib/rancher/k3s/agent/containerd | tail -n 1
systemctl is-active var-lib-rancher.mount k3s-agent
grep -c 'UUID=.* /var/lib/rancher ext4 .*nofail' /etc/fstab`)
	if want := loop + "\nactive\nactive\n1"; got != want {
		t.Errorf("k3s's data, the units and fstab:\n%s\nwant\n%s", got, want)
	}
	nothingChanges(t, s, s.EndState())
}
