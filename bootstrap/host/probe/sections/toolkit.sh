found=
for b in nvidia-container-runtime nvidia-ctk nvidia-cdi-hook nvidia-container-cli nvidia-container-runtime-hook; do
  # The order in which k3s looks for a runtime, see k3s pkg/agent/containerd/runtimes.go.
  for p in /usr/local/nvidia/toolkit /opt/kwasm/bin /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin; do
    [ -x "$p/$b" ] || continue
    echo "bin=$b $p/$b"
    found=$b
    break
  done
done
[ ! -x /usr/local/nvidia/toolkit/nvidia-container-runtime ] || echo operator=yes
for f in /etc/cdi/* /var/run/cdi/*; do
  [ ! -f "$f" ] || echo "cdi=$f"
done
[ -n "$found" ] || exit 44
! command -v nvidia-ctk >/dev/null || echo "version=$(nvidia-ctk --version 2>/dev/null | head -n 1)"
