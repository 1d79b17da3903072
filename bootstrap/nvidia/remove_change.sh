# $1 file that keeps nouveau off, $2 package source, $3 its key; then the packages.
own=$1 source=$2 key=$3
shift 3
# Nothing may use the device nodes while the modules go; what does keeps them until the next boot.
for unit in nvidia-persistenced nvidia-fabricmanager nvidia-dcgm; do
  systemctl stop "$unit.service" 2>/dev/null || :
done
for module in nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia; do
  modprobe -r "$module" 2>/dev/null || :
done
# What NVLink 5 boards have beside the driver's own packages.
for p in nvlsm libnvsdm; do
  ! dpkg-query -W -f '${db:Status-Abbrev}\n' "$p" 2>/dev/null | grep -q '^.i' || set -- "$@" "$p"
done
if [ "$#" -gt 0 ]; then
  apt-mark unhold "$@" >/dev/null || :
  apt_get purge -y --allow-change-held-packages "$@"
fi
rm -f "$source" "$key" "$own"
! command -v update-initramfs >/dev/null || update-initramfs -u -k all
