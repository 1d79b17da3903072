//go:build unix

package sshconn_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

func checkup(t *testing.T, tgt sshconn.Target, o sshconn.Options) sshconn.Checkup {
	t.Helper()
	o.ConnectTimeout = 2 * time.Second
	d := sshconn.NewDialer(o)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.Check(t.Context(), tgt)
}

// answers joins what a trace got for what begins with a word.
func answers(trace []remote.Attempt, word string) string {
	var out []string
	for _, a := range trace {
		if strings.HasPrefix(a.What, word) {
			out = append(out, a.Answer)
		}
	}
	return strings.Join(out, "|")
}

func TestCheckOfAGoodMachine(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Path: standIns(t, "free")})
	c := checkup(t, target(t, s), options(t))
	if c.Err != nil || c.Sudo != "free" || c.Forwarding != "direct" || c.Login == nil || !c.Login.FirstSeen {
		t.Errorf("%+v", c)
	}
	if got := answers(c.Trace, "key "); got != "accepted" {
		t.Errorf("keys: %q in %v", got, c.Trace)
	}
	if got := answers(c.Trace, "host key "); got != "accepted for the first time" {
		t.Errorf("host key: %q", got)
	}
}

func TestCheckTellsForwardingApart(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{NoForwarding: true})
	if c := checkup(t, target(t, s), options(t)); c.Err != nil || c.Forwarding != "relayed" {
		t.Errorf("forwarding %q, %v", c.Forwarding, c.Err)
	}
}

func TestCheckTellsSudoApart(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Path: standIns(t, "password")})
	c := checkup(t, target(t, s), options(t))
	var sudo *remote.SudoError
	if !errors.As(c.Err, &sudo) || sudo.Kind != remote.SudoPasswordNeeded || c.Sudo != "" || c.Forwarding != "direct" {
		t.Errorf("%+v", c)
	}
}

func TestCheckNamesEveryHop(t *testing.T) {
	first := sshtest.Start(t, sshtest.Options{User: "jumper0"})
	second := sshtest.Start(t, sshtest.Options{User: "somebody-else"})
	s := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
	o := options(t)
	hopConfig(t, &o, first, second)
	tgt := target(t, s)
	tgt.Jump = "hop0"
	c := checkup(t, tgt, o)
	if c.Err != nil || len(c.Hops) != 1 || c.Hops[0].Host != "hop0" || !strings.HasPrefix(answers(c.Hops[0].Trace, "key "), "accepted") {
		t.Errorf("one hop: %+v", c)
	}
	tgt.Jump = "hop0,hop1"
	c = checkup(t, tgt, o)
	var refused *remote.ConnectError
	if !errors.As(c.Err, &refused) || refused.Kind != remote.Jump || c.Login != nil {
		t.Fatalf("the second hop refuses: %v", c.Err)
	}
	if len(c.Hops) != 2 || c.Hops[0].Err != nil || c.Hops[1].Err == nil || answers(c.Hops[1].Trace, "key ") != "not accepted|not accepted" {
		t.Errorf("two hops: %+v", c.Hops)
	}
}

func TestCheckOfAnAccountWithoutAShell(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Shell: "/bin/false", Noise: "This account is currently not available.\n"})
	c := checkup(t, target(t, s), options(t))
	if e := connectError(t, c.Err); e.Kind != remote.NoShell || c.Login == nil || c.Forwarding != "" {
		t.Errorf("%+v", c)
	}
}
