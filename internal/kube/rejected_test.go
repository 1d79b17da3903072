package kube

import (
	"strings"
	"testing"
)

// The two causes of vitobotta/hetzner-k3s#390.
func TestWhyRejected(t *testing.T) {
	for name, c := range map[string]struct {
		node     []Node
		leftover bool
		reason   string
	}{
		"left-over secret": {nil, true, "left over"},
		"same name":        {[]Node{{Name: "gpu-2", Ready: true, InternalIP: "10.0.0.99"}}, false, "two machines have one name"},
		"rebuilt":          {[]Node{{Name: "gpu-2", InternalIP: "10.0.0.12"}}, true, "earlier machine"},
		"a moment ago":     {[]Node{{Name: "gpu-2", Ready: true, InternalIP: "10.0.0.12"}}, false, "reinstalled a moment ago"},
	} {
		reason, leftover := State{Nodes: c.node}.WhyRejected("gpu-2", "10.0.0.12")
		if leftover != c.leftover || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q %v", name, reason, leftover)
		}
	}
}
