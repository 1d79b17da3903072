d=$GPUCTL_PROBE_DEVICE
[ -n "$d" ] || exit 44
r=$(readlink -f "$d")
[ -b "$r" ] || exit 44
echo "device=$r"
echo "size=$(($(cat "/sys/class/block/${r##*/}/size") / 2))"
for p in "/sys/class/block/${r##*/}/${r##*/}"*; do
  [ ! -e "$p/partition" ] || echo "uses=partition ${p##*/}"
done
for h in "/sys/class/block/${r##*/}/holders/"*; do
  [ ! -e "$h" ] || echo "uses=holder ${h##*/}"
done
awk -v d="$r" '$1 == d { print "on=" $2 }' /proc/mounts
grep -q "^$r " /proc/swaps && echo "uses=swap"
# blkid ends with 2 where it finds nothing, with 8 where it finds several things.
blkid -p -o export "$r" | grep -E '^(TYPE|UUID|LABEL|PTTYPE|USAGE)='
[ "$(blkid -p "$r" >/dev/null 2>&1; echo $?)" != 8 ] || echo "uses=several signatures"
grep -E '^[^#]' /etc/fstab | awk '{ print "fstab=" $1 " " $2 " " $4 }'
exit 0
