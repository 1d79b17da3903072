# Lays what apt needs to be let into the package mirror; what is empty goes.
# $1 file of logins, $2 of certificates, $3 of apt's configuration that names
# them; $AUTH, $CA and $CONF are their texts.
set -eu
umask 077
put() { # put FILE MODE TEXT
  if [ -z "$3" ]; then
    rm -f "$1"
    return
  fi
  [ -d "${1%/*}" ] || { mkdir -p "${1%/*}" && chmod 0755 "${1%/*}"; }
  t=$(mktemp "$1.XXXXXX")
  printf '%s\n' "$3" >"$t"
  chmod "$2" "$t"
  mv -f "$t" "$1"
}
put "$1" 0600 "$AUTH"
put "$2" 0644 "$CA"
put "$3" 0644 "$CONF"
apt-config dump >/dev/null
