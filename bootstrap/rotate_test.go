package bootstrap

import (
	"errors"
	"strings"
	"testing"
)

func TestRestoreStopsAllAndRejoinsInTurn(t *testing.T) {
	w := serversOf(t, 3, 1, "")
	s := settledServers(t, w)
	at, _ := w.config.Inventory().Find("s2")
	actions, err := w.restoreActions(at, "/snap", s, pure(), false)
	if got := ids(actions); err != nil || got != "s1/k3s-stop s2/k3s-stop s3/k3s-stop s2/etcd-restore s1/etcd-rejoin s3/etcd-rejoin" {
		t.Fatalf("%s %v", got, err)
	}
	if n := needsOf(book{actions: actions}, "s2/etcd-restore"); n != "s1/k3s-stop s2/k3s-stop s3/k3s-stop" {
		t.Errorf("it does not wait for all: %s", n)
	}
	if n := needsOf(book{actions: actions}, "s3/etcd-rejoin"); n != "s1/etcd-rejoin" {
		t.Errorf("two join at once: %s", n)
	}
	delete(s.facts, "s3")
	s.unreached["s3"] = errors.New("no")
	var stays *StaysError
	if _, err := w.restoreActions(at, "/snap", s, pure(), false); !errors.As(err, &stays) {
		t.Errorf("a server that may go on with the state of before: %v", err)
	}
	if actions, err = w.restoreActions(at, "/snap", s, pure(), true); err != nil || strings.Contains(ids(actions), "s3") {
		t.Errorf("gone: %s %v", ids(actions), err)
	}
}

func TestRotationsGoServerByServer(t *testing.T) {
	w := serversOf(t, 3, 2, "")
	s := settledServers(t, w)
	if got := ids(w.certificateActions(s, pure())); got != "s1/certificates s2/certificates s3/certificates a1/certificates a2/certificates" {
		t.Errorf("%s", got)
	}
	both := w.tokenActions(s, pure(), RotateOptions{ServerToken: true, AgentToken: true}, func(string) {})
	if got := ids(both); got != "s1/new-tokens s1/tokens s2/tokens s3/tokens a1/tokens a2/tokens" {
		t.Errorf("%s", got)
	}
	if n := needsOf(book{actions: both}, "a2/tokens"); n != "s3/tokens" {
		t.Errorf("an agent before a server: %s", n)
	}
	if got := ids(w.tokenActions(s, pure(), RotateOptions{ServerToken: true}, func(string) {})); got != "s1/new-tokens s1/tokens s2/tokens s3/tokens" {
		t.Errorf("the server token alone: %s", got)
	}
}

func TestEtcdIsAskedForWhereThereIsOne(t *testing.T) {
	if err := serversOf(t, 1, 0, "datastore: sqlite").withEtcd(); !errors.Is(err, errSQLite) {
		t.Errorf("%v", err)
	}
	if err := serversOf(t, 1, 0, "").withEtcd(); err != nil {
		t.Error(err)
	}
}
