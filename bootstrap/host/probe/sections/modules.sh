for m in overlay br_netfilter vxlan wireguard nf_conntrack ip_tables nf_tables ip_vs; do
  if [ -d "/sys/module/$m" ]; then
    echo "$m=ready"
  elif modprobe -n -q "$m" 2>/dev/null; then
    echo "$m=available"
  else
    echo "$m=missing"
  fi
done
! grep -qw overlay /proc/filesystems || echo overlay=ready
[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || echo br_netfilter=ready
