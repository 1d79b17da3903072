# Loads the driver that is installed, where that works without a reboot. Ends
# with code 66 and the reason where it does not.
set -eu
export LC_ALL=C
why=$(modprobe nvidia 2>&1) || {
  echo "modprobe: $why" >&2
  exit 66
}
[ -r /proc/driver/nvidia/version ] || {
  echo "modprobe succeeded and /proc/driver/nvidia/version is not there" >&2
  exit 66
}
modprobe nvidia-uvm 2>/dev/null || :
! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || systemctl restart nvidia-persistenced.service || :
timeout 60 nvidia-smi -L >/dev/null 2>&1 || {
  echo "the module is loaded and nvidia-smi does not answer: $(timeout 60 nvidia-smi -L 2>&1 | head -n 1)" >&2
  exit 66
}
