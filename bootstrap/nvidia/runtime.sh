# Restarts the unit $1 unless its containerd configuration $2 already names the
# runtime that k3s would find, and checks that it does then.
set -eu
export LC_ALL=C
found=''
for p in /usr/local/nvidia/toolkit /opt/kwasm/bin /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin; do
  if [ -x "$p/nvidia-container-runtime" ]; then
    found=$p/nvidia-container-runtime
    break
  fi
done
[ -n "$found" ] || {
  echo "nvidia-container-runtime is in none of the places where k3s looks" >&2
  exit 1
}
known() { grep -q "BinaryName = \"$found\"" "$2"; }
known "$@" || systemctl restart "$1"
systemctl is-active -q "$1" || {
  systemctl status --no-pager --lines=20 "$1" >&2 || true
  exit 1
}
known "$@" || {
  echo "$2 does not name $found after the restart: a template of the user's may hide it" >&2
  exit 1
}
