# Fetches the k3s binary to a staging name, verified before it may be executed.
# $1 staging path  $2 URL of the binary  $3 sha256 or empty  $4 URL of the checksum list
# $5 name in the list ("k3s", "k3s-arm64")  $6 "stdin" when the binary comes on standard input
# $GPUCTL_AUTHORIZATION the value of that header, $GPUCTL_CA certificates of the source; empty for none.
# Exit codes: 41 no curl or wget that can do it, 42 download failed, 43 no checksum, 44 checksum differs,
# 45 a web page.
set -eu
umask 077
staged=$1 url=$2 sum=$3 list=$4 name=$5 from=${6:-network}
part=$staged.part
login=/dev/null

fetch() {
  if command -v curl >/dev/null 2>&1; then
    curl -K "$login" -fsSL --connect-timeout 20 --speed-limit 1024 --speed-time 60 --retry 3 "$@"
  else
    return 41
  fi
}

get() { # get URL: to standard output
  if command -v curl >/dev/null 2>&1; then fetch "$1"; else wget -q -T 60 -O - "$1"; fi
}

resume() { # resume URL FILE
  if command -v curl >/dev/null 2>&1; then fetch -C - -o "$2" "$1"; else wget -q -T 60 -c -O "$2" "$1"; fi
}

matches() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d ' ' -f 1)" = "$sum" ]; }

if [ "$from" = network ] && ! command -v curl >/dev/null 2>&1 && ! command -v wget >/dev/null 2>&1; then
  echo "neither curl nor wget is installed" >&2
  exit 41
fi
if [ "$from" = network ] && [ -n "${GPUCTL_AUTHORIZATION:-}${GPUCTL_CA:-}" ]; then
  # wget would send a login on to wherever it is redirected.
  command -v curl >/dev/null 2>&1 || { echo "curl is not installed, and the source asks for a login or has certificates of its own" >&2; exit 41; }
  hidden=$(mktemp -d)
  trap 'rm -rf "$hidden"' EXIT
  login=$hidden/curl
  : >"$login"
  if [ -n "${GPUCTL_CA:-}" ]; then
    printf '%s\n' "$GPUCTL_CA" >"$hidden/ca.pem"
    printf 'cacert = "%s"\n' "$hidden/ca.pem" >>"$login"
  fi
  [ -z "${GPUCTL_AUTHORIZATION:-}" ] || printf 'header = "Authorization: %s"\n' "$GPUCTL_AUTHORIZATION" >>"$login"
fi
if [ -z "$sum" ]; then
  sum=$(get "$list" | sed -n "s/^\([0-9a-f]\{64\}\)[ *]*$name\$/\1/p" | head -n 1) || exit 42
  [ -n "$sum" ] || { echo "$list has no checksum of $name" >&2; exit 43; }
fi
mkdir -p "${staged%/*}"
# The download of a run that was cut off may still go on: its result is as good
# as ours, and two writers of one file are not. The lock is the folder's own and
# goes with the last process that holds it.
if command -v flock >/dev/null 2>&1; then
  exec 9<"${staged%/*}"
  flock -n 9 || { echo "waiting for another download of k3s" >&2; flock 9; }
fi
if matches "$staged"; then
  chmod 0755 "$staged"
  exit 0
fi
if [ "$from" = stdin ]; then
  cat >"$part"
else
  partial=no
  [ ! -s "$part" ] || partial=yes
  matches "$part" || resume "$url" "$part" || { [ "$partial" = yes ] && rm -f "$part" && resume "$url" "$part"; } || exit 42
  if ! matches "$part" && [ "$partial" = yes ]; then
    rm -f "$part"
    resume "$url" "$part" || exit 42
  fi
fi
if ! matches "$part"; then
  if head -c 512 "$part" | grep -qi -e '<html' -e '<!doctype html'; then
    rm -f "$part"
    echo "the answer of $url is a web page (it has <html>) and not k3s" >&2
    exit 45
  fi
  echo "sha-256 of k3s differs: got $(sha256sum "$part" | cut -d ' ' -f 1), want $sum, from $url" >&2
  rm -f "$part"
  exit 44
fi
chmod 0755 "$part"
mv -f "$part" "$staged"
