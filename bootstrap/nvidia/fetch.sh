# Prints what is at the URL $1, at most 64 kB. apt's own helper serves machines
# that have neither curl nor wget.
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
if command -v curl >/dev/null; then
  curl -fsSL --retry 3 --connect-timeout 15 --max-time 60 -o "$t/key" -- "$1"
elif command -v wget >/dev/null; then
  wget -q -T 30 -t 3 -O "$t/key" -- "$1"
else
  /usr/lib/apt/apt-helper download-file "$1" "$t/key" >/dev/null
fi
head -c 60000 "$t/key"
