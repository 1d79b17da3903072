# Makes etcd a cluster of this one server, from a snapshot or with the data it
# has. k3s is stopped on all servers. lay.sh and the new configuration, which
# names no server, come before; start.sh comes after.
# restore UNIT BINARY DATADIR SNAPSHOT: SNAPSHOT is a file, or "" for the data that are there.
restore() {
  systemctl stop "$1.service"
  file=$4
  case $file in
    *.zip)
      # k3s from 1.33 on does not find compressed snapshots by their full path (pkg/etcd/snapshot.go).
      command -v unzip >/dev/null 2>&1 || { echo "unzip is not installed, and $file is compressed" >&2; exit 23; }
      plain=$(mktemp -d)
      unzip -q -o "$file" -d "$plain"
      file=$(find "$plain" -type f | head -n 1)
      ;;
  esac
  [ -z "$file" ] || [ -f "$file" ] || { echo "there is no snapshot $file" >&2; exit 22; }
  # What an earlier reset left would make k3s refuse this one.
  rm -f "$3/server/db/reset-flag"
  said=$(mktemp)
  if [ -n "$file" ]; then
    timeout 300 "$2" server --cluster-reset "--cluster-reset-restore-path=$file" </dev/null >"$said" 2>&1 || :
  else
    timeout 300 "$2" server --cluster-reset </dev/null >"$said" 2>&1 || :
  fi
  # The exit code proves nothing: k3s ends with 0 after other shutdowns too.
  if ! grep -q 'membership has been reset' "$said"; then
    tail -n 20 "$said" | sed 's/^/journal /'
    rm -f "$said"
    exit 32
  fi
  rm -f "$said"
}
