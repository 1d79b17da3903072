# Holds the cluster's lock while the client says that it lives. $1: who holds it.
# /run is root's own, and empty after a reboot.
umask 077
command -v flock >/dev/null || { echo absent; exit 0; }
exec 9>>/run/gpuctl.lock || exit 1
if ! flock -n 9; then
	cat /run/gpuctl.lock
	exit 75
fi
printf '%s\n' "$1" >/run/gpuctl.lock || exit 1
echo held
# A client that is gone closes this input; one that sleeps says nothing.
while [ -n "$(timeout "$2" head -n 1)" ]; do :; done
: >/run/gpuctl.lock
