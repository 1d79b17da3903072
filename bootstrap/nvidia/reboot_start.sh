# Prints the id of this boot and reboots a moment later, so that this command
# still ends.
set -eu
cat /proc/sys/kernel/random/boot_id
systemd-run --quiet --collect --on-active=1s --timer-property=AccuracySec=100ms systemctl reboot
