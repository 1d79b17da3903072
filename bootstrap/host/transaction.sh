# Changes packages in a transient unit of systemd's, so that a lost connection
# does not cut dpkg off. Arguments: the unit, how many seconds to wait for
# others, then those of the change.
set -eu
export LC_ALL=C
unit=$1 limit=$2
shift 2
deadline=$(($(date +%s) + limit))
told=''

# late says what is being waited for, and gives up when the time is over.
late() {
  if [ "$(date +%s)" -ge "$deadline" ]; then
    echo "waited ${limit}s: $1" >&2
    exit 75
  fi
  if [ "$1" != "$told" ]; then
    told=$1
    echo "@say waiting: $1"
  fi
  sleep 2
}

holder() {
  for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock; do
    i=$(stat -c %i "$f" 2>/dev/null) || continue
    p=$(awk -v i="$i" '$2 != "->" && $6 ~ (":" i "$") { print $5; exit }' /proc/locks)
    [ -z "$p" ] || echo "$(cat "/proc/$p/comm" 2>/dev/null || echo process) ($p)"
  done | head -n 1
}

while [ -e /run/cloud-init/status.json ] && [ ! -e /run/cloud-init/result.json ]; do
  late "cloud-init has not finished"
done
while other=$(systemctl list-units --plain --no-legend --state=active,activating,deactivating 'gpuctl-apt-*' | cut -d ' ' -f 1 | head -n 1) && [ -n "$other" ]; do
  late "$other of an earlier run still works"
done
while by=$(holder) && [ -n "$by" ]; do
  late "a package lock is held by $by"
done

d=/run/gpuctl
mkdir -p "$d"
chmod 0700 "$d"
#PREPARE#
# A unit does not inherit the variables by which apt finds its proxy.
: >"$d/$unit.sh"
for name in http_proxy https_proxy no_proxy; do
  eval "value=\${$name:-}"
  [ -z "$value" ] || printf "export %s='%s'\n" "$name" "$(printf %s "$value" | tr -d "'")" >>"$d/$unit.sh"
done
cat >>"$d/$unit.sh" <<'GPUCTL_UNIT'
exec >"${0%.sh}.log" 2>&1
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
# The lock on package lists is not covered by DPkg::Lock::Timeout.
apt_get() {
  tries=0
  while :; do
    apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >/run/gpuctl/apt.out 2>&1 && rc=0 || rc=$?
    cat /run/gpuctl/apt.out
    if [ "$rc" -eq 0 ]; then return 0; fi
    tries=$((tries + 1))
    if [ "$tries" -ge 30 ] || ! grep -qE 'Could not get lock|Unable to lock directory' /run/gpuctl/apt.out; then return "$rc"; fi
    sleep 5
  done
}
set -eu
#CHANGE#
GPUCTL_UNIT
rm -f "$d/$unit.log"
rc=0
systemd-run --quiet --collect --wait --unit="$unit" --property=TimeoutStopSec=600 /bin/sh "$d/$unit.sh" "$@" || rc=$?
if [ "$rc" -ne 0 ]; then
  tail -n 30 "$d/$unit.log" >&2 || true
  exit "$rc"
fi
#VERIFY#
