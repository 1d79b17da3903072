//go:build unix

package sshconn_test

import (
	"context"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

func TestSmoke(t *testing.T) {
	k := sshtest.KeyFile(t, t.TempDir(), "id", sshtest.NewPrivate(t), "")
	s := sshtest.Start(t, sshtest.Options{Noise: "hello\n"})
	c, err := sshconn.Dial(context.Background(), sshconn.Target{Host: s.Host(), Port: s.Port(), User: "ubuntu", IdentityFile: k}, sshconn.Options{ConfigFile: "none", KnownHosts: t.TempDir() + "/kh"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.Run(context.Background(), remote.Cmd{Name: "x", Script: "echo hi; id -u; pwd; echo err >&2; cat", Args: []string{"a b"}, Sudo: true})
	t.Logf("%q %q %v", res.Stdout, res.Stderr, err)
}
