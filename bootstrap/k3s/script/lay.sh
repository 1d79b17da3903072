# Functions that lay files. The script that follows calls them.
set -eu
umask 077

# dir MODE PATH: makes a folder; one that is there keeps its mode.
dir() {
  [ -d "$2" ] && return 0
  (umask 022 && mkdir -p "$2")
  chmod "$1" "$2"
}

# stage MODE PATH <content: puts the new file beside the old one, for swap.
# An equal file is left alone, so that its time stamp keeps its meaning.
staged=
stage() {
  t=$(mktemp "${2%/*}/.gpuctl.XXXXXX")
  cat >"$t"
  chmod "$1" "$t"
  if [ -f "$2" ] && [ ! -L "$2" ] && cmp -s "$t" "$2" && [ "$(stat -c %a "$2")" = "${1#0}" ]; then
    rm -f "$t"
    return 0
  fi
  staged="$staged
$t $2"
}

# secret MODE PATH VALUE: stages one line. No pipe: stage would run in a subshell.
secret() {
  stage "$1" "$2" <<SECRET
$3
SECRET
}

# once MODE PATH VALUE: stages a secret only where none is.
once() {
  [ -s "$2" ] && { chmod "$1" "$2"; return 0; }
  secret "$1" "$2" "$3"
}

# swap: renames everything that was staged.
swap() {
  while IFS=' ' read -r t path; do
    [ -n "$t" ] || continue
    mv -f "$t" "$path"
    if command -v restorecon >/dev/null 2>&1; then restorecon "$path" || :; fi
  done <<SWAP
$staged
SWAP
  staged=
}

trap 'printf "%s\n" "$staged" | while read -r t _; do [ -z "$t" ] || rm -f "$t"; done' EXIT
