# Answers one HTTP request on standard input. $1 file with the secret  $2 folder of the files
# A file's name is its checksum; nothing else is ever opened.
secret=$(cat "$1") dir=$2
cr=$(printf '\r')
refuse() {
  printf 'HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' "$1"
  exit 0
}
read -r method path _ || exit 0
known='' from=0 lines=0
while read -r line; do
  line=${line%"$cr"}
  [ -n "$line" ] || break
  lines=$((lines + 1))
  [ "$lines" -lt 50 ] || refuse '431 Too Many Headers'
  case $line in
    [Aa]uthorization:*) [ "${line#*: }" != "Bearer $secret" ] || known=yes ;;
    [Rr]ange:*) from=${line#*bytes=} from=${from%%-*} ;;
  esac
done
[ "$known" = yes ] || refuse '401 Unauthorized'
[ "$method" = GET ] || refuse '405 Method Not Allowed'
name=${path#/}
case $name in *[!0-9a-f]* | '') refuse '404 Not Found' ;; esac
if [ "${#name}" -ne 64 ] || [ ! -f "$dir/$name" ]; then refuse '404 Not Found'; fi
case $from in *[!0-9]* | '' | ??????????????*) refuse '416 Range Not Satisfiable' ;; esac
size=$(wc -c <"$dir/$name")
[ "$from" -lt "$size" ] || refuse '416 Range Not Satisfiable'
if [ "$from" -gt 0 ]; then
  printf 'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %s-%s/%s\r\n' "$from" "$((size - 1))" "$size"
else
  printf 'HTTP/1.1 200 OK\r\n'
fi
printf 'Content-Length: %s\r\nConnection: close\r\n\r\n' "$((size - from))"
exec tail -c "+$((from + 1))" "$dir/$name"
