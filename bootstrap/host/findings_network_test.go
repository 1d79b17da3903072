package host

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestSurroundings(t *testing.T) {
	warns, informs := diag.Warns, diag.Informs
	for name, c := range map[string]struct {
		change   func(*Facts)
		code     diag.Code
		severity diag.Severity
		evidence string
	}{
		"IPv6 only":         {func(f *Facts) { f.Network.Value.Default4, f.Network.Value.Default6 = "", "ens3" }, CodeIPv6Only, warns, "ens3"},
		"loopback resolver": {func(f *Facts) { f.Network.Value.Nameservers = []string{"127.0.0.1", "169.254.1.1"} }, CodeDNSFallback, informs, "127.0.0.1, 169.254.1.1"},
		"ZFS": {func(f *Facts) {
			f.Disks.Value.Mounts[DefaultDataDir] = Mount{Type: "zfs", On: "/tank", SizeMiB: 500 << 10, FreeMiB: 400 << 10}
		}, CodeSnapshotter, warns, "zfs (/tank)"},
		"inotify": {func(f *Facts) { f.Sysctls.Value["fs.inotify.max_user_instances"] = "128" }, CodeInotify, informs, "128"},
		"k3s restarts": {func(f *Facts) {
			f.K3s = Known(K3s{Version: "v1.36.3+k3s1", Units: map[string]Unit{"k3s-agent": {Active: "activating", Sub: "auto-restart", Restarts: 41}}})
		}, CodeCrashLoop, warns, "k3s-agent.service was started 41 times"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fit()
			c.change(&f)
			found := Findings(agent(), f)
			if len(found) != 1 || found[0].Code != c.code || found[0].Severity != c.severity || !strings.Contains(found[0].Evidence, c.evidence) {
				t.Errorf("%+v; want one %s (%s) with %q", found, c.code, c.severity, c.evidence)
			}
		})
	}
}

func TestDockerThatDropsForwardedPackets(t *testing.T) {
	f := fit()
	f.Firewall.Value.ForwardPolicy = "DROP"
	if found := Findings(agent(), f); len(found) > 0 {
		t.Errorf("without Docker: %+v", found)
	}
	f.Others = Known([]Other{{"docker", "dockerd (process 1)", true}})
	found := Findings(agent(), f)
	if len(found) != 2 || found[0].Code != CodeSecondEngine || found[1].Code != CodeDockerDrop || found[1].Severity != diag.Warns {
		t.Errorf("%+v", found)
	}
}

func TestSurroundingsThatAreWell(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"systemd-resolved": func(f *Facts) {
			f.Network.Value.Nameservers, f.Network.Value.ResolvedFile = []string{"127.0.0.53"}, true
		},
		"one of two resolvers": func(f *Facts) { f.Network.Value.Nameservers = []string{"127.0.0.1", "10.0.0.2"} },
		"both families":        func(f *Facts) { f.Network.Value.Default6 = "ens3" },
		"restarted once": func(f *Facts) {
			f.K3s = Known(K3s{Version: "v1.36.3+k3s1", Units: map[string]Unit{"k3s": {Active: "active", Sub: "running", Restarts: 9}}})
		},
	} {
		f := fit()
		change(&f)
		if found := Findings(agent(), f); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
