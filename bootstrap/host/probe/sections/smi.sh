command -v nvidia-smi >/dev/null || exit 44
ask() { nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>&1; }
base=index,uuid,name,pci.bus_id,memory.total,driver_version
m=,mig.mode.current,mig.mode.pending,ecc.mode.current,persistence_mode,compute_cap
out=$(ask "$base$m,fabric.state,serial")
rc=$?
# Older drivers refuse a query for one field they do not know.
case $out in *"not a valid field"*) out=$(ask "$base$m") rc=$? ;; esac
case $out in *"not a valid field"*) out=$(ask "$base") rc=$? ;; esac
echo "rc $rc"
printf '%s\n' "$out" | sed 's/^/row /'
# The slices of GPUs in MIG mode; the second question costs time that others need not give.
! printf '%s\n' "$out" | grep -Eq '^([^,]*, ){6}Enabled,' || nvidia-smi -L 2>&1 | sed 's/^/list /'
