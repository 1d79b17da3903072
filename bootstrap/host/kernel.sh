# Writes two files from standard input (the first has the length $2), loads the
# modules of the first and applies the second.
set -eu
export LC_ALL=C
modules=$1 length=$2 sysctl=$3
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat >"$d/all"
head -c "$length" "$d/all" >"$d/modules"
tail -c "+$((length + 1))" "$d/all" >"$d/sysctl"
put() { # from, to
  mkdir -p "${2%/*}"
  t=$(mktemp "$2.XXXXXX")
  cat "$1" >"$t"
  chmod 0644 "$t"
  mv -f "$t" "$2"
}
put "$d/modules" "$modules"
put "$d/sysctl" "$sysctl"

# A module that is built in has no file to load and may have no directory.
ready() {
  [ -d "/sys/module/$1" ] && return 0
  case $1 in
    overlay) grep -qw overlay /proc/filesystems ;;
    br_netfilter) [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] ;;
    *) false ;;
  esac
}
grep -v '^#' "$modules" | while read -r m; do
  ready "$m" || modprobe "$m" || {
    echo "kernel module $m cannot be loaded" >&2
    exit 1
  }
done
grep -v '^#' "$sysctl" | while read -r name eq value; do
  f=/proc/sys/$(echo "$name" | tr . /)
  [ "$eq" = = ] && echo "$value" >"$f"
  now=$(cat "$f")
  [ "$now" = "$value" ] || {
    echo "$name is $now, not $value" >&2
    exit 1
  }
done
