! grep -qs '^ENABLED=yes' /etc/ufw/ufw.conf || echo ufw
[ "$(systemctl is-active firewalld 2>/dev/null)" != active ] || echo firewalld
! command -v ufw >/dev/null || ufw show added 2>/dev/null | sed -n "/'gpuctl'/s/^ufw /rule /p" | head -n 300
! command -v nft >/dev/null || nft list chains 2>/dev/null | awk '
  $1 == "table" { t = $2 " " $3 }
  $1 == "chain" { c = $2 }
  /hook input/ && /policy drop/ { print "nftdrop " t " " c }'
command -v iptables >/dev/null || exit 0
iptables -w 2 -S INPUT | head -n 200
iptables -w 2 -S FORWARD | head -n 50
