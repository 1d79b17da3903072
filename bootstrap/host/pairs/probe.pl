# Listens and sends at once, until standard input ends or 20 seconds have
# passed. Needs perl-base and root. Prints what it saw as lines
#   ready | held PORT | udp FROM SIZE SENT RECEIVED | tcp TO PORT ANSWER
# FROM 0 is the computer that gpuctl runs on. SIZE is that of the whole IP packet.
use strict; use warnings;
use Socket; use IO::Handle; use Config;
my ($mark, $self, $udp, $listen, $sizes, @peers) = @ARGV;
STDOUT->autoflush(1);
alarm 25; # the end, whatever happens
# perl-base lacks Time::HiRes; gettimeofday(2) by its number.
my $call = $Config{archname} =~ /^aarch64/ ? 169 : 96;
sub now { my $b = pack 'q2', 0, 0; syscall($call, $b, 0) == 0 or return time; my ($s, $u) = unpack 'q2', $b; $s + $u / 1e6 }
sub say_ { print join(' ', $mark, @_), "\n" }

my %accept;
for my $port (grep { $_ } split /,/, $listen) {
    socket(my $l, AF_INET, SOCK_STREAM, 0) or next;
    setsockopt $l, SOL_SOCKET, SO_REUSEADDR, 1;
    if (bind($l, pack_sockaddr_in($port, INADDR_ANY)) && listen($l, 64)) { $l->blocking(0); $accept{fileno $l} = $l }
    else { say_('held', $port) } # whoever has it answers itself
}
# A raw socket gets a copy of what the firewall let in, also where the port is
# the kernel's own (vxlan, wireguard) and cannot be bound.
my ($raw, $out, @sizes);
if ($udp) {
    socket($raw, AF_INET, SOCK_RAW, 17) or do { say_('failed', "raw socket: $!"); exit 0 };
    $raw->blocking(0);
    socket($out, AF_INET, SOCK_DGRAM, 17) or do { say_('failed', "socket: $!"); exit 0 };
    setsockopt $out, 0, 10, pack('i', 3); # IP_MTU_DISCOVER, IP_PMTUDISC_PROBE: never in fragments
    @sizes = split /,/, $sizes;
}
my (@to, @tcp);
for (@peers) {
    my ($id, $address, $ports) = split /=/;
    my $ip = inet_aton($address) or next;
    push @to, [$id, pack_sockaddr_in($udp, $ip)] if $udp;
    push @tcp, { id => $id, ip => $ip, port => $_, why => 'no answer' } for grep { $_ } split /,/, $ports;
}
say_('ready');

# Nothing that starts with four zero bytes is vxlan or wireguard: they drop it.
sub datagrams {
    for my $t (@to) {
        for my $size (@sizes) {
            my $text = "\0\0\0\0$mark $self $t->[0] " . now() . ' ';
            send $out, $text . ('.' x ($size - 28 - length $text)), 0, $t->[1];
        }
    }
}
my (%seen, @kept);
sub received {
    while (defined recv($raw, my $packet, 65535, 0)) {
        my $head = 4 * (ord($packet) & 15);
        next if length($packet) < $head + 12 || unpack('n', substr $packet, $head + 2, 2) != $udp;
        my $body = substr $packet, $head + 8;
        next unless $body =~ /^\0{4}\Q$mark\E (\d+) (\d+) ([\d.]+) / && ($1 == 0 || $2 == $self);
        say_('udp', $1, length $packet, $3, now()) unless $seen{"$1 " . length $packet}++ > 4;
    }
}
sub dial {
    for my $c (grep { !$_->{done} && !$_->{sock} } @tcp) {
        socket(my $s, AF_INET, SOCK_STREAM, 0) or next;
        $s->blocking(0);
        connect $s, pack_sockaddr_in($c->{port}, $c->{ip});
        $c->{sock} = $s;
    }
}
sub dialled {
    my ($w) = @_;
    for my $c (grep { $_->{sock} && vec $w, fileno($_->{sock}), 1 } @tcp) {
        my $error = unpack 'i', getsockopt($c->{sock}, SOL_SOCKET, SO_ERROR);
        if ($error) { local $! = $error; $c->{why} = "$!" }
        else { $c->{done} = 1; say_('tcp', $c->{id}, $c->{port}, 'open'); setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) }
        close delete $c->{sock};
    }
}
my ($end, $next) = (now() + 20, 0);
while (now() < $end) {
    if (now() >= $next) { datagrams() if $udp; dial(); $next = now() + 0.2 }
    my ($r, $w) = ('', '');
    vec($r, fileno(STDIN), 1) = 1;
    vec($r, fileno($raw), 1) = 1 if $udp;
    vec($r, $_, 1) = 1 for keys %accept;
    vec($w, fileno($_->{sock}), 1) = 1 for grep { $_->{sock} } @tcp;
    my $n = select $r, $w, undef, 0.1;
    next if $n <= 0;
    last if vec($r, fileno(STDIN), 1) && !sysread(STDIN, my $ignored, 4096);
    received() if $udp && vec $r, fileno($raw), 1;
    for (grep { vec $r, $_, 1 } keys %accept) {
        accept my $c, $accept{$_} or next;
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0); # no TIME_WAIT stays on a port of k3s
        push @kept, $c; # whoever dialled ends it first
    }
    dialled($w);
}
say_('tcp', $_->{id}, $_->{port}, $_->{why}) for grep { !$_->{done} } @tcp;
