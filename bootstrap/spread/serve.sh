# Gives files to whoever knows the secret, while the client says that it lives.
# $1 address  $2 port  $3 folder of the files  $4 seconds of silence after which the client is gone
# $GPUCTL_SECRET is what the others must know; $GPUCTL_ANSWER is the script that answers one of them.
# Exit codes: 73 nobody can listen there.
set -eu
umask 077
address=$1 port=$2 dir=$3 patience=$4
unit=gpuctl-spread
run=/run/$unit
units=/run/systemd/system
over() {
  systemctl stop "$unit.socket" "$unit@*.service" >/dev/null 2>&1 || :
  rm -rf "$run" "$units/$unit.socket" "$units/$unit@.service"
  systemctl daemon-reload || :
}
trap over EXIT
trap 'exit 143' HUP INT TERM
over
mkdir -p "$run" "$units"
printf '%s' "$GPUCTL_SECRET" >"$run/secret"
printf '%s' "$GPUCTL_ANSWER" >"$run/answer"
# The units are taken away with the client; /run forgets them at the latest with a reboot.
cat >"$units/$unit.socket" <<UNIT
[Unit]
Description=gpuctl: files for the machines of this network
[Socket]
ListenStream=$address:$port
Accept=yes
MaxConnections=64
UNIT
cat >"$units/$unit@.service" <<UNIT
[Unit]
Description=gpuctl: a file for a machine of this network
CollectMode=inactive-or-failed
[Service]
ExecStart=/bin/sh $run/answer $run/secret $dir
StandardInput=socket
StandardOutput=socket
StandardError=null
NoNewPrivileges=yes
CapabilityBoundingSet=
RuntimeMaxSec=3600
TasksMax=16
UNIT
systemctl daemon-reload
systemctl start "$unit.socket" || exit 73
echo ready
# A client that is gone closes this input; one that sleeps says nothing.
while [ -n "$(timeout "$patience" head -n 1)" ]; do :; done
