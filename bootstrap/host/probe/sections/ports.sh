command -v ss >/dev/null || exit 44
ss -tulnp | head -n 400
