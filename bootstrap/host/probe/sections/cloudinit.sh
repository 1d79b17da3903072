[ -d /run/cloud-init ] || command -v cloud-init >/dev/null || exit 44
if [ -e /run/cloud-init/disabled ] || [ -e /etc/cloud/cloud-init.disabled ]; then
  echo disabled
elif [ -e /run/cloud-init/result.json ]; then
  if grep -q '"errors": \[\]' /run/cloud-init/result.json; then echo "done"; else echo error; fi
elif [ -e /run/cloud-init/status.json ]; then
  echo running
else
  echo "not run"
fi
