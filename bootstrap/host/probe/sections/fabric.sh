n=0
for f in /proc/driver/nvidia-nvswitch/devices/*; do
  [ ! -e "$f" ] || n=$((n + 1))
done
echo "switches=$n"
command -v systemctl >/dev/null || exit 0
for u in nvidia-fabricmanager nvidia-persistenced; do
  [ "$(systemctl show -p LoadState --value "$u")" != loaded ] || echo "$u=$(systemctl show -p ActiveState --value "$u")"
done
! systemctl is-failed -q nvidia-fabricmanager || echo "message=$(journalctl -u nvidia-fabricmanager -n 20 -o cat --no-pager | grep -iE 'match|error|fail|NOTHING_TO_DO' | tail -n 1)"
