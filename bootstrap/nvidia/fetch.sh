# Prints what is at the URL $1, at most 64 kB; a bundle has it in a file. apt's own helper serves machines
# that have neither curl nor wget. $GPUCTL_AUTHORIZATION and $GPUCTL_CA are the
# login and the certificates of a mirror, which only curl is given: exit code 41
# where there is none.
set -eu
umask 077
case $1 in file:///*) exec head -c 60000 -- "${1#file://}" ;; esac
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
: >"$t/curl"
if [ -n "${GPUCTL_AUTHORIZATION:-}${GPUCTL_CA:-}" ]; then
  command -v curl >/dev/null || { echo "curl is not installed" >&2; exit 41; }
  if [ -n "${GPUCTL_CA:-}" ]; then
    printf '%s\n' "$GPUCTL_CA" >"$t/ca.pem"
    printf 'cacert = "%s"\n' "$t/ca.pem" >>"$t/curl"
  fi
  [ -z "${GPUCTL_AUTHORIZATION:-}" ] || printf 'header = "Authorization: %s"\n' "$GPUCTL_AUTHORIZATION" >>"$t/curl"
fi
if command -v curl >/dev/null; then
  curl -K "$t/curl" -fsSL --retry 3 --connect-timeout 15 --max-time 60 -o "$t/key" -- "$1"
elif command -v wget >/dev/null; then
  wget -q -T 30 -t 3 -O "$t/key" -- "$1"
else
  /usr/lib/apt/apt-helper download-file "$1" "$t/key" >/dev/null
fi
head -c 60000 "$t/key"
