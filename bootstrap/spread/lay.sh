# Lays a file that is known by its checksum.
# $1 sha256  $2 target  $3 mode, or "unpack"  $4 URL to fetch it from, empty for standard input
# $5 "keep" leaves a copy for others to fetch  $6 folder
# $GPUCTL_AUTHORIZATION is the value of that header.
# Says "have" when there is nothing to do, else "at N" where N bytes are there already.
# Exit codes: 41 no curl, 42 not fetched, 44 checksum differs.
set -eu
umask 022
sum=$1 target=$2 mode=$3 url=$4 keep=$5 dir=$6
file=$dir/$sum
mkdir -p "$dir"
chmod 0700 "$dir"

matches() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d ' ' -f 1)" = "$sum" ]; }

place() { # with the file in $file
  mkdir -p "${target%/*}"
  if [ "$mode" = unpack ]; then
    new=$target.new
    rm -rf "$new"
    mkdir -p "$new"
    tar -x -o -f "$file" -C "$new"
    rm -rf "$target"
    mv "$new" "$target"
  else
    # A link costs no room; across file systems it is a copy. Either way nobody sees a part under the final name.
    new=${target%/*}/.${target##*/}.new
    rm -f "$new"
    ln "$file" "$new" 2>/dev/null || cp "$file" "$new"
    chmod "$mode" "$new"
    mv -f "$new" "$target"
  fi
  [ "$keep" = keep ] || rm -f "$file"
}

if [ "$mode" != unpack ] && matches "$target"; then
  [ "$keep" != keep ] || ln -f "$target" "$file" 2>/dev/null || cp "$target" "$file"
  echo have
  exit 0
fi
if matches "$file"; then
  place
  echo have
  exit 0
fi
part=$file.part
# A part that another run still writes is not ours: two writers of one file are one too many.
if command -v flock >/dev/null 2>&1; then
  exec 9>>"$file.lock"
  flock -n 9 || { echo "waiting for another upload" >&2; flock 9; }
fi
if [ -n "$url" ]; then
  command -v curl >/dev/null 2>&1 || { echo "curl is not installed" >&2; exit 41; }
  hidden=$(mktemp -d)
  trap 'rm -rf "$hidden"' EXIT
  chmod 0700 "$hidden"
  (umask 077; printf 'header = "Authorization: %s"\n' "$GPUCTL_AUTHORIZATION" >"$hidden/curl")
  get() { curl -K "$hidden/curl" -fsS --noproxy '*' --connect-timeout 5 --speed-limit 1024 --speed-time 30 --retry 2 -C - -o "$part" "$url" 9>&-; }
  get || { rm -f "$part"; get; } || exit 42
else
  at=0
  [ ! -f "$part" ] || at=$(wc -c <"$part")
  echo "at $at"
  cat >>"$part"
fi
if ! matches "$part"; then
  echo "sha-256 differs: got $(sha256sum "$part" | cut -d ' ' -f 1), want $sum" >&2
  rm -f "$part"
  exit 44
fi
mv -f "$part" "$file"
rm -f "$file.lock"
place
