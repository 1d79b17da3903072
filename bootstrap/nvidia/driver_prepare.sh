# $1 key file, $2 source file, $3 repository, empty for one that the machine
# has; the key is on standard input. A source of the machine's own for the same
# repository stays, and ours then must not contradict it.
own=''
[ -z "$3" ] || own=$(grep -ls -- "$3" /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -vx -- "$2" | head -n 1) || own=''
if [ -z "$3" ] || [ -n "$own" ]; then
  [ -z "$own" ] || echo "@say using the machine's own $own"
  cat >/dev/null
  rm -f "$2"
else
  mkdir -p "${1%/*}"
  t=$(mktemp "$1.XXXXXX")
  cat >"$t"
  chmod 0644 "$t"
  mv -f "$t" "$1"
  t=$(mktemp "$2.XXXXXX")
  printf 'deb [signed-by=%s] %s/ /\n' "$1" "$3" >"$t"
  chmod 0644 "$t"
  mv -f "$t" "$2"
fi
