shift
for f; do
  [ -e "$f" ] || [ -L "$f" ] || continue
  k=other h=- t=-
  if [ -L "$f" ]; then
    k=link t=$(readlink "$f")
  elif [ -d "$f" ]; then
    k=dir
  elif [ -f "$f" ]; then
    k=file h=$({ printf '%s\n' "$GPUCTL_PROBE_KEY"; cat -- "$f"; } | sha256sum | cut -d ' ' -f 1)
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$k" "$(stat -c '%a %u %g %s' -- "$f")" "$h" "$f" "$t"
done
