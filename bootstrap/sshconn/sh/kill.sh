# Ends all processes of one command: $1 its shell, $2 its session.
# A session shared with this script is not the command's own: then only $1 and its descendants are ended.
read -r own <"/proc/$$/stat"
own=${own##*) }
own=${own#* * * }
own=${own%% *}
victims() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v shell="$1" -v session="$2" -v own="$own" '
		{ pid = $1; sub(/^.*\) /, ""); if ($1 != "Z") { parent[pid] = $2; sid[pid] = $4 } }
		END {
			if (shell in sid && sid[shell] == session) hit[shell] = 1
			if (session != own) for (p in sid) if (sid[p] == session) hit[p] = 1
			do {
				more = 0
				for (p in parent) if (!(p in hit) && (parent[p] in hit)) { hit[p] = 1; more = 1 }
			} while (more)
			for (p in hit) printf "%s ", p
		}'
}
for signal in TERM TERM TERM KILL KILL KILL; do
	found=$(victims "$1" "$2")
	[ -n "$found" ] || exit 0
	# shellcheck disable=SC2086 # a list of numbers
	kill "-$signal" $found 2>/dev/null
	sleep 0.2 2>/dev/null || sleep 1
done
[ -z "$(victims "$1" "$2")" ]
