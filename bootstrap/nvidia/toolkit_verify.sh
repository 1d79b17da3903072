case $(nvidia-ctk --version) in
  *"version $4"*) ;;
  *)
    echo "nvidia-ctk --version says: $(nvidia-ctk --version | head -n 1), not $4" >&2
    exit 1
    ;;
esac
[ -x "$(command -v nvidia-container-runtime)" ] || {
  echo "nvidia-container-runtime is not on the PATH" >&2
  exit 1
}
