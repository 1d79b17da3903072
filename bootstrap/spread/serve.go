package spread

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed serve.sh
var serveScript string

//go:embed answer.sh
var answerScript string

const (
	// beat is how often the client says that it lives, patience how long a machine believes in one that is silent.
	beat     = 15 * time.Second
	patience = 60 * time.Second
	// serveFor bounds the one command that keeps the listener.
	serveFor = 6 * time.Hour
	// listenLimit bounds the time until a machine listens.
	listenLimit = 30 * time.Second
	// firstPort and ports are where listeners are: below the range of node ports (30000) and of outgoing connections (32768).
	firstPort, ports = 17000, 8000
	// exitNoListen is serve.sh's exit code where the port is taken.
	exitNoListen = 73
)

// listener is a machine that gives files to others.
type listener struct {
	ready chan struct{} // closed when base or err is set
	base  string
	err   error
	stop  context.CancelFunc
	ended chan struct{}
}

// serve makes a machine listen, once in a run, and returns where.
func (s *Spreader) serve(ctx context.Context, m Machine) (string, error) {
	s.mu.Lock()
	l := s.hosts[m.Name]
	if l == nil {
		l = &listener{ready: make(chan struct{}), ended: make(chan struct{})}
		// The listener outlives the action that asked first; Close ends it.
		var hosting context.Context
		hosting, l.stop = context.WithCancel(context.WithoutCancel(ctx))
		s.hosts[m.Name] = l
		go s.host(hosting, m, l)
	}
	s.mu.Unlock()
	select {
	case <-l.ready:
		return l.base, l.err
	case <-time.After(listenLimit):
		return "", fmt.Errorf("%s does not listen within %s", m.Name, listenLimit)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// host keeps the listener until it is stopped; a port that is taken is not the last.
func (s *Spreader) host(ctx context.Context, m Machine, l *listener) {
	defer close(l.ended)
	var once sync.Once
	tell := func(base string, err error) {
		once.Do(func() {
			l.base, l.err = base, err
			close(l.ready)
		})
	}
	var err error
	for range 3 {
		var port int
		if port, err = anyPort(); err != nil {
			break
		}
		at := net.JoinHostPort(m.Address.String(), strconv.Itoa(port))
		err = s.keep(ctx, m, port, func() { tell("http://"+at, nil) })
		if remote.ExitCode(err) != exitNoListen {
			break
		}
	}
	tell("", errors.Join(errors.New(m.Name+" does not listen"), err))
}

// keep runs the one command that listens.
func (s *Spreader) keep(ctx context.Context, m Machine, port int, ready func()) error {
	in, out := io.Pipe()
	defer in.Close()
	go remote.Alive(ctx, out, beat)
	address := m.Address.String()
	if m.Address.Is6() {
		address = "[" + address + "]"
	}
	// Its end is the end of its input, so that it takes its units away; the command itself is not cut.
	_, err := m.On.Run(context.WithoutCancel(ctx), remote.Cmd{
		Name: "give files to the other machines", Script: serveScript, Sudo: true, Timeout: serveFor,
		Args: []string{address, strconv.Itoa(port), s.dir, strconv.Itoa(int(patience.Seconds()))},
		Env:  map[string]string{"GPUCTL_SECRET": s.secret, "GPUCTL_ANSWER": answerScript}, Secrets: []string{s.secret},
		Stdin: in, Stdout: &firstWord{word: "ready\n", then: ready},
	})
	return err
}

// firstWord calls then when a word was written.
type firstWord struct {
	word string
	then func()

	mu   sync.Mutex
	said bytes.Buffer
}

func (f *firstWord) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said.Write(p[:min(len(p), max(0, 200-f.said.Len()))])
	if bytes.HasPrefix(f.said.Bytes(), []byte(f.word)) && f.then != nil {
		f.then()
		f.then = nil
	}
	return len(p), nil
}

func anyPort() (int, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(ports))
	if err != nil {
		return 0, fmt.Errorf("choosing a port: %w", err)
	}
	return firstPort + int(n.Int64()), nil
}

// closeLimit bounds what Close waits for: Ctrl-C must not be held up, and a
// listener whose client is silent ends by itself.
const closeLimit = 2 * time.Second

// Close ends the listeners and removes what machines kept for others.
func (s *Spreader) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	s.mu.Lock()
	hosts, used := s.hosts, s.used
	s.hosts, s.used, s.files = map[string]*listener{}, map[string]remote.Runner{}, map[string]*seeding{}
	s.mu.Unlock()
	for _, l := range hosts {
		l.stop()
	}
	var over sync.WaitGroup
	for _, on := range used {
		over.Go(func() {
			// What cannot be removed now is where the next run goes on.
			_, _ = on.Run(ctx, remote.Cmd{
				Name: "remove what was kept for others", Sudo: true, Timeout: closeLimit, Args: []string{s.dir},
				Script: `for f in "$1"/*; do case $f in *.part | *.lock) ;; *) rm -f "$f" ;; esac; done; rmdir "$1" "${1%/*}" 2>/dev/null || :`,
			})
		})
	}
	over.Wait()
	for _, l := range hosts {
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}
}
