package wan_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/wan"
)

// echo returns each line to its sender.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, l *wan.Line) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

func ask(t *testing.T, conn net.Conn, r *bufio.Reader) (string, error) {
	t.Helper()
	if _, err := conn.Write([]byte("x\n")); err != nil {
		return "", err
	}
	return r.ReadString('\n')
}

func TestDelay(t *testing.T) {
	const rtt = 40 * time.Millisecond
	l, err := wan.Open(t.Context(), echo(t), rtt)
	if err != nil {
		t.Fatal(err)
	}
	conn, r := dial(t, l)
	start := time.Now()
	for range 2 {
		if got, err := ask(t, conn, r); err != nil || got != "x\n" {
			t.Fatalf("echo %q, %v", got, err)
		}
	}
	if took := time.Since(start); took < 2*rtt {
		t.Errorf("two questions took %s, less than two round trips", took)
	}
}

func TestCutAndRestore(t *testing.T) {
	l, err := wan.Open(t.Context(), echo(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, r := dial(t, l)
	if _, err := ask(t, conn, r); err != nil {
		t.Fatal(err)
	}
	l.Cut()
	if _, err := r.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut connection reads %v, want %v", err, syscall.ECONNRESET)
	}
	if conn, err := net.Dial("tcp", l.Addr().String()); err == nil { // else reset at once
		if got, err := ask(t, conn, bufio.NewReader(conn)); err == nil {
			t.Errorf("a line that is down answers %q", got)
		}
		conn.Close()
	}
	l.Restore()
	conn, r = dial(t, l)
	if _, err := ask(t, conn, r); err != nil {
		t.Errorf("after a restore: %v", err)
	}
}

func TestStall(t *testing.T) {
	l, err := wan.Open(t.Context(), echo(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, r := dial(t, l)
	l.Stall()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t, conn, r); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stalled line reads %q, %v", got, err)
	}
	l.Restore()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got, err := r.ReadString('\n'); err != nil || got != "x\n" {
		t.Errorf("after a restore: %q, %v", got, err)
	}
}
