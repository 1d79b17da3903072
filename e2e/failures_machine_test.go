//go:build lab

package e2e_test

import (
	"fmt"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// until waits on the machine for a condition in sh, ten seconds at most.
func until(condition string) string {
	return fmt.Sprintf("for i in $(seq 100); do %[1]s && break; sleep 0.1; done\n%[1]s\n", condition)
}

// deb makes a package with one maintainer script, at /run/t/NAME.deb.
func deb(name, script, text string) string {
	return fmt.Sprintf(`mkdir -p /run/t/%[1]s/DEBIAN
printf 'Package: %[1]s\nVersion: 1\nArchitecture: all\nMaintainer: lab <root@lab>\nDescription: lab\n' >/run/t/%[1]s/DEBIAN/control
printf '#!/bin/sh\n%[3]s\n' >/run/t/%[1]s/DEBIAN/%[2]s
chmod 755 /run/t/%[1]s/DEBIAN/%[2]s
dpkg-deb --build /run/t/%[1]s >/dev/null
`, name, script, text)
}

// service starts a command that stays.
func service(unit, command string) string {
	return "systemd-run --quiet --collect --unit=" + unit + " " + command + "\n"
}

// program lays a shell script.
func program(path, text string) string {
	return fmt.Sprintf("printf '%%s\\n' '#!/bin/sh' '%s' >%s\nchmod 755 %s\n", text, path, path)
}

// systemFailures are of the operating system and its packages.
func systemFailures() []failure {
	return []failure{
		{
			name: "a package is being installed", want: codes{"package-lock-held": "informs"}, shows: "dpkg",
			do: deb("lab-slow", "preinst", "while [ ! -e /run/t/go ]; do sleep 0.1; done; exit 1") +
				service("lab-slow", "dpkg -i /run/t/lab-slow.deb") + until("pgrep -f 'preinst install' >/dev/null"),
			undo: "touch /run/t/go\n" + until("! systemctl is-active -q lab-slow") + "dpkg --purge lab-slow 2>/dev/null",
		},
		{
			name: "a package is half installed", want: codes{"dpkg-interrupted": "blocks"},
			do:   deb("lab-broken", "postinst", "exit 1") + "! dpkg -i /run/t/lab-broken.deb >/dev/null 2>&1",
			undo: "dpkg --purge lab-broken >/dev/null 2>&1",
		},
		{
			name: "cloud-init runs", modelled: "its status file", want: codes{"cloud-init-running": "informs"},
			do: "mkdir -p /run/cloud-init\necho '{}' >/run/cloud-init/status.json", undo: "rm -r /run/cloud-init",
		},
		{
			name: "another distribution", modelled: "os-release says so", want: codes{"os-unsupported": "blocks"}, shows: "Alpine",
			do: `printf 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.21.0\nPRETTY_NAME="Alpine Linux v3.21"\n' >/run/t/os
mount --bind /run/t/os /usr/lib/os-release`,
			undo: "umount /usr/lib/os-release",
		},
		{
			name: "a reboot is pending", want: codes{"reboot-pending": "warns"},
			do: "touch /var/run/reboot-required", undo: "rm /var/run/reboot-required",
		},
		{
			name: "the clock is ten minutes behind", modelled: "date tells it; a container has the clock of its host",
			want: codes{"clock-wrong": "blocks"}, shows: "behind this computer's clock",
			do: program("/usr/local/bin/date", `exec /bin/date -d "10 minutes ago" "$@"`), undo: "rm /usr/local/bin/date",
		},
		{
			name: "little memory and swap", modelled: "/proc/meminfo says so",
			want: codes{"memory-small": "warns", "swap-present": "informs"}, shows: "4096 MiB of swap",
			do: `sed 's/^MemTotal:.*/MemTotal: 400000 kB/;s/^SwapTotal:.*/SwapTotal: 4194304 kB/' /proc/meminfo >/run/t/meminfo
mount --bind /run/t/meminfo /proc/meminfo`,
			undo: "umount /proc/meminfo",
		},
		{
			name: "the disk is full", want: codes{"disk-too-small": "blocks"}, shows: "0.0 GiB free",
			do: `mkdir -p /var/lib/rancher
mount -t tmpfs -o size=16m none /var/lib/rancher
! cat /dev/zero >/var/lib/rancher/full 2>/dev/null`,
			undo: "umount /var/lib/rancher\nrmdir /var/lib/rancher",
		},
	}
}

// placeFailures are of what else lives on the machine, and of its network.
func placeFailures() []failure {
	config := func(line string) string {
		return "mkdir -p /etc/rancher/k3s\nprintf '%s\\n' '" + line + "' >/etc/rancher/k3s/"
	}
	unit := func(name string) string {
		return "printf '[Service]\\nExecStart=/bin/sleep 3600\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/" + name + ".service\nsystemctl daemon-reload"
	}
	noUnit := func(name string) string {
		return "rm /etc/systemd/system/" + name + ".service\nsystemctl daemon-reload"
	}
	return []failure{
		{
			name: "a kubelet of somebody else", want: codes{"foreign-kubernetes": "blocks"}, shows: "kubelet",
			do: "mkdir -p /etc/kubernetes\ntouch /etc/kubernetes/kubelet.conf\ncp /bin/sleep /run/t/kubelet\n" +
				service("lab-kubelet", "/run/t/kubelet 3600") + until("pgrep -x kubelet >/dev/null"),
			undo: "systemctl stop lab-kubelet\nrm -r /etc/kubernetes",
		},
		{name: "k3s of somebody else", want: codes{"k3s-foreign": "blocks"}, shows: "k3s-agent.service", do: unit("k3s-agent"), undo: noUnit("k3s-agent")},
		{name: "it is a server already", want: codes{"k3s-other-role": "blocks"}, shows: "k3s.service", do: unit("k3s"), undo: noUnit("k3s")},
		{
			name: "a user's key that ends an agent", want: codes{"k3s-unknown-key": "blocks"}, shows: "write-kubeconfig-mode",
			do: config(`write-kubeconfig-mode: "0644"`) + "config.yaml", undo: "rm -r /etc/rancher",
		},
		{
			name: "a user's data directory", want: codes{"k3s-config-conflict": "blocks"}, shows: "data-dir",
			do: config("data-dir: /mnt/k3s") + "config.yaml", undo: "rm -r /etc/rancher",
		},
		{
			name: "registries.yaml is no YAML", want: codes{"registries-invalid": "blocks"},
			do: config("mirrors: [") + "registries.yaml", undo: "rm -r /etc/rancher",
		},
		{
			name: "a port is taken", want: codes{"port-in-use": "blocks"}, shows: "10250 by nc",
			do: service("lab-port", "nc -lk 10250") + until("ss -Hltn 'sport = :10250' | grep -q ."), undo: "systemctl stop lab-port",
		},
		{
			name: "a network plugin's rest", want: codes{"foreign-cni": "warns"}, shows: "10-calico.conflist",
			do: "mkdir -p /etc/cni/net.d\necho '{}' >/etc/cni/net.d/10-calico.conflist", undo: "rm -r /etc/cni",
		},
		{
			name: "Docker runs", modelled: "a process of that name", want: codes{"second-container-engine": "informs"},
			do:   "cp /bin/sleep /run/t/dockerd\n" + service("lab-docker", "/run/t/dockerd 3600") + until("pgrep -x dockerd >/dev/null"),
			undo: "systemctl stop lab-docker",
		},
		{
			name: "ufw is on", modelled: "its configuration", want: codes{"ufw-blocks": "warns"},
			do: "mkdir -p /etc/ufw\necho ENABLED=yes >/etc/ufw/ufw.conf", undo: "rm -r /etc/ufw",
		},
		{
			name: "the image's firewall refuses what is not SSH", want: codes{"iptables-reject": "warns"},
			do:   "iptables -A INPUT -p tcp --dport 22 -j ACCEPT\niptables -A INPUT -j REJECT --reject-with icmp-host-prohibited",
			undo: "iptables -D INPUT -j REJECT --reject-with icmp-host-prohibited\niptables -D INPUT -p tcp --dport 22 -j ACCEPT",
		},
		{
			name: "no resolver that pods can ask", want: codes{"dns-public-fallback": "informs"}, shows: "127.0.0.53",
			do: "cp /etc/resolv.conf /run/t/\necho 'nameserver 127.0.0.53' >/etc/resolv.conf", undo: "cat /run/t/resolv.conf >/etc/resolv.conf",
		},
	}
}

// twinFailures show only where two machines are compared.
func twinFailures(s *scene.Scene, first *machine.Machine) []failure {
	id := s.Exec(first, "cat /etc/machine-id")
	const address = "ip address add 198.51.100.9/32 dev eth0"
	return []failure{
		{
			name: "a cloned machine id", want: codes{"machine-id-duplicate": "warns"}, shows: first.Name,
			do: "cp /etc/machine-id /run/t/\necho " + id + " >/etc/machine-id", undo: "cat /run/t/machine-id >/etc/machine-id",
		},
		{
			name: "a cloned host name", want: codes{"hostname-duplicate": "informs"}, shows: first.Name,
			do: "hostname " + first.Name, undo: `hostname "$(cat /etc/hostname)"`,
		},
		{
			name: "an address given twice", want: codes{"address-duplicate": "warns"}, shows: "198.51.100.9",
			cluster: func(*scene.Cluster) { s.Exec(first, address) },
			do:      address, undo: "ip address delete 198.51.100.9/32 dev eth0",
		},
	}
}
