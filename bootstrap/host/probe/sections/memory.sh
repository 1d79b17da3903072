grep -E '^(MemTotal|MemAvailable|SwapTotal):' /proc/meminfo
echo "CPUs: $(grep -c '^processor' /proc/cpuinfo)"
