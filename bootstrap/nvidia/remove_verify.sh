# $1 file that keeps nouveau off, $2 package source, $3 its key; then the packages.
for f in "$1" "$2" "$3"; do
  [ ! -e "$f" ] || { echo "$f is still there" >&2; exit 66; }
done
shift 3
for p; do
  if dpkg-query -W -f '${db:Status-Abbrev}\n' "$p" 2>/dev/null | grep -q '^.i'; then
    echo "$p is still installed" >&2
    exit 66
  fi
done
[ ! -d /sys/module/nvidia ] || echo "@say the module stays loaded until the next boot"
