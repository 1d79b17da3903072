//go:build lab

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// scenario is a machine's GPUs for machine.Spec.
func scenario(t *testing.T, s gpu.Scenario) []byte {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// planned is what plan -o json prints of actions.
type planned struct {
	Actions []struct{ ID, Title, Reason, Consent string }
}

// outcome is what became of an action, "" where it did not run.
func (a applied) outcome(id string) string {
	for _, o := range a.Outcomes {
		if o.ID == id {
			return o.Status
		}
	}
	return ""
}

// TestDriverIsInstalled: a machine without a driver asks for consent, then gets
// the driver of the set's branch though a newer one is there, and proves its
// GPUs without a reboot.
func TestDriverIsInstalled(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "nodriver")
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, gpu.NoDriver(2))})[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 2}}})

	var p planned
	s.Decode(s.Must(0, "plan", "-o", "json"), &p)
	consents := map[string]string{}
	for _, a := range p.Actions {
		consents[strings.TrimPrefix(a.ID, m.Name+"/")] = a.Consent
	}
	if consents["driver"] != "driver" || consents["reboot"] != "reboot" {
		t.Errorf("the first plan asks for %v", consents)
	}
	s.Must(exitFindings, "apply") // nobody there to ask
	if out := s.Exec(m, "dpkg -l 'nvidia*' 2>/dev/null | grep -c ^ii || :"); out != "0" {
		t.Errorf("%s packages without consent", out)
	}

	// What cannot be had is a finding, and nothing else is taken instead.
	with := func(driver map[string]any) scene.Cluster {
		return scene.Cluster{
			Members: []scene.Member{{Machine: m, GPUs: 2, More: map[string]any{"group": "gpu"}}},
			Spec:    map[string]any{"groups": []map[string]any{{"name": "gpu", "driver": driver}}},
		}
	}
	s.Write(with(map[string]any{"mode": "operator"}))
	mentions(t, "no image for Debian", s.Must(exitFindings, "check", "--no-pairs").Stderr, "driver-image-missing", "nvcr.io/nvidia/driver:580-debian12")
	s.Write(with(map[string]any{"branch": "570"}))
	mentions(t, "no package of the branch", s.Must(exitFindings, "apply", "--yes").Stderr, "driver-no-package", "nvidia-driver-pinning-570")
	if out := s.Exec(m, "dpkg -l 'nvidia-driver*' 'nvidia-open*' 2>/dev/null | grep -c ^ii || :"); out != "0" {
		t.Errorf("%s packages of another branch", out)
	}
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 2}}})

	boot := s.Exec(m, "cat /proc/sys/kernel/random/boot_id")
	s.Must(0, "apply", "--yes")
	proven(t, s, map[string]int{m.Name: 2})
	if now := s.Exec(m, "cat /proc/sys/kernel/random/boot_id"); now != boot {
		t.Error("it was rebooted, though the driver loads without")
	}
	driverIs(t, s, m, gpu.Driver, "open")
	nothingChanges(t, s, s.EndState())
}

// TestNouveauGivesWay: nouveau holds the GPUs; the driver comes, the machine
// reboots, the run goes on by itself.
func TestNouveauGivesWay(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "nouveau")
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, gpu.Nouveau(1))})[0]
	never := map[string]any{"groups": []map[string]any{{"name": "gpu", "driver": map[string]any{"reboot": "never"}}}}
	member := scene.Member{Machine: m, GPUs: 1, More: map[string]any{"group": "gpu"}}
	s.Write(scene.Cluster{Members: []scene.Member{member}, Spec: never})
	mentions(t, "without a reboot", s.Must(exitFindings, "apply", "--yes").Stderr, "driver-reboot-needed")

	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 1}}})
	boot := s.Exec(m, "cat /proc/sys/kernel/random/boot_id")
	var got applied
	s.Decode(s.Must(0, "apply", "--yes", "-o", "json"), &got)
	for _, id := range []string{"driver", "reboot", "toolkit", "k3s", "smoke"} {
		if o := got.outcome(m.Name + "/" + id); o != "done" {
			t.Errorf("%s: %q, want done", id, o)
		}
	}
	if now := s.Exec(m, "cat /proc/sys/kernel/random/boot_id"); now == boot {
		t.Error("it was not rebooted")
	}
	proven(t, s, map[string]int{m.Name: 1})
	driverIs(t, s, m, gpu.Driver, "open")
	nothingChanges(t, s, s.EndState())
}

