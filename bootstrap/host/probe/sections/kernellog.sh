out=$(dmesg 2>/dev/null) || out=$(journalctl -k -b --no-pager 2>/dev/null) || exit 43
printf '%s\n' "$out" | grep -E 'NVRM|nouveau' | tail -n 120
exit 0
