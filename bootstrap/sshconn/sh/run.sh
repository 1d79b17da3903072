# Runs the script that follows on stdin, between marks. Variables _m, _n and block() come from the loader.
# shellcheck disable=SC2154 # what begins with _ comes from the loader
cd /
umask 022
LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
read -r _s <"/proc/$$/stat"
_s=${_s##*) }
_setup
block "$_e"
printf '%s' "${_m}run $$ $_s$_n"
printf '%s' "${_m}run$_n" >&2
(eval "$_b")
_s=$?
printf '%s' "${_m}end$_n"
printf '%s' "${_m}end$_n" >&2
exit "$_s"
