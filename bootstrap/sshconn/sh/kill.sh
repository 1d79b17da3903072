# Ends all processes of one command: $1 its shell, $2 its session.
# A session shared with this script is not the command's own: then only descendants of $1 are ended.
field() { # the parent and the session of process $1, in _parent and _session
	_stat=
	read -r _stat 2>/dev/null <"/proc/$1/stat" || return 1
	_stat=${_stat##*) }
	_stat=${_stat#* }
	_parent=${_stat%% *}
	_stat=${_stat#* }
	_stat=${_stat#* }
	_session=${_stat%% *}
}
field $$
own=$_session
victims() {
	found=' '
	if field "$1" && [ "$_session" = "$2" ]; then found=" $1 "; fi
	more=yes
	while [ -n "$more" ]; do
		more=
		for p in /proc/[0-9]*; do
			p=${p#/proc/}
			case $found in *" $p "*) continue ;; esac
			field "$p" || continue
			if [ "$_session" = "$2" ] && [ "$own" != "$2" ]; then
				found="$found$p "
				more=yes
				continue
			fi
			case $found in *" $_parent "*)
				found="$found$p "
				more=yes
				;;
			esac
		done
	done
}
for signal in TERM TERM TERM TERM KILL KILL KILL; do
	victims "$1" "$2"
	[ "$found" != ' ' ] || exit 0
	# shellcheck disable=SC2086 # a list of numbers
	kill "-$signal" $found 2>/dev/null
	sleep 0.2 2>/dev/null || sleep 1
done
exit 1
