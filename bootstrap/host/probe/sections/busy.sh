command -v nvidia-smi >/dev/null || exit 44
nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader | head -n 200
