systemctl is-active -q nvidia-fabricmanager.service || {
  journalctl -u nvidia-fabricmanager -n 10 -o cat --no-pager >&2 || :
  exit 1
}
n=0
while states=$(nvidia-smi --query-gpu=fabric.state --format=csv,noheader 2>&1) && echo "$states" | grep -qi 'in progress'; do
  n=$((n + 1))
  if [ "$n" -ge 60 ]; then
    echo "the fabric state is still In Progress two minutes after the fabric manager's start" >&2
    exit 1
  fi
  [ "$n" -gt 1 ] || echo "@say waiting for the fabric state: In Progress"
  sleep 2
done
