# Mounts a disk now and at every boot, after making a file system on one that
# holds nothing. $1 disk  $2 folder  $3 "yes" may format  $4 label of a new file system
set -eu
export LC_ALL=C
mount=$2
device=$(readlink -f "$1")
[ -b "$device" ] || {
  echo "$1 is no disk" >&2
  exit 1
}
name=${device##*/}
type=$(blkid -p -s TYPE -o value "$device" || :)
if [ -z "$type" ]; then
  # What was seen before may be out of date: nothing is ever written over.
  if [ "$3" != yes ] || [ -n "$(wipefs -n "$device")" ] || [ -n "$(ls "/sys/class/block/$name/holders")" ] ||
    ls "/sys/class/block/$name/$name"*/partition >/dev/null 2>&1; then
    echo "$device is not empty, or may not be formatted" >&2
    exit 1
  fi
  mkfs.ext4 -q -L "$4" "$device"
  type=ext4
fi
uuid=$(blkid -p -s UUID -o value "$device")
[ -n "$uuid" ]
mkdir -p "$mount"
t=$(mktemp /etc/fstab.XXXXXX)
trap 'rm -f "$t"' EXIT
[ ! -f /etc/fstab ] || awk -v m="$mount" '/^#/ || $2 != m' /etc/fstab >"$t"
echo "UUID=$uuid $mount $type defaults,nofail,x-systemd.device-timeout=60s 0 2" >>"$t"
chmod 0644 "$t"
mv -f "$t" /etc/fstab
on() { awk -v m="$mount" '$2 == m { d = $1 } END { print d }' /proc/self/mounts; }
[ "$(on)" = "$device" ] || mount "$mount"
[ "$(on)" = "$device" ] || {
  echo "$mount is on $(on), not on $device" >&2
  exit 1
}
# From now on systemd knows the mount that k3s waits for.
systemctl daemon-reload
