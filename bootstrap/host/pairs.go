package host

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed pairs/run.sh
var pairScript string

//go:embed pairs/probe.pl
var pairProgram string

// PairLimit bounds one machine's part of a pair probe.
const PairLimit = 30 * time.Second

// Peer is another machine of a pair probe.
type Peer struct {
	// ID tells machines apart within one probe; 0 is the computer gpuctl runs on.
	ID int
	// Address is where the machine is to be reached by the one that probes.
	Address string
	// TCP are the ports that must be open there.
	TCP []int
}

// PairRequest is one machine's part of a pair probe.
type PairRequest struct {
	// Mark stands before every line and in every datagram of one probe.
	Mark string
	Self int
	// UDP is the overlay's port; 0 probes none.
	UDP int
	// Listen are TCP ports that answer for the time of the probe, unless a program has them already.
	Listen []int
	// Sizes are those of the datagrams to send, as whole IP packets in bytes.
	Sizes []int
	Peers []Peer
}

// PairCommand runs until its standard input ends, 25 seconds at most. It needs
// perl-base, which Debian and Ubuntu have, leaves no file and opens ports only
// while it runs.
func PairCommand(r PairRequest) remote.Cmd {
	args := []string{r.Mark, strconv.Itoa(r.Self), strconv.Itoa(r.UDP), commas(r.Listen), commas(r.Sizes)}
	for _, p := range r.Peers {
		args = append(args, fmt.Sprintf("%d=%s=%s", p.ID, p.Address, commas(p.TCP)))
	}
	return remote.Cmd{
		Name: "pairs", Script: pairScript, Args: args, Sudo: true, Timeout: PairLimit,
		Env: map[string]string{"GPUCTL_PROGRAM": pairProgram},
	}
}

func commas(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// Arrival is what came in of one machine's datagrams.
type Arrival struct {
	// Size is the largest IP packet that arrived, in bytes.
	Size int
	// Delay is the least difference between the receiver's clock on arrival and
	// the sender's on departure: time on the way plus what the clocks differ by.
	Delay time.Duration
}

// PairSight is what one machine saw of the others. It grows line by line.
type PairSight struct {
	// Ready: it listens.
	Ready bool
	// Failed is why it could not take part; "" if it could.
	Failed string
	// Held are ports that another program has.
	Held []int
	// UDP maps senders to what arrived of theirs.
	UDP map[int]Arrival
	// TCP maps machines and ports to "open" or the reason why not.
	TCP map[int]map[int]string
}

// Take reads one line of output; lines without the mark, and those that make no
// sense, are noise.
func (s *PairSight) Take(mark, line string) {
	w := strings.Fields(line)
	if len(w) < 2 || w[0] != mark {
		return
	}
	number := func(i int) int {
		if i >= len(w) {
			return -1
		}
		n, err := strconv.Atoi(w[i])
		if err != nil {
			return -1
		}
		return n
	}
	switch w[1] {
	case "ready":
		s.Ready = true
	case "failed":
		s.Failed = strings.Join(w[2:], " ")
	case "held":
		s.Held = append(s.Held, number(2))
	case "udp":
		s.arrived(w[2:])
	case "tcp":
		to, port := number(2), number(3)
		if to < 0 || port <= 0 || len(w) < 5 {
			return
		}
		if s.TCP == nil {
			s.TCP = map[int]map[int]string{}
		}
		if s.TCP[to] == nil {
			s.TCP[to] = map[int]string{}
		}
		s.TCP[to][port] = strings.Join(w[4:], " ")
	}
}

// arrived takes FROM SIZE SENT RECEIVED; the times are seconds since 1970.
func (s *PairSight) arrived(w []string) {
	if len(w) < 4 {
		return
	}
	from, err1 := strconv.Atoi(w[0])
	size, err2 := strconv.Atoi(w[1])
	sent, err3 := strconv.ParseFloat(w[2], 64)
	received, err4 := strconv.ParseFloat(w[3], 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return
	}
	a := Arrival{Size: size, Delay: time.Duration((received - sent) * float64(time.Second))}
	if before, ok := s.UDP[from]; ok {
		a = Arrival{Size: max(a.Size, before.Size), Delay: min(a.Delay, before.Delay)}
	}
	if s.UDP == nil {
		s.UDP = map[int]Arrival{}
	}
	s.UDP[from] = a
}
