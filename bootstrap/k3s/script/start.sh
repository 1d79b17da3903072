# (Re)starts a k3s unit and watches it come up.
# $1 unit  $2 restart or look  $3 limit in seconds  $4 the k3s binary
# $5 data directory  $6 pattern of hopeless log lines  $7 pattern of log lines that may heal
# $8 containerd's socket
#
# "systemctl start" never returns for an agent that waits (Type=notify,
# TimeoutStartSec=0), and it returns 0 for one that is about to crash. So: no
# blocking, and looks until unit and containerd have been well several times.
# Lines printed: "say TEXT" while waiting, "journal TEXT" on failure, "up N" at the end.
# Exit codes: 0 up, 31 hopeless, 32 crash loop, 33 limit reached,
# 34 up, but in a cluster of its own.
set +e
set -u
unit=$1 order=$2 limit=$3 k3s=$4 data=$5 hopeless=$6 healing=$7 socket=$8

look() {
  state='' sub='' restarts=0 id=''
  while IFS='=' read -r key value; do
    case $key in
      ActiveState) state=$value ;;
      SubState) sub=$value ;;
      NRestarts) restarts=$value ;;
      InvocationID) id=$value ;;
    esac
  done <<SHOW
$(systemctl show -p ActiveState -p SubState -p NRestarts -p InvocationID "$unit.service")
SHOW
}

journal() { journalctl -q --no-pager -o cat -u "$unit.service" --since "@$since" "$@" 2>/dev/null; }

# now_running: what the process of this moment logs. The one before it may have
# ended with the very lines that would be taken for a new failure.
now_running() { journalctl -q --no-pager -o cat "_SYSTEMD_INVOCATION_ID=$id" "$@" 2>/dev/null; }

count() {
  if [ -z "$1" ] || [ "$id" = "$old" ]; then
    echo 0
  else
    now_running -n 400 | grep -E -c -i -e "$1"
  fi
}

give_up() {
  journal -n 80 | sed 's/^/journal /'
  if [ -r "$data/agent/containerd/containerd.log" ] && journal -n 80 | grep -q 'containerd exited'; then
    tail -n 5 "$data/agent/containerd/containerd.log" | sed 's/^/journal containerd.log: /'
  fi
  exit "$1"
}

containerd_answers() {
  [ -S "$socket" ] && "$k3s" crictl --runtime-endpoint "unix://$socket" --timeout 5s version >/dev/null 2>&1
}

# A server that is told to join and cannot may start a cluster of its own
# without a word (k3s pkg/cluster/managed.go): its CA tells.
alone() {
  ca=$data/server/tls/server-ca.crt
  case ${SERVER_TOKEN:-} in K10*::*) ;; *) return 1 ;; esac
  [ "$(grep -c BEGIN "$ca")" = 1 ] || return 1
  want=${SERVER_TOKEN#K10}
  [ "$(sha256sum <"$ca" | cut -d ' ' -f 1)" != "${want%%::*}" ]
}

pause() { sleep 0.4 2>/dev/null || sleep 1; }

look
old=$id
since=$(date +%s)
if [ "$order" != look ]; then
  systemctl reset-failed "$unit.service" 2>/dev/null || :
  systemctl "$order" --no-block "$unit.service" || give_up 32
else
  old=none
fi
trap - HUP INT TERM PIPE
good=0 round=0 said='' last=0 first=''
end=$((since + limit))
while :; do
  look
  if [ "$state" = active ] && [ "$id" != "$old" ] && [ "$restarts" = "$last" ] && containerd_answers; then
    good=$((good + 1))
    if [ "$good" -ge 3 ]; then
      if alone; then give_up 34; fi
      echo "up $restarts"
      exit 0
    fi
  else
    good=0
  fi
  [ "$id" = "$old" ] || [ -n "$first" ] || first=$restarts
  last=$restarts
  if [ $((round % 5)) = 4 ]; then
    line=$(now_running -n 50 | grep ' level=' | tail -n 1)
    [ -z "$line" ] || [ "$line" = "$said" ] || { said=$line; printf 'say %s (%s): %s\n' "$state" "$sub" "$line"; }
    [ "$(count "$hopeless")" -lt 2 ] || give_up 31
    [ "$(count "$healing")" -lt 30 ] || give_up 31
    [ $((restarts - ${first:-0})) -lt 3 ] || give_up 32
  fi
  [ "$(date +%s)" -lt "$end" ] || give_up 33
  round=$((round + 1))
  pause
done
