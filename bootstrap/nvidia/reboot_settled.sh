# Waits, not for long, until the services of the boot have started, and gives
# the driver the chance to load that udev gave it at boot.
set -eu
timeout 120 systemctl is-system-running --wait >/dev/null 2>&1 || :
[ -r /proc/driver/nvidia/version ] || modprobe nvidia 2>/dev/null || :
modprobe nvidia-uvm 2>/dev/null || :
! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || systemctl start nvidia-persistenced.service || :
