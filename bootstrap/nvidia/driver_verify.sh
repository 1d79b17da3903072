have=$(modinfo -F version nvidia 2>/dev/null | head -n 1) || have=''
case $have in
  "$6".*) ;;
  *)
    echo "after the installation the module for kernel $(uname -r) is of version '$have', not of branch $6" >&2
    tail -n 20 /var/lib/dkms/nvidia*/*/build/make.log >&2 2>/dev/null || :
    exit 1
    ;;
esac
command -v nvidia-smi >/dev/null || {
  echo "there is no nvidia-smi after the installation" >&2
  exit 1
}
