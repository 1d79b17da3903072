//go:build unix

package bench

import (
	"io"
	"net"
	"time"
)

// underWay bounds what a line holds, in writes: enough for the answers here,
// little enough for a thousand lines.
const underWay = 64

// line is a connection whose far end is half a round trip away. The handshake
// of TCP, which loopback does at once, costs one round trip as well.
type line struct {
	net.Conn
	half  time.Duration
	since time.Time
	in    chan parcel
	out   chan parcel
	rest  []byte
}

// parcel is some bytes and when they arrive.
type parcel struct {
	data []byte
	due  time.Time
}

// lengthen returns c with a round trip; c itself where that is nothing.
func lengthen(c net.Conn, roundTrip time.Duration) net.Conn {
	if roundTrip <= 0 {
		return c
	}
	l := &line{Conn: c, half: roundTrip / 2, since: time.Now().Add(roundTrip), in: make(chan parcel, underWay), out: make(chan parcel, underWay)}
	go l.receive()
	go l.send()
	return l
}

func (l *line) receive() {
	defer close(l.in)
	for {
		buf := make([]byte, 16<<10)
		n, err := l.Conn.Read(buf)
		if n > 0 {
			at := time.Now()
			if at.Before(l.since) {
				at = l.since // the peer could not have sent it before
			}
			l.in <- parcel{buf[:n], at.Add(l.half)}
		}
		if err != nil {
			return
		}
	}
}

func (l *line) send() {
	for p := range l.out {
		if p.data == nil {
			_ = l.Conn.Close()
			return
		}
		time.Sleep(time.Until(p.due))
		if _, err := l.Conn.Write(p.data); err != nil {
			_ = l.Conn.Close()
			for range l.out { // drop what nobody hears
			}
			return
		}
	}
}

func (l *line) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		next, ok := <-l.in
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(next.due))
		l.rest = next.data
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *line) Write(p []byte) (int, error) {
	at := time.Now()
	if at.Before(l.since) {
		at = l.since
	}
	l.out <- parcel{append(make([]byte, 0, len(p)), p...), at.Add(l.half)}
	return len(p), nil
}
