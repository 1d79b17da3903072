#!/bin/sh
# Managed by gpuctl: changes made here are overwritten.
# Stops k3s and everything it started on this machine: containers, mounts,
# network interfaces and packet filter rules. Data and configuration stay.
[ "$(id -u)" -eq 0 ] || exec sudo "$0" "$@"

data=${K3S_DATA_DIR:-@DATA_DIR@}
for bin in "$data"/data/*/bin; do
  [ ! -d "$bin" ] || PATH=$PATH:$bin:$bin/aux
done

for unit in /etc/systemd/system/k3s*.service; do
  [ ! -s "$unit" ] || systemctl stop "${unit##*/}"
done

# Containers run below the shims; only shims of this data directory are ours.
pids=$(for status in /proc/[0-9]*/status; do
  pid='' ppid=''
  while read -r key value _; do
    case $key in Pid:) pid=$value ;; PPid:) ppid=$value; break ;; esac
  done <"$status" 2>/dev/null
  [ -z "$pid" ] || echo "$pid $ppid"
done)
roots=
for cmdline in /proc/[0-9]*/cmdline; do
  command=$(tr '\0' ' ' <"$cmdline" 2>/dev/null) || continue
  case $command in
    "$data"/data/*/bin/containerd-shim*) pid=${cmdline#/proc/} && roots="$roots ${pid%/cmdline}" ;;
  esac
done
doomed=$roots
while [ -n "$roots" ]; do
  next=
  while read -r pid ppid; do
    case " $roots " in *" $ppid "*) next="$next $pid" ;; esac
  done <<PIDS
$pids
PIDS
  doomed="$doomed $next"
  roots=$next
done
# shellcheck disable=SC2086 # a list of numbers
[ -z "${doomed# }" ] || kill -9 $doomed 2>/dev/null

# The deepest mounts first. A mount point that stays mounted is never emptied.
mounts=$(while read -r _ on _; do echo "$on"; done </proc/self/mounts | sort -r)
for on in $mounts; do
  case $on in
    /run/k3s | /run/k3s/* | /var/lib/kubelet/pods | /var/lib/kubelet/pods/* | /var/lib/kubelet/plugins | /var/lib/kubelet/plugins/* | /run/netns/cni-*)
      umount -f "$on" 2>/dev/null || umount -l "$on" 2>/dev/null
      if ! grep -q -F " $on " /proc/self/mounts; then rm -rf "$on"; fi
      ;;
  esac
done

if command -v ip >/dev/null 2>&1; then
  for ns in $(ip netns show 2>/dev/null | while read -r name _; do echo "$name"; done); do
    case $ns in cni-*) ip netns delete "$ns" ;; esac
  done
  for link in $(ip -o link show master cni0 2>/dev/null | while read -r _ name _; do name=${name%:} && echo "${name%@*}"; done) \
    cni0 flannel.1 flannel-v6.1 kube-ipvs0 flannel-wg flannel-wg-v6; do
    ip link show "$link" >/dev/null 2>&1 && ip link delete "$link"
  done
fi
rm -rf /var/lib/cni

for tables in iptables ip6tables; do
  command -v "$tables-save" >/dev/null 2>&1 || continue
  rules=$("$tables-save" 2>/dev/null) || continue
  printf '%s\n' "$rules" | grep -q -i -E 'KUBE-|CNI-|flannel' || continue
  printf '%s\n' "$rules" | grep -v -i -E 'KUBE-|CNI-|flannel' | "$tables-restore"
done

# kube-proxy's and flannel's tables where they use nftables themselves: kubernetes
# pkg/proxy/nftables, flannel pkg/trafficmngr/nftables.
if command -v nft >/dev/null 2>&1; then
  nft list tables 2>/dev/null | while read -r _ family name; do
    case $name in kube-proxy | flannel-ipv4 | flannel-ipv6) nft delete table "$family" "$name" ;; esac
  done
fi
exit 0
