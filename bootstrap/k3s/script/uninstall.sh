#!/bin/sh
# Managed by gpuctl: changes made here are overwritten.
# Removes k3s, its data and its configuration from this machine. The node
# password in /etc/rancher/node stays, as with k3s's own script.
[ "$(id -u)" -eq 0 ] || exec sudo "$0" "$@"

data=${K3S_DATA_DIR:-@DATA_DIR@}
[ ! -x /usr/local/bin/k3s-killall.sh ] || /usr/local/bin/k3s-killall.sh

systemctl disable @UNIT@.service
systemctl reset-failed @UNIT@.service
rm -rf /etc/systemd/system/@UNIT@.service /etc/systemd/system/@UNIT@.service.env /etc/systemd/system/@UNIT@.service.d
systemctl daemon-reload
trap 'rm -f "$0"' EXIT

for unit in /etc/systemd/system/k3s*.service; do
  if [ -e "$unit" ]; then
    echo "other k3s services are installed, data and binary stay"
    exit 0
  fi
done

mounted_in() { # mounted_in PATH: is something mounted at or below it?
  while read -r _ on _; do
    case $on in "$1" | "$1"/*) return 0 ;; esac
  done </proc/self/mounts
  return 1
}

# clear PATH: removes what is in a folder; mounts and their parents stay.
clear() {
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    if [ -d "$entry" ] && [ ! -L "$entry" ] && mounted_in "$entry"; then
      grep -q -F " $entry " /proc/self/mounts || clear "$entry"
    else
      rm -rf "$entry"
    fi
  done
}

for link in kubectl crictl ctr; do
  [ ! -L "/usr/local/bin/$link" ] || rm -f "/usr/local/bin/$link"
done
for folder in "$data" /var/lib/kubelet; do
  [ -d "$folder" ] || continue
  clear "$folder"
  rmdir "$folder" 2>/dev/null
done
rm -rf /etc/rancher/k3s /run/k3s /run/flannel
rm -f /usr/local/bin/k3s /usr/local/bin/.k3s-v* /usr/local/bin/k3s-killall.sh
exit 0
