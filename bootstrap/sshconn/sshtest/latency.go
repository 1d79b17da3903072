//go:build unix

package sshtest

import (
	"io"
	"net"
	"time"
)

// delayConn holds back each direction by a fixed time, without limiting how
// much is under way: a long line, not a thin one.
type delayConn struct {
	net.Conn
	delay time.Duration
	in    chan parcel
	out   chan parcel
	rest  []byte
}

// parcel is some bytes and when they arrive.
type parcel struct {
	data []byte
	due  time.Time
}

// parcelsUnderWay bounds the memory of a connection, not its speed.
const parcelsUnderWay = 4096

func newDelayConn(c net.Conn, delay time.Duration) *delayConn {
	d := &delayConn{Conn: c, delay: delay, in: make(chan parcel, parcelsUnderWay), out: make(chan parcel, parcelsUnderWay)}
	go func() {
		defer close(d.in)
		for {
			buf := make([]byte, 32<<10)
			n, err := c.Read(buf)
			if n > 0 {
				d.in <- parcel{buf[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		for p := range d.out {
			time.Sleep(time.Until(p.due))
			if _, err := c.Write(p.data); err != nil {
				return
			}
		}
	}()
	return d
}

func (d *delayConn) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		next, ok := <-d.in
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(next.due))
		d.rest = next.data
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *delayConn) Write(p []byte) (int, error) {
	d.out <- parcel{append([]byte(nil), p...), time.Now().Add(d.delay)}
	return len(p), nil
}
