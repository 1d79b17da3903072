# $4 the fabric manager's package, $5 the driver's version, empty for that of
# the module on disk; then further packages.
version=$5
[ -n "$version" ] || version=$(modinfo -F version nvidia)
have=$(dpkg-query -W -f '${Version}' "$4" 2>/dev/null) || have=''
case $have in
  "$version"-*) ;;
  *)
    echo "after the installation $4 is of version '$have', not the driver's $version" >&2
    exit 1
    ;;
esac
case " $* " in *' nvlsm '*)
  dpkg-query -W -f '${db:Status-Abbrev}\n' nvlsm 2>/dev/null | grep -q '^.i' || {
    echo "after the installation there is no NVLink subnet manager (nvlsm)" >&2
    exit 1
  }
  ;;
esac
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
