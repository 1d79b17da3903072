# Takes k3s off a machine, whatever state its installation is in.
# $1 data directory  $2 "keep" keeps the node password
# $KILLALL and $UNINSTALL are the texts of gpuctl's own scripts.
# Prints "left TEXT" for everything that is still there; exit code 61 then.
set -u
data=$1 password=$2
export K3S_DATA_DIR="$data"

for name in k3s-uninstall.sh k3s-agent-uninstall.sh; do
  [ ! -x "/usr/local/bin/$name" ] || timeout 300 "/usr/local/bin/$name" >/dev/null 2>&1 </dev/null
done

# What an uninstall script leaves, or all of it where there was none.
for unit in k3s k3s-agent; do
  systemctl disable --now "$unit.service" >/dev/null 2>&1
  systemctl reset-failed "$unit.service" >/dev/null 2>&1
  rm -rf "/etc/systemd/system/$unit.service" "/etc/systemd/system/$unit.service.env" "/etc/systemd/system/$unit.service.d" "/run/systemd/system/$unit.service.d"
done
systemctl daemon-reload
sh -c "$KILLALL" >/dev/null 2>&1
sh -c "$UNINSTALL" /usr/local/bin/k3s-uninstall.sh >/dev/null 2>&1
rm -rf /var/log/pods /var/log/containers /etc/cni/net.d/10-flannel.conflist
[ "$password" = keep ] || rm -rf /etc/rancher/node
# The kubelet's own: its slice, its word to logind about graceful shutdown, its plugins' folder.
systemctl stop kubepods.slice >/dev/null 2>&1
rm -f /etc/systemd/logind.conf.d/99-kubelet.conf
# Logins of a package mirror: a machine that is given back must not keep them.
rm -f /etc/apt/auth.conf.d/gpuctl.conf /etc/apt/gpuctl-ca.pem /etc/apt/apt.conf.d/51gpuctl-mirror
systemctl disable --now gpuctl-spot.service >/dev/null 2>&1
rm -rf /etc/systemd/system/gpuctl-spot.service /usr/local/lib/gpuctl/spot-watch /run/gpuctl-spot
rmdir /usr/local/lib/gpuctl 2>/dev/null
systemctl daemon-reload
# What gpuctl laid for k3s beside it. Limits that are in force stay until the next boot.
rm -f /etc/modules-load.d/*gpuctl*.conf /etc/sysctl.d/*gpuctl*.conf /etc/systemd/logind.conf.d/*gpuctl*.conf
rmdir /usr/libexec/kubernetes/kubelet-plugins/volume/exec /usr/libexec/kubernetes/kubelet-plugins/volume \
  /usr/libexec/kubernetes/kubelet-plugins /usr/libexec/kubernetes /etc/systemd/logind.conf.d 2>/dev/null
rmdir /etc/rancher /var/lib/rancher 2>/dev/null
# A container engine of the machine's own ends when the folder that it watches goes:
# containerd internal/cri/server/cni_conf_syncer.go, "cni conf dir is removed".
[ -e /run/containerd/containerd.sock ] || [ -e /run/crio/crio.sock ] || rmdir /etc/cni/net.d /etc/cni 2>/dev/null

left() { echo "left $*"; bad=1; }
bad=0
for path in /usr/local/bin/k3s /etc/rancher/k3s /run/k3s /run/flannel /var/lib/cni /etc/systemd/system/k3s.service /etc/systemd/system/k3s-agent.service; do
  [ ! -e "$path" ] || left "$path"
done
[ "$password" = keep ] || [ ! -e /etc/rancher/node ] || left /etc/rancher/node
for folder in "$data" /var/lib/kubelet; do
  for entry in "$folder"/* "$folder"/.[!.]*; do
    [ ! -e "$entry" ] || left "$entry"
  done
done
while read -r _ on _; do
  case $on in /run/k3s/* | /var/lib/kubelet/* | "$data"/*) left "mount $on" ;; esac
done </proc/self/mounts
for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0 flannel-wg flannel-wg-v6; do
  [ ! -e "/sys/class/net/$link" ] || left "interface $link"
done
for tables in iptables ip6tables; do
  command -v "$tables-save" >/dev/null 2>&1 || continue
  n=$("$tables-save" 2>/dev/null | grep -c -i -E 'KUBE-|CNI-|flannel')
  [ "$n" -eq 0 ] || left "$n rules in $tables"
done
if command -v nft >/dev/null 2>&1; then
  n=$(nft list tables 2>/dev/null | grep -c -E ' (kube-proxy|flannel-ipv[46])$')
  [ "$n" -eq 0 ] || left "$n tables of nftables"
fi
for cmdline in /proc/[0-9]*/cmdline; do
  command=$(tr '\0' ' ' <"$cmdline" 2>/dev/null) || continue
  case $command in "$data"/data/*/bin/containerd-shim*) left "process ${command%% *}" ;; esac
done
[ "$bad" = 0 ] || exit 61
