cat /etc/os-release 2>/dev/null || cat /usr/lib/os-release 2>/dev/null || exit 44
