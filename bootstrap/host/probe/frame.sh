# Runs every section at once, each with its own limit, and prints what they
# said between lines that begin with a random mark. Arguments: the mark, the
# data directory of k3s, then the paths whose state is wanted.
umask 077
LC_ALL=C LANG=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin
export LC_ALL LANG PATH GPUCTL_PROBE_KEY GPUCTL_PROBE_DEVICE
mark=$1
shift
printf '\n%s clock %s\n' "$mark" "$(date +%s%N)"
d=$(mktemp -d 2>/dev/null || mktemp -d /run/gpuctl.XXXXXX 2>/dev/null || mktemp -d /dev/shm/gpuctl.XXXXXX) || {
  echo "no directory for temporary files can be written" >&2
  exit 71
}
trap 'rm -rf "$d"' EXIT
trap 'exit 70' HUP INT TERM
mkfifo "$d/.done" || exit 71
exec 3<>"$d/.done"

# A machine without timeout(1), or with an old busybox, gets a watcher instead.
if timeout -k 1 1 true 2>/dev/null; then
  bounded() { timeout -k 1 "$@"; }
else
  bounded() {
    n=$1
    shift
    "$@" &
    p=$!
    (
      sleep "$n"
      kill -9 "$p"
    ) >/dev/null 2>&1 &
    w=$!
    wait "$p"
    r=$?
    kill "$w" 2>/dev/null
    return "$r"
  }
fi

names='' left=0 longest=0
section() { # name, limit in seconds, body, then the arguments of the body
  name=$1 limit=$2 body=$3
  shift 3
  names="$names $name" left=$((left + 1))
  if [ "$limit" -gt "$longest" ]; then longest=$limit; fi
  (
    bounded "$limit" sh -c "$body" probe "$@" >"$d/$name" 2>"$d/$name.err" 3>&-
    echo "$?" >"$d/$name.rc"
    echo "$name" >&3
  ) </dev/null >/dev/null 2>&1 &
}

emit() { # name
  rc=$(cat "$d/$1.rc" 2>/dev/null)
  case $rc in
    0) status=ok ;;
    44) status=absent ;;
    43) status=denied ;;
    '' | 124 | 137) status=timeout ;;
    *) status=failed ;;
  esac
  printf '%s begin %s\n' "$mark" "$1"
  head -c 65536 "$d/$1"
  printf '\n%s end %s %s %s\n' "$mark" "$1" "$status" "$(head -n 1 "$d/$1.err" | head -c 200)"
  : >"$d/$1.sent"
}

#SECTIONS#

# A process that even SIGKILL does not end (a driver call that hangs) must not
# keep the others' answers back: this one ends the waiting.
(
  trap 'kill "$s" 2>/dev/null; exit' TERM
  sleep "$((longest + 3))" &
  s=$!
  wait "$s"
  echo - >&3
) </dev/null >/dev/null 2>&1 &
guard=$!
while [ "$left" -gt 0 ] && read -r name <&3 && [ "$name" != - ]; do
  emit "$name"
  left=$((left - 1))
done
kill "$guard" 2>/dev/null
for name in $names; do
  [ -e "$d/$name.sent" ] || emit "$name"
done
printf '%s clock %s\n%s done\n' "$mark" "$(date +%s%N)" "$mark"
