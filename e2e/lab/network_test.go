package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

func TestFreeAddress(t *testing.T) {
	n := machine.Network{Name: "x", Gateway: "10.88.7.1"}
	var all []string
	for last := range 256 {
		all = append(all, fmt.Sprintf("10.88.7.%d", last))
	}
	for name, tc := range map[string]struct {
		gateway string
		used    []string
		want    string
		err     string
	}{
		"first":         {gateway: n.Gateway, want: "10.88.7.10"},
		"a gap":         {gateway: n.Gateway, used: []string{"10.88.7.10", "10.88.7.12"}, want: "10.88.7.11"},
		"other network": {gateway: n.Gateway, used: []string{"10.88.8.10"}, want: "10.88.7.10"},
		"full":          {gateway: n.Gateway, used: all, err: "all are in use"},
		"no gateway":    {err: "choosing an address"},
	} {
		got, err := freeAddress(machine.Network{Name: "x", Gateway: tc.gateway}, tc.used)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q in it", name, err, tc.err)
			}
			continue
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tc.want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	taken := []netip.Prefix{netip.MustParsePrefix("10.88.1.0/24"), netip.MustParsePrefix("172.17.0.0/16")}
	if !overlaps(netip.MustParsePrefix("10.88.0.0/16"), taken) || overlaps(netip.MustParsePrefix("10.88.2.0/24"), taken) {
		t.Error("subnets in use are not told apart from free ones")
	}
}

func TestOptions(t *testing.T) {
	if o, err := (Options{}).withDefaults(); err != nil || o.ID != "lab" || o.Out == nil {
		t.Errorf("the zero value becomes %+v, %v", o, err)
	}
	for _, id := range []string{"-a", "A", "a/b", strings.Repeat("a", 22)} {
		if _, err := (Options{ID: id}).withDefaults(); err == nil {
			t.Errorf("id %q is accepted", id)
		}
	}
}
