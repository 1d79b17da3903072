# Finds out how to become root and goes on as root. One line on stdin: "p<password>" or "n".
# shellcheck disable=SC2154 # what begins with _ comes from the loader
LC_ALL=C
export LC_ALL
_say() { printf '%s' "${_m}sudo $1$_n"; }
IFS= read -r _p
if [ "$(id -u)" = 0 ]; then
	_say root
	exec /bin/sh -c "$_loop"
fi
if ! command -v sudo >/dev/null 2>&1; then
	_say absent
	exit 125
fi
if _t=$(sudo -n true 2>&1 </dev/null); then
	_say free
	exec sudo -n -- /bin/sh -c "$_loop"
fi
case $_p in
p*) ;;
*)
	_say needed
	printf '%s' "$_t"
	exit 125
	;;
esac
# The password alone on its own pipe: a second try inside sudo meets the end of the file, not the script.
if _t=$(printf '%s\n' "${_p#p}" | sudo -S -p '' true 2>&1); then
	_say password
	# sudo reads its line byte by byte and leaves the rest; where it needs none, the loop skips the line.
	exec sudo -S -p '' -- /bin/sh -c "$_loop"
fi
_say refused
printf '%s' "$_t"
exit 125
