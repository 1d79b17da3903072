data=$1
found=
for b in /usr/local/bin/k3s /opt/bin/k3s /usr/bin/k3s; do
  [ -x "$b" ] || continue
  echo "path=$b"
  echo "sha256=$(sha256sum "$b" | cut -d ' ' -f 1)"
  echo "banner=$("$b" --version 2>/dev/null | head -n 1)"
  found=yes
  break
done
for u in k3s k3s-agent gpuctl-spot; do
  [ "$(systemctl show -p LoadState --value "$u" 2>/dev/null)" = loaded ] || continue
  found=yes
  echo "unit=$u"
  systemctl show "$u" -p ActiveState,SubState,UnitFileState,NRestarts,ExecMainStartTimestampMonotonic,MainPID
done
for f in /etc/rancher/k3s/config.yaml /etc/rancher/k3s/config.yaml.d/*.yaml /etc/rancher/k3s/config.yaml.d/*.yml; do
  [ -f "$f" ] || continue
  found=yes
  sed -n 's/^[[:space:]]*\([A-Za-z][A-Za-z0-9-]*+\{0,1\}\):.*/\1/p' "$f" | sed "s|^|key=$f |"
  sed -n 's/^server:[[:space:]]*/url=/p' "$f"
done
sed -n 's/^K3S_URL=/url=/p' /etc/systemd/system/k3s-agent.service.env /etc/systemd/system/k3s.service.env 2>/dev/null
own=/etc/rancher/k3s/config.yaml.d/50-gpuctl.yaml
if [ -f "$own" ]; then
  for k in server node-ip node-external-ip flannel-iface flannel-backend flannel-external-ip; do
    sed -n "s/^$k: */own=$k /p" "$own"
  done
  ! grep -q gpuctl.dev/unproven "$own" || echo "own=unproven yes"
fi
t=$data/agent/etc/containerd
[ ! -d "$data" ] || found=yes
[ ! -r "$t/config.toml" ] || grep -E '^ *(version|imports|BinaryName|default_runtime_name|\[plugins.*runtimes)' "$t/config.toml" | sed 's/^/toml=/'
for f in "$t"/config*.tmpl; do
  [ ! -e "$f" ] || echo "template=$f"
done
[ -n "$found" ] || exit 44
