//go:build lab

package e2e_test

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// officialLayout is a machine as the installer of k3s leaves it, as far as
// leaving it is concerned: binary, unit with its environment, configuration,
// data, a node password, and scripts under the official names. The text of the
// scripts is this test's own; it proves that it was called, and forgets things on
// purpose, as scripts of older versions do.
const officialLayout = `set -e
mkdir -p /etc/rancher/k3s /etc/rancher/node /var/lib/rancher/k3s/server/tls /var/lib/rancher/k3s/data/x/bin /var/lib/kubelet/pods /run/k3s /var/lib/cni /etc/cni/net.d
printf '#!/bin/sh\necho "k3s version v1.33.1+k3s1 (abc)"\n' >/usr/local/bin/k3s
printf '#!/bin/sh\nsystemctl stop k3s\necho killed >>/root/official\n' >/usr/local/bin/k3s-killall.sh
printf '#!/bin/sh\n/usr/local/bin/k3s-killall.sh\necho uninstalled >>/root/official\nrm -f /etc/systemd/system/k3s.service /usr/local/bin/k3s "$0"\n' >/usr/local/bin/k3s-uninstall.sh
chmod 755 /usr/local/bin/k3s*
ln -s k3s /usr/local/bin/kubectl
printf '[Service]\nExecStart=/bin/sleep 1000000\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/k3s.service
echo 'K3S_TOKEN=secret' >/etc/systemd/system/k3s.service.env
echo 'write-kubeconfig-mode: "0644"' >/etc/rancher/k3s/config.yaml
echo secret | tee /etc/rancher/node/password >/var/lib/rancher/k3s/server/token
echo certificate >/var/lib/rancher/k3s/server/tls/server-ca.crt
systemctl daemon-reload
systemctl enable --now k3s
ip link add cni0 type bridge
ip link add flannel.1 type bridge
iptables -N KUBE-SERVICES && iptables -A INPUT -j KUBE-SERVICES
nft add table ip kube-proxy && nft add chain ip kube-proxy services
nft add table inet mine
mount -t tmpfs tmpfs /run/k3s
`

// halfInstalled is a machine on which an installation was killed: a part of a
// download, a configuration, a unit that never started, tokens.
const halfInstalled = `set -e
mkdir -p /usr/local/bin /etc/rancher/k3s/config.yaml.d /var/lib/rancher/k3s/agent
head -c 100000 /dev/zero >/usr/local/bin/.k3s-v1.34.4+k3s1.part
echo 'token-file: /x' >/etc/rancher/k3s/config.yaml.d/50-gpuctl.yaml
echo secret >/etc/rancher/k3s/agent-token
printf '[Service]\nType=notify\nExecStart=/usr/local/bin/k3s agent\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/k3s-agent.service
systemctl daemon-reload
systemctl enable k3s-agent
`

// onlyParts is a machine on which even less was laid: no unit, no configuration.
const onlyParts = `set -e
mkdir -p /var/lib/rancher/k3s/server/cred /etc/rancher/node
echo secret >/var/lib/rancher/k3s/server/token
echo secret >/etc/rancher/node/password
`

// TestLeaving: reset takes off what is there, in whatever state, while no API
// answers: an official uninstall script is used and its rest is removed; what is
// not k3s's stays; a second reset finds nothing.
func TestLeaving(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "leave")
	m := s.Machines(machine.Spec{Name: "official"}, machine.Spec{Name: "half"}, machine.Spec{Name: "parts"})
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1]}, {Machine: m[2]}}})
	bare := map[string][]string{}
	for i, script := range []string{officialLayout, halfInstalled, onlyParts} {
		bare[m[i].Name] = traces(s, m[i])
		s.Exec(m[i], script)
	}
	s.Must(exitFindings, "reset") // nobody there to ask
	if out := s.Exec(m[0], "systemctl is-active k3s; ls /root/official 2>&1 || :"); !strings.HasPrefix(out, "active") || !strings.Contains(out, "No such file") {
		t.Errorf("without consent: %s", out)
	}
	var r applied
	if s.Decode(s.Must(0, "reset", "--yes", "-o", "json"), &r); r.Changed != 3 {
		t.Errorf("%d changes, want one a machine: %+v", r.Changed, r.Outcomes)
	}
	if out := s.Exec(m[0], "cat /root/official"); !strings.HasPrefix(out, "killed\nuninstalled") {
		t.Errorf("the official script said %q", out)
	}
	for _, m := range m {
		if left := added(bare[m.Name], traces(s, m)); left != "" {
			t.Errorf("%s: a reset leaves:\n%s", m.Name, left)
		}
	}
	if out := s.Exec(m[0], "nft list tables | grep -E 'kube-proxy|mine'"); out != "table inet mine" {
		t.Errorf("tables of nft: %q", out)
	}
	if s.Decode(s.Must(0, "reset", "--yes", "-o", "json"), &r); r.Changed != 0 {
		t.Errorf("a second reset changes %+v", r.Outcomes)
	}
}
