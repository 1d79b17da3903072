# moved UNIT BINARY DATADIR: resets the membership of the only etcd member, whose
# address has changed. The data stay. Without etcd's data nothing is done.
moved() {
  [ -d "$3/server/db/etcd/member" ] || return 0
  systemctl stop "$1.service"
  # What an earlier reset left would make k3s refuse this one.
  rm -f "$3/server/db/reset-flag"
  said=$(mktemp)
  timeout 180 "$2" server --cluster-reset </dev/null >"$said" 2>&1 || :
  # The exit code proves nothing: k3s ends with 0 after other shutdowns too.
  if ! grep -q 'membership has been reset' "$said"; then
    tail -n 20 "$said" | sed 's/^/journal /'
    rm -f "$said"
    exit 32
  fi
  rm -f "$said"
}
