# Brings back what is needed to use and to join a cluster, from a server.
# $1 data directory  $2 mark that frames the parts
set -eu
part() {
  printf '%s %s\n' "$2" "$1"
  cat "$3"
  printf '\n'
}
[ -s /etc/rancher/k3s/k3s.yaml ] || { echo "no admin kubeconfig yet" >&2; exit 51; }
[ -s "$1/server/agent-token" ] || { echo "no agent token yet" >&2; exit 51; }
part kubeconfig "$2" /etc/rancher/k3s/k3s.yaml
part agent-token "$2" "$1/server/agent-token"
part server-token "$2" "$1/server/token"
[ ! -r /etc/rancher/k3s/gpuctl.id ] || part cluster "$2" /etc/rancher/k3s/gpuctl.id
[ ! -r /etc/rancher/k3s/gpuctl.known_hosts ] || part known-hosts "$2" /etc/rancher/k3s/gpuctl.known_hosts
printf '%s end\n' "$2"
