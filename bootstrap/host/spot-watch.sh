#!/bin/sh
# Written by gpuctl. Waits for the notice that this machine will be taken away and
# then empties it: no new pods come, its own are evicted, its node says so. It acts
# as the kubelet, whose rights end at this node; it may not set taints.
# $1 provider ("aws", "gcp", "azure"; any other has no notice that can be asked for)
# $2 node  $3 data directory of k3s  $4 seconds that a pod gets to end  $5 seconds between two looks
#
# A notice can also be given by hand: touch /run/gpuctl-spot/notice, or
# systemctl kill -s USR1 gpuctl-spot. Taking the file away takes the notice back.
set -u
export LC_ALL=C
provider=$1 node=$2 data=$3 grace=$4 every=$5
given=/run/gpuctl-spot/notice
metadata=http://169.254.169.254

# request METHOD PATH HEADER: the answer of the metadata service, nothing unless it is 200.
request() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsS --noproxy '*' -m 4 -X "$1" -H "$3" "$metadata$2" 2>/dev/null
  else
    wget -q --no-proxy -T 4 -t 1 --method="$1" --header="$3" -O - "$metadata$2" 2>/dev/null
  fi
}

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html: 404 until there is one.
aws() {
  token=$(request PUT /latest/api/token 'X-aws-ec2-metadata-token-ttl-seconds: 60') || return 1
  request GET /latest/meta-data/spot/instance-action "X-aws-ec2-metadata-token: $token" | grep -q '"action"'
}

# https://cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption
gcp() { [ "$(request GET /computeMetadata/v1/instance/preempted 'Metadata-Flavor: Google')" = TRUE ]; }

# https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events: the machines of a
# scale set all hear of each other's events, so an event counts that names this one.
azure() {
  name=$(request GET '/metadata/instance/compute/name?api-version=2020-06-01&format=text' 'Metadata: true') || return 1
  [ -n "$name" ] || return 1
  request GET '/metadata/scheduledevents?api-version=2020-07-01' 'Metadata: true' | tr '{' '\n' |
    grep '"EventType" *: *"Preempt"' | grep -q -F "\"$name\""
}

notice() {
  [ ! -e "$given" ] || return 0
  case $provider in aws | gcp | azure) "$provider" ;; *) return 1 ;; esac
}

k() { timeout 20 k3s kubectl --kubeconfig "$data/agent/kubelet.kubeconfig" --request-timeout 10s "$@" 2>&1; }

# value PATH: a field of this node.
value() { k get node "$node" -o "jsonpath={$1}"; }

# mark: the two are apart so that a refusal of one does not cost the other.
mark() {
  at=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  closed=$(value .spec.unschedulable) || return 1
  k patch node "$node" --type merge -p '{"metadata":{"annotations":{"gpuctl.dev/spot-notice":"'"$at"'"}}}' || return 1
  [ "$closed" != true ] || return 0
  k patch node "$node" --type merge -p '{"metadata":{"annotations":{"gpuctl.dev/spot-cordoned":"'"$at"'"}},"spec":{"unschedulable":true}}'
}

# unmark: the machine is here still, or again, and there is no notice. A node that
# somebody else closed stays closed.
unmark() {
  open=
  [ -z "$(value '.metadata.annotations.gpuctl\.dev/spot-cordoned')" ] || open=',"spec":{"unschedulable":null}'
  k patch node "$node" --type merge -p '{"metadata":{"annotations":{"gpuctl.dev/spot-notice":null,"gpuctl.dev/spot-cordoned":null}}'"$open"'}'
}

# pods: namespace, name, UID and seconds to end of the pods that are to go. Those of
# DaemonSets, and those that are files on this machine, would only come back.
pods() {
  # shellcheck disable=SC2016 # the template's own variables
  k get pods -A --field-selector "spec.nodeName=$node" -o go-template='{{range .items}}{{$kind := "-"}}{{range .metadata.ownerReferences}}{{if .controller}}{{$kind = .kind}}{{end}}{{end}}pod {{.metadata.namespace}} {{.metadata.name}} {{.metadata.uid}} {{$kind}} {{.status.phase}} {{if .metadata.deletionTimestamp}}ending{{else}}here{{end}} {{if .spec.terminationGracePeriodSeconds}}{{.spec.terminationGracePeriodSeconds}}{{else}}30{{end}}{{"\n"}}{{end}}' |
    while read -r word ns name uid kind phase state seconds; do
      case $word/$kind/$phase/$state in pod/DaemonSet/* | pod/Node/* | */Succeeded/* | */Failed/* | */ending) continue ;; pod/*) ;; *) continue ;; esac
      [ "$seconds" -le "$grace" ] || seconds=$grace
      printf '%s %s %s %s\n' "$ns" "$name" "$uid" "$seconds"
    done
}

# evict: asks for all of them at once; a disruption budget that says no is asked again at the next look.
evict() {
  pods | {
    while read -r ns name uid seconds; do
      order='{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'$name'","namespace":"'$ns'"},"deleteOptions":{"gracePeriodSeconds":'$seconds',"preconditions":{"uid":"'$uid'"}}}'
      {
        said=$(echo "$order" | k create --raw "/api/v1/namespaces/$ns/pods/$name/eviction" -f -) || echo "$ns/$name stays: $said"
      } &
    done
    wait
  }
}

trap 'touch "$given"' USR1
trap 'exit 0' TERM INT
marked=unknown
while :; do
  if notice; then
    if [ "$marked" != yes ]; then
      echo "this machine will be taken away: its pods are evicted"
      if said=$(mark); then marked=yes; else echo "marking the node: $said"; fi
    fi
    evict
  elif [ "$marked" != no ]; then
    if at=$(value '.metadata.annotations.gpuctl\.dev/spot-notice'); then
      [ -z "$at" ] || echo "the notice of $at holds no longer: $(unmark)"
      marked=no
    fi
  fi
  sleep "$every" &
  wait $!
done
