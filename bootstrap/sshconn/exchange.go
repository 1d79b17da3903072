package sshconn

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// exitGrace is how long output may follow an exit code when the end marks are
// missing: the script's shell was killed, or a child of it keeps the stream open.
const exitGrace = 2 * time.Second

// exitInfo is what the machine said about the end of a command.
type exitInfo struct {
	code   int
	signal string
}

// exchange is one command on its channel.
type exchange struct {
	cmd     remote.Cmd
	mark    string
	ch      ssh.Channel
	secrets []string

	stdout, stderr capture
	out, errs      *frames
	outDone        chan struct{} // no more standard output
	errDone        chan struct{}
	running        chan struct{} // the script has begun
	exited         chan exitInfo // closed when the channel is gone
	gone           chan struct{} // closed when the channel is gone
	failed         chan error    // first local failure: input unreadable, output too long
	over           chan struct{} // wait has returned

	exit  *exitInfo
	heard func(sudoMode) // told what the machine says about sudo; may be nil

	mu           sync.Mutex
	pid, session string
	said         sudoMode
}

func newExchange(cmd remote.Cmd, mark string, ch ssh.Channel) *exchange {
	limit := cmd.MaxOutput
	if limit == 0 {
		limit = defaultOutput
	}
	x := &exchange{
		cmd: cmd, mark: mark, ch: ch, secrets: append([]string(nil), cmd.Secrets...),
		stdout:  capture{name: "standard output", limit: limit},
		stderr:  capture{name: "standard error", limit: limit},
		outDone: make(chan struct{}), errDone: make(chan struct{}), running: make(chan struct{}),
		exited: make(chan exitInfo, 1), failed: make(chan error, 1), over: make(chan struct{}), gone: make(chan struct{}),
	}
	x.out = &frames{mark: []byte(mark), header: x.header, data: x.stdout.add, noise: capture{limit: noiseLimit}}
	_, x.out.live = cmd.Stdout.(*firstByte)
	if cmd.Stdout != nil {
		x.out.data = func(p []byte) error {
			_, err := cmd.Stdout.Write(p)
			return err
		}
	}
	x.errs = &frames{mark: []byte(mark), header: func([]string) {}, data: x.stderr.add, noise: capture{limit: noiseLimit}}
	return x
}

// begin sends the command. With hold, Cmd.Stdin is sent only once the script
// runs: until then the machine may still say no, and the input must be whole
// for another try.
func (x *exchange) begin(prefix []byte, reqs <-chan *ssh.Request, hold bool) error {
	// No reply is asked for: that would cost a round trip, and a refusal shows as an end without a mark.
	go x.requests(reqs)
	if _, err := x.ch.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{loginLine})); err != nil {
		return err
	}
	go x.read(x.ch, x.out, x.outDone)
	go x.read(x.ch.Stderr(), x.errs, x.errDone)
	go x.write(prefix, hold)
	return nil
}

// wait returns nil when the command ended or the connection did, else why it is given up.
func (x *exchange) wait(ctx context.Context) error {
	defer close(x.over)
	outDone, errDone, exited := x.outDone, x.errDone, x.exited
	var grace <-chan time.Time
	for outDone != nil || errDone != nil || exited != nil {
		select {
		case <-outDone:
			outDone = nil
		case <-errDone:
			errDone = nil
		case e, ok := <-exited:
			exited = nil
			if ok {
				x.exit = &e
				timer := time.NewTimer(exitGrace)
				defer timer.Stop()
				grace = timer.C
			}
		case <-grace:
			return nil
		case err := <-x.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (x *exchange) requests(reqs <-chan *ssh.Request) {
	for r := range reqs {
		var status struct{ Code uint32 }
		var signal struct {
			Name   string
			Core   bool
			Text   string
			Locale string
		}
		switch {
		case r.Type == "exit-status" && ssh.Unmarshal(r.Payload, &status) == nil:
			x.ended(exitInfo{code: int(status.Code)})
		case r.Type == "exit-signal" && ssh.Unmarshal(r.Payload, &signal) == nil:
			x.ended(exitInfo{code: 128 + signalNumber(signal.Name), signal: signal.Name})
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
	close(x.exited)
	close(x.gone)
}

// signalNumber is for the signals that end commands in practice, by their names in RFC 4254.
func signalNumber(name string) int {
	switch name {
	case "HUP":
		return 1
	case "INT":
		return 2
	case "QUIT":
		return 3
	case "ABRT":
		return 6
	case "KILL":
		return 9
	case "SEGV":
		return 11
	case "PIPE":
		return 13
	case "TERM":
		return 15
	}
	return 0
}

func (x *exchange) ended(e exitInfo) {
	select {
	case x.exited <- e:
	default:
	}
}

func (x *exchange) read(r io.Reader, f *frames, done chan<- struct{}) {
	buf := make([]byte, 32<<10)
	open := true
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if ferr := f.feed(buf[:n]); ferr != nil {
				x.fail(ferr)
			}
		}
		if err != nil {
			_ = f.finish()
		}
		if open && (err != nil || f.ended) {
			close(done)
			open = false
		}
		if err != nil {
			return
		}
	}
}

func (x *exchange) write(prefix []byte, hold bool) {
	if _, err := x.ch.Write(prefix); err != nil {
		return // the channel is gone; its end says why
	}
	if x.cmd.Stdin != nil {
		if hold {
			select {
			case <-x.running:
			case <-x.over:
				return
			}
		}
		in := &inputReader{r: x.cmd.Stdin}
		_, _ = io.Copy(x.ch, in)
		if in.err != nil {
			x.fail(fmt.Errorf("reading the input of the command: %w", in.err))
			return // no end of file: the script must not take a part for the whole
		}
	}
	_ = x.ch.CloseWrite()
}

func (x *exchange) fail(err error) {
	select {
	case x.failed <- err:
	default:
	}
}

// header hears the header lines of standard output.
func (x *exchange) header(words []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case words[0] == frameRun && x.pid == "":
		// "run PID" and then the process's stat after its name: state, parent, group, session.
		if len(words) > 5 {
			x.pid, x.session = words[1], words[5]
		}
		close(x.running)
	case words[0] == frameSudo && len(words) == 2:
		x.said = sudoMode(words[1])
		if x.heard != nil {
			x.heard(x.said)
		}
	}
}

func (x *exchange) started() bool {
	select {
	case <-x.running:
		return true
	default:
		return false
	}
}

func (x *exchange) process() (pid, session string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pid, x.session, x.pid != ""
}

// sudo returns the machine's word about sudo and what sudo itself printed.
func (x *exchange) sudo() (sudoMode, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.said, string(x.out.noise.bytes())
}

// noise is what the account printed instead of running the script.
func (x *exchange) noise() string {
	text := append(x.out.noise.bytes(), x.errs.noise.bytes()...)
	return strings.TrimSpace(string(remote.Redact(text, x.secrets)))
}

func (x *exchange) result() remote.Result {
	return remote.Result{Stdout: x.stdout.bytes(), Stderr: x.stderr.bytes()}
}

func (x *exchange) stderrTail() []byte { return remote.Tail(x.stderr.bytes(), x.secrets) }
