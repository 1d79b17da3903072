package ui

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gpuctl/gpuctl/internal/event"
)

var update = flag.Bool("update", false, "write golden files")

// pty is a pseudo-terminal of the kernel's: what is written to the slave is read
// from the master, its size is what the program asks for.
type pty struct {
	t             *testing.T
	master, slave *os.File
	screen        *terminal
}

func newPTY(t *testing.T, width, height int) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = slave.Close() // a terminal keeps nothing
		_ = master.Close()
	})
	p := &pty{t: t, master: master, slave: slave, screen: &terminal{t: t, lines: []string{""}}}
	p.resize(width, height)
	return p
}

func (p *pty) resize(width, height int) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}); err != nil {
		p.t.Fatal(err)
	}
	p.screen.width, p.screen.height = width, height
}

// size is how gpuctl asks for it.
func (p *pty) size() Size {
	width, height, err := term.GetSize(int(p.slave.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	return Size{width, height}
}

// show brings what was written so far to the screen and returns its rows.
func (p *pty) show() string {
	p.t.Helper()
	const mark = "\x00"
	if _, err := io.WriteString(p.slave, mark); err != nil {
		p.t.Fatal(err)
	}
	var data strings.Builder
	buf := make([]byte, 4096)
	for !strings.HasSuffix(data.String(), mark) {
		n, err := p.master.Read(buf)
		if err != nil {
			p.t.Fatal(err)
		}
		data.Write(buf[:n])
	}
	p.screen.write(strings.TrimSuffix(data.String(), mark))
	return p.screen.rows()
}

// scenes is a run at three moments, on a terminal that changes its size between them.
func scenes(t *testing.T, style Style, sizes ...Size) string {
	t.Helper()
	p := newPTY(t, sizes[0].Width, sizes[0].Height)
	now := at(0)
	l := newLive(p.slave, style, []string{"gpu-1", "gpu-with-a-long-name-2"}, false, p.size, func() time.Time { return now })
	var out strings.Builder
	emit := func(second int, e event.Event) {
		now = at(second)
		e.Time = now
		l.Emit(e)
	}
	scene := func(i int, what string) {
		p.show()
		size := sizes[min(i, len(sizes)-1)]
		p.resize(size.Width, size.Height)
		l.draw("")
		fmt.Fprintf(&out, "--- %s, %d columns\n%s", what, size.Width, p.show())
	}
	emit(0, event.Event{Kind: event.MachineConnected, Machine: "gpu-1", Text: "ubuntu@203.0.113.10:22, host key SHA256:5iXbleB1KPZpe1RLIoyJp61+T2MJ20ZRKuGFf9Zo72s"})
	emit(1, event.Event{Kind: event.ActionStarted, Machine: "gpu-1", Action: "gpu-1/k3s-binary", Text: "download k3s v1.34.4+k3s1"})
	emit(1, event.Event{Kind: event.ActionStarted, Machine: "gpu-1", Action: "gpu-1/toolkit", Text: "install NVIDIA Container Toolkit 1.20.2-1"})
	emit(2, event.Event{Kind: event.ActionProgress, Machine: "gpu-1", Action: "gpu-1/toolkit", Text: "waiting: a package lock is held by unattended-upgr (812)"})
	emit(3, event.Event{Kind: event.ActionStarted, Machine: "gpu-with-a-long-name-2", Action: "gpu-2/driver", Text: "install NVIDIA driver 580"})
	emit(9, event.Event{Kind: event.ActionProgress, Machine: "gpu-with-a-long-name-2", Action: "gpu-2/driver", Text: "Unpacking nvidia-kernel-open-dkms (580.95.05-1)"})
	scene(0, "two machines at work")
	emit(75, event.Event{Kind: event.ActionDone, Machine: "gpu-1", Action: "gpu-1/k3s-binary", Text: "download k3s v1.34.4+k3s1", Seconds: 74})
	emit(75, event.Event{Kind: event.ActionStarted, Action: "operator", Text: "install GPU Operator v26.7.0"})
	emit(80, event.Event{Kind: event.ActionProgress, Action: "operator", Text: "release gpu-operator: daemonset nfd-worker: 1 of 2 ready"})
	scene(1, "the cluster too")
	emit(90, event.Event{Kind: event.ActionFailed, Machine: "gpu-with-a-long-name-2", Action: "gpu-2/driver", Text: "install NVIDIA driver 580", Seconds: 87, Error: "no candidate for nvidia-open"})
	emit(91, event.Event{Kind: event.ActionDone, Machine: "gpu-1", Action: "gpu-1/toolkit", Text: "install NVIDIA Container Toolkit 1.20.2-1", Seconds: 90})
	scene(2, "the operator alone")
	l.Close()
	fmt.Fprintf(&out, "--- closed\n%s", p.show())
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update if this is meant):\n%s", file, got)
	}
}

// The view on a terminal of the kernel's: narrow, wide, and made narrower and
// wider while it works. No line of the view is broken, nothing of it stays.
func TestLiveOnATerminal(t *testing.T) {
	narrow, wide := Size{40, 12}, Size{120, 30}
	for name, sizes := range map[string][]Size{
		"narrow": {narrow}, "wide": {wide}, "resized": {wide, narrow, {80, 24}},
	} {
		t.Run(name, func(t *testing.T) {
			got := scenes(t, Style{}, sizes...)
			golden(t, "testdata/live-"+name+".txt", got)
			if strings.Contains(got, "\x1b") {
				t.Error("colours where none were asked for")
			}
			// With colours the same cells are filled.
			if plain := ansi.Strip(scenes(t, Style{Color: true}, sizes...)); plain != got {
				t.Errorf("colours change the text:\n%s", plain)
			}
		})
	}
}
