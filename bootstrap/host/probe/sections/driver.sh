for m in nvidia nvidia_uvm nvidia_modeset nvidia_drm nvidia_peermem nouveau; do
  [ -d "/sys/module/$m" ] || continue
  echo "module=$m $(cat "/sys/module/$m/refcnt" 2>/dev/null || echo 0)"
done
[ ! -r /proc/driver/nvidia/version ] || sed -n 's/^NVRM version:/nvrm=/p' /proc/driver/nvidia/version
echo "file=$(modinfo -F version nvidia 2>/dev/null | head -n 1)"
echo "license=$(modinfo -F license nvidia 2>/dev/null | head -n 1)"
for f in /usr/lib/*-linux-gnu/libnvidia-ml.so.*.* /usr/lib64/libnvidia-ml.so.*.* /usr/lib/libnvidia-ml.so.*.*; do
  [ ! -e "$f" ] || echo "library=${f##*libnvidia-ml.so.}"
done
for f in /dev/nvidia*; do
  [ ! -c "$f" ] || echo "node=$f"
done
[ ! -e /usr/bin/nvidia-uninstall ] || echo runfile=yes
! grep -qsE '^[[:space:]]*blacklist[[:space:]]+nouveau' /etc/modprobe.d/* /lib/modprobe.d/* /usr/lib/modprobe.d/* || echo nouveau_blacklisted=yes
