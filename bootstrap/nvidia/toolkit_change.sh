source=$2 pin=$5
shift 5
packages=''
for p; do packages="$packages $p=$pin"; done
# Only this repository is asked first: others may be slow or broken.
fresh() {
  if [ -e "$source" ]; then
    apt_get update -o Dir::Etc::sourcelist="$source" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0
  else
    apt_get update
  fi
}
# The versions are exact: a set that is gone back to has older ones.
# shellcheck disable=SC2086
put() { apt_get install -y --no-install-recommends --allow-change-held-packages --allow-downgrades $packages; }
listed() {
  for p; do
    apt-cache madison "$p" | cut -d '|' -f 2 | grep -qxF " $pin " || {
      echo "the package lists have no $p=$pin, after a refresh" >&2
      exit 65
    }
  done
}
fresh
put || {
  apt_get update
  listed "$@"
  put
}
apt-mark hold "$@"
