# Replaces gpuctl's rules of ufw and firewalld. Standard input holds the rules of
# ufw (the first $1 bytes), one zone file of firewalld ($2 bytes) and the other;
# empty ones take the rules away. The other arguments are "ufw", "firewalld".
set -eu
export LC_ALL=C
length=$1 nodes=$2
shift 2
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cat >"$d/all"
head -c "$length" "$d/all" >"$d/rules"
tail -c "+$((length + 1))" "$d/all" | head -c "$nodes" >"$d/gpuctl.xml"
tail -c "+$((length + nodes + 1))" "$d/all" >"$d/gpuctl-pods.xml"

added() { ufw show added | sed -n "/'gpuctl'/s/^ufw //p"; }

# rule DELETE RULE: ufw takes a rule as words; the comment is one in quotes.
rule() {
  words=${2% comment \'gpuctl\'}
  # shellcheck disable=SC2086 # the words of the rule
  if [ "$1" = delete ]; then ufw delete $words; else ufw $words comment gpuctl; fi </dev/null >/dev/null
}

for which; do
  case $which in
    ufw)
      added >"$d/old"
      while IFS= read -r r; do grep -qxF "$r" "$d/rules" || rule delete "$r"; done <"$d/old"
      while IFS= read -r r; do grep -qxF "$r" "$d/old" || rule add "$r"; done <"$d/rules"
      added | sort >"$d/new"
      sort "$d/rules" | cmp -s - "$d/new" || {
        echo "ufw does not have the rules it was given" >&2
        exit 1
      }
      ;;
    firewalld)
      for zone in gpuctl gpuctl-pods; do
        f=/etc/firewalld/zones/$zone.xml
        if [ -s "$d/$zone.xml" ]; then
          cat "$d/$zone.xml" >"$f.new"
          chmod 0644 "$f.new"
          mv -f "$f.new" "$f"
        else
          rm -f "$f" "$f.old"
        fi
      done
      ! systemctl -q is-active firewalld || firewall-cmd --reload >/dev/null
      ;;
  esac
done
