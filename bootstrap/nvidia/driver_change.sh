# $4 pin package or empty, $5 prefix of the packages that belong to a kernel,
# $6 branch; then the packages.
pin=$4 kernel=$5
shift 6
installed() { dpkg-query -W -f '${db:Status-Abbrev}\n' "$1" 2>/dev/null | grep -q '^.i'; }
candidate() { apt-cache policy "$1" | grep -q '^  Candidate: [^(]'; }
need() {
  for p; do
    installed "$p" || candidate "$p" || {
      echo "no candidate in the package lists for $p, after a refresh" >&2
      exit 65
    }
  done
}
put() { apt_get install -y --no-install-recommends --allow-change-held-packages --allow-downgrades "$@"; }

# Holds keep apt from exchanging what a new driver depends on; they come back below.
apt-mark showhold | grep -E '^(nvidia-|libnvidia-|cuda-drivers|linux-modules-nvidia-)' | grep -v container >/run/gpuctl/unhold || :
xargs -r apt-mark unhold </run/gpuctl/unhold
# One broken source of the machine's must not stop this: the candidates decide.
apt_get update || echo "not every package source answered"
# A pin to another branch would contradict ours, or what the distribution brings.
others=''
for p in $(dpkg-query -W -f '${db:Status-Abbrev}|${Package}\n' 'nvidia-driver-pinning-*' 2>/dev/null | sed -n 's/^.i.*|//p'); do
  [ "$p" = "$pin" ] || others="$others $p-"
done
if [ -n "$pin$others" ]; then
  [ -z "$pin" ] || need "$pin"
  # shellcheck disable=SC2086
  put $pin $others
fi
running=$(uname -r)
need "$kernel-$running" "$@"
put "$kernel-$running" "$@"
# The next boot may take a newer kernel than the one that runs.
newest=$(find /boot -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sed 's|.*/vmlinuz-||' | sort -V | tail -n 1)
if [ -n "$newest" ] && [ "$newest" != "$running" ] && ! installed "$kernel-$newest" && candidate "$kernel-$newest"; then
  put "$kernel-$newest"
fi
! command -v dkms >/dev/null || dkms autoinstall || :

f=/etc/modprobe.d/gpuctl-nouveau.conf
if ! grep -qsx 'blacklist nouveau' "$f"; then
  mkdir -p "${f%/*}"
  t=$(mktemp "$f.XXXXXX")
  printf '# Written by gpuctl.\nblacklist nouveau\noptions nouveau modeset=0\n' >"$t"
  chmod 0644 "$t"
  mv -f "$t" "$f"
  ! command -v update-initramfs >/dev/null || update-initramfs -u -k all
fi
dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 'nvidia-*' 'libnvidia-*' 'cuda-drivers*' 'linux-image-*' 'linux-headers-*' 'linux-modules-nvidia-*' 2>/dev/null |
  awk '$1 ~ /^.i/ && $2 !~ /container/ { print $2 }' | sort -u >/run/gpuctl/hold
xargs -r apt-mark hold </run/gpuctl/hold
! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || systemctl enable nvidia-persistenced.service
