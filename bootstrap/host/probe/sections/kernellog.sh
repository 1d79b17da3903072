out=$(dmesg 2>/dev/null) || out=$(journalctl -k -b --no-pager 2>/dev/null) || exit 43
# A refused module and a failed reservation do not carry the driver's name in every kernel.
printf '%s\n' "$out" | grep -E 'NVRM|nouveau|nvidia.*(key|sign|verif|reject)|[Uu]nsigned module|key was rejected|request_free_mem_region' | tail -n 120
exit 0
