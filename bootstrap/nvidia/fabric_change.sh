# $4 the fabric manager's package, $5 the driver's version, empty for that of
# the module on disk; then further packages: those of the driver's version end in "=".
# nvlsm has versions of its own, by date, so that none of them is the driver's
# (kata-containers, nvidia_chroot.sh: nvlsm_2025.10.14-1); what comes is held like the others.
manager=$4 version=$5
shift 5
[ -n "$version" ] || version=$(modinfo -F version nvidia)
apt_get update || echo "not every package source answered"
set -- "$manager=" "$@"
for p; do
  shift
  case $p in *=)
    apt-cache madison "${p%=}" | cut -d '|' -f 2 | grep -q "^ $version-" || {
      echo "no candidate in the package lists for ${p%=} $version, after a refresh" >&2
      exit 65
    }
    p="$p$version-*"
    ;;
  esac
  set -- "$@" "$p"
done
apt_get install -y --no-install-recommends --allow-change-held-packages --allow-downgrades "$@"
for p; do echo "${p%%=*}"; done | xargs apt-mark hold
# NVLink 5 boards are managed over InfiniBand functions.
case " $* " in *' nvlsm '*)
  for m in mlx5_core ib_umad; do modprobe "$m" || :; done
  printf '# Written by gpuctl.\nmlx5_core\nib_umad\n' >/etc/modules-load.d/gpuctl-nvlink.conf
  ;;
esac
systemctl enable nvidia-fabricmanager.service
systemctl restart nvidia-fabricmanager.service
