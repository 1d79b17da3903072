# Runs in the smoke pod: $1 is the run's mark, the rest are paths to look for vectorAdd.
# Every line that counts carries the mark. POSIX sh, no tools but nvidia-smi.
mark=$1
shift
say() { printf 'gpuctl-smoke %s %s\n' "$mark" "$*"; }
say begin
for node in /dev/nvidia[0-9]*; do
	if [ -e "$node" ]; then say device "$node"; fi
done
program=''
for path; do
	if [ -x "$path" ]; then program=$path; break; fi
done
say program "${program:-none}"
list=$(nvidia-smi -L 2>&1)
say smi $?
printf '%s\n' "$list" | {
	gpus='' slices=''
	while IFS= read -r line; do
		say list "$line"
		case $line in
		*'(UUID: '*')'*)
			uuid=${line##*'(UUID: '}
			uuid=${uuid%%')'*}
			case $uuid in
			*[!A-Za-z0-9/-]*) ;;
			MIG-*) slices="$slices $uuid" ;;
			GPU-*) gpus="$gpus $uuid" ;;
			esac
			;;
		esac
	done
	for uuid in ${slices:-$gpus}; do
		if [ -z "$program" ]; then break; fi
		out=$(CUDA_VISIBLE_DEVICES=$uuid "$program" 2>&1)
		code=$?
		case $out in
		*'Test PASSED'*) passed=yes ;;
		*) passed=no ;;
		esac
		say run "$uuid" "$code" "$passed"
		printf '%s\n' "$out" | while IFS= read -r line; do say out "$uuid" "$line"; done
	done
}
say end
