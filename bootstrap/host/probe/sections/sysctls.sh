for n in fs.inotify.max_user_instances fs.inotify.max_user_watches net.ipv4.ip_forward vm.overcommit_memory \
  kernel.panic net.bridge.bridge-nf-call-iptables net.ipv6.conf.all.disable_ipv6 net.netfilter.nf_conntrack_max; do
  f=/proc/sys/$(echo "$n" | tr . /)
  [ ! -r "$f" ] || echo "$n=$(cat "$f")"
done
