package bootstrap

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
)

const (
	// pairStart is how long the last machine may take to listen.
	pairStart = 10 * time.Second
	// pairWait is how long packets may take once all listen: every one is sent again each 200 ms.
	pairWait = 3 * time.Second
	// outsideWait is how long this computer tries the ports that must be closed to it.
	outsideWait = time.Second
)

// pairRun is one probe of all pairs while it runs.
type pairRun struct {
	plan pairPlan

	mu   sync.Mutex // guards what follows
	seen []host.PairSight
	// changed is closed and made anew with every line.
	changed chan struct{}
}

// probePairs lets the machines of s probe each other: one command on each, all
// at the same time, a second where everything is open and four where not. What
// was seen goes into s.
func (e *Engine) probePairs(ctx context.Context, s *sight) {
	network := e.want.network(*s)
	mark := "gpuctl-" + rand.Text()
	r := &pairRun{plan: planPairs(mark, e.want.machines, *s, network), changed: make(chan struct{})}
	if !r.plan.worth() {
		return
	}
	r.seen = make([]host.PairSight, len(r.plan.machines))
	stops := make([]func() error, len(r.plan.machines))
	var running sync.WaitGroup
	for i, m := range r.plan.machines {
		input, end := io.Pipe()
		stops[i] = end.Close
		cmd := host.PairCommand(r.plan.requests[i])
		cmd.Stdin, cmd.Stdout = input, &pairLines{run: r, machine: i, mark: mark}
		running.Go(func() {
			_, err := e.fleet.on(m.Name).Run(ctx, cmd)
			r.ended(i, err)
		})
	}
	r.await(ctx, pairStart, r.allBegan)
	s.exposed = e.outside(ctx, r, mark)
	r.await(ctx, pairWait, r.complete)
	for _, stop := range stops {
		_ = stop() // the writing end of a pipe: it does not fail
	}
	running.Wait()
	s.pairs = r.plan.pairsOf(r.seen, *s, network)
}

// worth says whether there is anything to probe.
func (p pairPlan) worth() bool {
	for i := range p.machines {
		if len(p.requests[i].Peers) > 0 || p.public[i] != "" {
			return true
		}
	}
	return false
}

// await waits until done says so, limit at most. That time ran out is no
// error: what has not arrived by then did not arrive.
func (r *pairRun) await(ctx context.Context, limit time.Duration, done func() bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ok, changed := done(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *pairRun) allBegan() bool {
	for _, s := range r.seen {
		if !s.Ready && s.Failed == "" {
			return false
		}
	}
	return true
}

// complete: everything that was sent has arrived, so that nothing is worth waiting for.
func (r *pairRun) complete() bool {
	for i, request := range r.plan.requests {
		for _, peer := range request.Peers {
			from, to := r.seen[i], r.seen[peer.ID-1]
			if !from.Ready || !to.Ready {
				continue
			}
			if request.UDP != 0 && to.UDP[request.Self].Size < request.Sizes[len(request.Sizes)-1] {
				return false
			}
			for _, port := range peer.TCP {
				if from.TCP[peer.ID][port] != "open" {
					return false
				}
			}
		}
	}
	return true
}

// ended notes the end of one machine's command.
func (r *pairRun) ended(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !r.seen[i].Ready && r.seen[i].Failed == "" {
		r.seen[i].Failed = err.Error()
	}
	if err == nil && !r.seen[i].Ready && r.seen[i].Failed == "" {
		r.seen[i].Failed = "ended without an answer"
	}
	r.tell()
}

func (r *pairRun) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// pairLines cuts a machine's output into lines.
type pairLines struct {
	run     *pairRun
	machine int
	mark    string
	rest    []byte
}

// pairLineLimit bounds an unfinished line: what is longer is not ours.
const pairLineLimit = 4 << 10

// Write takes output as it comes.
func (l *pairLines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.run.seen[l.machine].Take(l.mark, string(line))
		l.rest = rest
	}
	l.run.tell()
	if len(l.rest) > pairLineLimit {
		return 0, errors.New("a line without end")
	}
	return len(p), nil
}

// outside tries, from this computer, the ports that must not be open to the world.
func (e *Engine) outside(ctx context.Context, r *pairRun, mark string) []Exposed {
	ctx, cancel := context.WithTimeout(ctx, outsideWait)
	defer cancel()
	dial := e.settings.Outside
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	var mu sync.Mutex
	var found []Exposed
	var group sync.WaitGroup
	for i, m := range r.plan.machines {
		address := r.plan.public[i]
		if address == "" || !r.began(i) {
			continue
		}
		for _, port := range []int{kubeletPort, etcdPort} {
			group.Go(func() {
				c, err := dial(ctx, "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
				if err != nil {
					return
				}
				_ = c.Close() // nothing was sent
				mu.Lock()
				defer mu.Unlock()
				found = append(found, Exposed{Machine: m.Name, Address: address, Proto: "tcp", Port: port})
			})
		}
		if udp := r.plan.requests[i].UDP; udp == 8472 {
			group.Go(func() {
				if r.arrives(ctx, dial, mark, i, net.JoinHostPort(address, fmt.Sprint(udp))) {
					mu.Lock()
					defer mu.Unlock()
					found = append(found, Exposed{Machine: m.Name, Address: address, Proto: "udp", Port: udp})
				}
			})
		}
	}
	group.Wait()
	return sortedExposed(found)
}

func (r *pairRun) began(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[i].Ready
}

// arrives sends datagrams until the machine says that one came in.
func (r *pairRun) arrives(ctx context.Context, dial dialFunc, mark string, i int, address string) bool {
	c, err := dial(ctx, "udp", address)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	for range 3 {
		// The same form as between machines, see host/pairs/probe.pl; 0 is this computer.
		if _, err := fmt.Fprintf(c, "\x00\x00\x00\x00%s 0 %d %d ", mark, i+1, time.Now().Unix()); err != nil {
			return false
		}
		arrived := false
		r.await(ctx, outsideWait/4, func() bool {
			_, arrived = r.seen[i].UDP[0]
			return arrived
		})
		if arrived {
			return true
		}
	}
	return false
}
