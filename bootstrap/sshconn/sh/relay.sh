# Connects standard input and output to $1:$2. Prints "+" once connected.
# Exit codes: 68 no connection, 69 no program that can do it.
if command -v perl >/dev/null 2>&1 && perl -MSocket=getaddrinfo,SOCK_STREAM -e 1 2>/dev/null; then
	exec perl -MSocket=getaddrinfo,SOCK_STREAM -e '
		my ($err, @found) = getaddrinfo($ARGV[0], $ARGV[1], {socktype => SOCK_STREAM});
		my $s;
		for (@found) {
			socket($s, $_->{family}, SOCK_STREAM, 0) or next;
			if (connect($s, $_->{addr})) { $err = ""; last }
			$err = "$!"; close $s; undef $s;
		}
		if (!$s) { print STDERR "$err\n"; exit 68 }
		sub put { my ($to, $data) = @_; while (length $data) { my $n = syswrite($to, $data) or exit 0; substr($data, 0, $n, "") } }
		put(*STDOUT, "+");
		my ($in, $open) = (fileno(STDIN), 1);
		while (1) {
			my $r = ""; vec($r, fileno($s), 1) = 1; vec($r, $in, 1) = 1 if $open;
			select($r, undef, undef, undef);
			if (vec($r, fileno($s), 1)) { sysread($s, my $d, 65536) or exit 0; put(*STDOUT, $d) }
			if ($open && vec($r, $in, 1)) { if (sysread(STDIN, my $d, 65536)) { put($s, $d) } else { $open = 0; shutdown($s, 1) } }
		}' "$1" "$2"
fi
if command -v python3 >/dev/null 2>&1; then
	exec python3 -c '
import os, select, socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
except OSError as e:
    print(e, file=sys.stderr)
    sys.exit(68)
os.write(1, b"+")
sources = [s.fileno(), 0]
while True:
    for fd in select.select(sources, [], [])[0]:
        data = os.read(fd, 65536)
        if fd == 0 and data:
            s.sendall(data)
        elif fd == 0:
            sources.remove(0)
            s.shutdown(socket.SHUT_WR)
        elif not data:
            sys.exit(0)
        else:
            while data:
                data = data[os.write(1, data):]
' "$1" "$2"
fi
if command -v bash >/dev/null 2>&1; then
	exec bash -c 'exec 3<>"/dev/tcp/$1/$2" || exit 68; printf +; cat <&0 >&3 & cat <&3; kill $! 2>/dev/null' relay "$1" "$2"
fi
if command -v socat >/dev/null 2>&1; then
	printf +
	exec socat - "TCP:$1:$2"
fi
if command -v nc >/dev/null 2>&1; then
	printf +
	exec nc "$1" "$2"
fi
exit 69
