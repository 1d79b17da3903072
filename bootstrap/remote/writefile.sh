# $1 path, $2 mode, $3 owner or empty, $4 sha256, $5 mode of the parent if it must be made; the content on stdin.
set -eu
dir=${1%/*}
[ -n "$dir" ] || dir=/
if [ -d "$1" ]; then
	echo "is a directory: $1" >&2
	exit 1
fi
if [ ! -d "$dir" ]; then
	(umask 022 && mkdir -p "$dir")
	chmod "$5" "$dir"
fi
umask 077
tmp=$(mktemp -d "$dir/.gpuctl.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$tmp/new"
sum=$(sha256sum <"$tmp/new")
if [ "${sum%% *}" != "$4" ]; then
	echo "checksum is ${sum%% *}, not $4" >&2
	exit 1
fi
[ -z "$3" ] || chown "$3" "$tmp/new"
chmod "$2" "$tmp/new"
mv -f "$tmp/new" "$1"
# SELinux: the file was born under another name; give it the label of its path.
if command -v restorecon >/dev/null 2>&1; then
	restorecon "$1" || true
fi
