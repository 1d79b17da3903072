command -v apt-cache >/dev/null || exit 44
grep -lsE 'libnvidia-container|nvidia\.github\.io' /etc/apt/sources.list.d/* >/dev/null || exit 44
apt-cache madison nvidia-container-toolkit | head -n 40