// TestFabricManagerComesWithTheDriver: a board with NVSwitches gets the fabric
// manager in the driver's version, though a newer one is there.
func TestFabricManagerComesWithTheDriver(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "hgx")
	board := gpu.HGX()
	board.Driver = ""
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, board)})[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 8}}})
	s.Must(0, "apply", "--yes")
	proven(t, s, map[string]int{m.Name: 8})
	got := s.Exec(m, `systemctl is-active nvidia-fabricmanager
dpkg-query -W -f '${Version}\n' nvidia-fabricmanager
apt-mark showhold | grep -x nvidia-fabricmanager`)
	if want := "active\n" + gpu.Driver + "-1\nnvidia-fabricmanager"; got != want {
		t.Errorf("fabric manager:\n%s\nwant\n%s", got, want)
	}
	nothingChanges(t, s, s.EndState())
}

// TestDriverOfARunningNodeChanges: another branch is wanted on a node that
// works. It is drained, gets the driver, reboots, proves its GPUs again and only
// then takes work.
func TestDriverOfARunningNodeChanges(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "branch")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "gpu", GPU: scenario(t, gpu.NoDriver(1))})
	server, node := m[0], m[1]
	want := map[string]int{server.Name: 0, node.Name: 1}
	with := func(branch string) {
		group := map[string]any{"groups": []map[string]any{{"name": "gpu", "driver": map[string]any{"branch": branch}}}}
		member := scene.Member{Machine: node, GPUs: 1, More: map[string]any{"group": "gpu"}}
		s.Write(scene.Cluster{Members: []scene.Member{{Machine: server}, member}, Spec: group})
	}
	with("580")
	s.Must(0, "apply", "--yes")
	proven(t, s, want)

	with("595")
	boot := s.Exec(node, "cat /proc/sys/kernel/random/boot_id")
	var got applied
	s.Decode(s.Must(0, "apply", "--yes", "-o", "json"), &got)
	var order []string
	for _, o := range got.Outcomes {
		if o.Machine == node.Name && o.Status == "done" {
			order = append(order, strings.TrimPrefix(o.ID, node.Name+"/"))
		}
	}
	if ids := strings.Join(order, " "); !strings.HasPrefix(ids, "drain driver reboot") || !strings.HasSuffix(ids, "smoke uncordon") {
		t.Errorf("done: %s", ids)
	}
	if now := s.Exec(node, "cat /proc/sys/kernel/random/boot_id"); now == boot {
		t.Error("it was not rebooted")
	}
	if v := s.Exec(node, "nvidia-smi --query-gpu=driver_version --format=csv,noheader"); v != gpu.NewerDriver {
		t.Errorf("driver %s, want %s", v, gpu.NewerDriver)
	}
	proven(t, s, want)
	if s.Nodes()[node.Name].Spec.Unschedulable {
		t.Error("the node stays closed")
	}
	nothingChanges(t, s, s.EndState())
}

// driverIs reads past gpuctl what driver a machine has, and that it is held.
func driverIs(t *testing.T, s *scene.Scene, m *machine.Machine, version, flavour string) {
	t.Helper()
	got := s.Exec(m, `modinfo -F version nvidia; cat /usr/lib/lab/installed/modules
apt-mark showhold | grep -cxE 'nvidia-open|nvidia-driver-cuda|nvidia-kernel-open-dkms|nvidia-driver-pinning-580'
grep -c nouveau /etc/modprobe.d/gpuctl-nouveau.conf`)
	if want := version + "\n" + flavour + " " + version + "\n4\n2"; got != want {
		t.Errorf("driver:\n%s\nwant\n%s", got, want)
	}
}
