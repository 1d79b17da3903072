package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

// framed is the answer of a machine on which the sections in status did not end well.
func framed(c remote.Cmd, status map[string]string) remote.Result {
	mark := c.Args[0]
	var out strings.Builder
	stamp := func() { fmt.Fprintf(&out, "%s clock %d\n", mark, time.Now().UnixNano()) }
	stamp()
	for _, s := range sections() {
		if !strings.Contains(c.Script, "section "+s.Name+" ") {
			continue
		}
		end := status[s.Name]
		if end == "" {
			end = "ok"
		}
		body := map[string]string{"network": "link 1: eth0: <UP> mtu 1500\naddr 1: eth0 inet 10.0.0.4/24", "pci": "", "modules": "overlay=ready"}[s.Name]
		fmt.Fprintf(&out, "%s begin %s\n%s\n%s end %s %s\n", mark, s.Name, body, mark, s.Name, end)
	}
	stamp()
	fmt.Fprintf(&out, "%s done\n", mark)
	return remote.Result{Stdout: []byte(out.String())}
}

// TestATimedOutSectionIsAskedAgain: a busy machine is asked a second time,
// with twice the time, for what was late; a driver that hangs is not.
func TestATimedOutSectionIsAskedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second map[string]string
		fails         error
		calls         int
		network       State
	}{
		"all in time":             {first: nil, calls: 1, network: StateKnown},
		"late once":               {first: map[string]string{"network": "timeout"}, calls: 2, network: StateKnown},
		"late twice":              {first: map[string]string{"network": "timeout"}, second: map[string]string{"network": "timeout"}, calls: 2, network: StateUnknown},
		"refused the second time": {first: map[string]string{"network": "timeout"}, second: map[string]string{"network": "denied"}, calls: 2, network: StateUnknown},
		"the second look fails":   {first: map[string]string{"network": "timeout"}, fails: errors.New("connection lost"), calls: 2, network: StateUnknown},
		"nvidia-smi hangs":        {first: map[string]string{"smi": "timeout", "busy": "timeout"}, calls: 1, network: StateKnown},
	} {
		t.Run(name, func(t *testing.T) {
			fake := remotetest.New(t)
			var scripts []string
			fake.Expect("probe").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
				scripts = append(scripts, c.Script)
				if len(scripts) == 1 {
					return framed(c, tc.first), nil
				}
				return framed(c, tc.second), tc.fails
			}).Times(tc.calls)
			f, err := Probe(context.Background(), fake, Request{Key: "k"})
			if err != nil || len(scripts) != tc.calls || f.Network.State != tc.network {
				t.Fatalf("%v; asked %d times, network %+v; want %d times, %s", err, len(scripts), f.Network, tc.calls, tc.network)
			}
			if tc.calls == 2 && (!strings.Contains(scripts[1], "section network 10 ") || strings.Contains(scripts[1], "section pci ")) {
				t.Errorf("the second look is not for the late section alone, with twice the time:\n%.300s", scripts[1])
			}
		})
	}
}

func TestSinceFillsInWhatARunDoesNotChange(t *testing.T) {
	earlier := Facts{
		Network: Known(Network{Default4: "eth0"}), PCI: Known([]PCIDevice{{Device: "2330"}}), SecureBoot: Absent[bool](),
		Files: Known(map[string]File{"/x": {}}), K3s: Absent[K3s](), Driver: Absent[Driver](),
	}
	now := Facts{PCI: Known([]PCIDevice{}), Files: Unknown[map[string]File]("timeout"), K3s: Unknown[K3s]("timeout"), Driver: Unknown[Driver]("timeout")}
	got := now.Since(earlier)
	if got.Network.Value.Default4 != "eth0" || !got.SecureBoot.Missing() {
		t.Errorf("addresses or Secure Boot are forgotten: %+v", got)
	}
	if !got.PCI.Has() || len(got.PCI.Value) != 0 {
		t.Errorf("what was seen now does not count: %+v", got.PCI)
	}
	if !got.Files.Unsure() || !got.K3s.Unsure() || !got.Driver.Unsure() {
		t.Errorf("what actions change is taken from before: %+v", got)
	}
}

// TestLostIsWhatWasSeenBefore: what was never to be seen is not lost.
func TestLostIsWhatWasSeenBefore(t *testing.T) {
	whole := Facts{K3s: Absent[K3s](), Files: Known(map[string]File{}), Packages: Known(Packages{}), Network: Known(Network{}), PCI: Known([]PCIDevice{})}
	late := whole
	late.K3s = Unknown[K3s]("timeout")
	never := late
	for name, tc := range map[string]struct {
		now, earlier Facts
		want         string
	}{
		"all there": {whole, whole, ""}, "k3s is late": {late, whole, "k3s"}, "never seen": {never, late, ""}, "there again": {whole, late, ""},
	} {
		if got := tc.now.Lost(tc.earlier); got != tc.want {
			t.Errorf("%s: %q is lost, want %q", name, got, tc.want)
		}
	}
}

func TestOwnConfigurationComesBackInPart(t *testing.T) {
	k, err := parseK3s("path=/usr/local/bin/k3s\nown=node-ip \"10.0.0.4,fd12::4\"\nown=flannel-iface \"eth1\"\nown=flannel-external-ip true\nown=unproven yes\n")
	want := map[string]string{"node-ip": "10.0.0.4,fd12::4", "flannel-iface": "eth1", "flannel-external-ip": "true", "unproven": "yes"}
	if err != nil || !reflect.DeepEqual(k.InForce, want) {
		t.Errorf("%v, %v", k.InForce, err)
	}
}
