show() { # key, file
  v=
  { read -r v <"$2" || [ -n "$v" ]; } 2>/dev/null && echo "$1=$v"
}
echo "kernel=$(uname -r)"
echo "arch=$(uname -m)"
echo "hostname=$(uname -n)"
show machine_id /etc/machine-id
show product_uuid /sys/class/dmi/id/product_uuid
show vendor /sys/class/dmi/id/sys_vendor
show product /sys/class/dmi/id/product_name
show boot_id /proc/sys/kernel/random/boot_id
show init /proc/1/comm
show uptime /proc/uptime
echo "uid=$(id -u)"
echo "login=${SUDO_USER:-$(id -un)}"
[ ! -e /var/run/reboot-required ] || echo reboot_required=yes
