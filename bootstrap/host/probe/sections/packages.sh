set -- 'nvidia*' 'libnvidia*' 'cuda-drivers*' 'linux-image*' 'linux-headers*' 'linux-modules-nvidia*' \
  'containerd*' 'docker*' 'k3s*' kubelet kubeadm wireguard-tools open-iscsi nfs-common unattended-upgrades
for m in apt-get dnf yum zypper; do
  ! command -v "$m" >/dev/null || break
done
case $m in
  apt-get)
    echo manager=apt
    # shellcheck disable=SC2016
    dpkg-query -W -f 'pkg|${db:Status-Abbrev}|${Package}|${Version}\n' "$@" 2>/dev/null
    dpkg --audit 2>&1 | sed -n '1s/^/audit=/p'
    grep -ls libnvidia-container /etc/apt/sources.list /etc/apt/sources.list.d/* | sed 's/^/source=/'
    ;;
  *)
    command -v rpm >/dev/null || exit 44
    echo "manager=$m"
    rpm -qa --qf 'pkg|ii|%{NAME}|%{VERSION}-%{RELEASE}\n' "$@"
    ;;
esac
for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock; do
  i=$(stat -c %i "$f" 2>/dev/null) || continue
  awk -v i="$i" '$2 != "->" && $6 ~ (":" i "$") { print $5 }' /proc/locks
done | sort -u | while read -r p; do
  echo "lock=$(cat "/proc/$p/comm" 2>/dev/null || echo process) ($p)"
done
systemctl is-active -q unattended-upgrades apt-daily-upgrade.timer 2>/dev/null && echo unattended=yes
systemctl list-units --plain --no-legend --state=active,activating 'gpuctl-apt-*' 2>/dev/null | sed -n 's/^\([^ ]*\)\.service .*/unit=\1/p'
exit 0
