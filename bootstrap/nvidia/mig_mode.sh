# Sets the MIG mode of the GPUs that have one ($1: 1 or 0) and prints what became
# of it, one GPU a line. Whether it succeeded is told by the modes, not by the code.
set -eu
nvidia-smi -mig "$1" >&2 || :
nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv,noheader
