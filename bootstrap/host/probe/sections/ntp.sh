command -v timedatectl >/dev/null || exit 44
echo "synchronized=$(timedatectl show -p NTPSynchronized --value)"
