//go:build unix

package sshconn_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// kubernetes-sigs/cluster-api-provider-vsphere#282, skypilot-org/skypilot#7174:
// start files print a welcome before what was asked for, and more after it. What
// comes back is the file alone, byte by byte, and the noise is nowhere in it.
func TestBannerTextInStdout(t *testing.T) {
	for _, c := range []struct{ file, first, last string }{
		{"remote-stdout.txt", "apiVersion: v1", "    client-key-data: TUFERS1VUC1LRVk="},
		{"smi-stdout.txt", "0, NVIDIA L4, 550.90.07, 23034 MiB", "1, NVIDIA L4, 550.90.07, 23034 MiB"},
	} {
		t.Run(c.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata/banner", c.file))
			if err != nil {
				t.Fatal(err)
			}
			before, rest, found := strings.Cut(string(data), c.first)
			payload, after, ended := strings.Cut(rest, c.last)
			if !found || !ended || before == "" {
				t.Fatalf("%s is not what it was", c.file)
			}
			payload, after = c.first+payload+c.last+"\n", strings.TrimPrefix(after, "\n")
			s := sshtest.Start(t, sshtest.Options{Noise: before, After: after, Path: standIns(t, "free")})
			conn := dial(t, target(t, s), options(t))
			for _, sudo := range []bool{false, true} {
				res, err := conn.Run(t.Context(), remote.Cmd{Name: "cat", Script: "cat", Stdin: strings.NewReader(payload), Sudo: sudo})
				if err != nil || string(res.Stdout) != payload {
					t.Errorf("sudo %v: %v\n%s", sudo, err, res.Stdout)
				}
			}
		})
	}
}

// kubermatic/kubeone#3153: each hop has a key of its own and takes no other; a
// login ends with the first key that is not the right one.
func TestAKeyForEachHop(t *testing.T) {
	dir, o := t.TempDir(), options(t)
	var config strings.Builder
	var servers []*sshtest.Server
	for i, user := range []string{"jumper0", "jumper1", "ubuntu"} {
		private := sshtest.NewPrivate(t)
		s := sshtest.Start(t, sshtest.Options{User: user, MaxAuthTries: 1, Accept: []ssh.PublicKey{sshtest.Signer(t, private).PublicKey()}})
		fmt.Fprintf(&config, "Host hop%d\n  HostName %s\n  Port %d\n  User %s\n  IdentitiesOnly yes\n  IdentityFile %s\n",
			i, s.Host(), s.Port(), user, sshtest.KeyFile(t, dir, user, private, ""))
		servers = append(servers, s)
	}
	config.WriteString("Host hop2\n  ProxyJump hop0,hop1\n")
	o.ConfigFile = filepath.Join(dir, "config")
	if err := os.WriteFile(o.ConfigFile, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, sshconn.Target{Host: "hop2"}, o)
	if got := c.Info().Address; got != "ubuntu@"+servers[2].Addr {
		t.Errorf("connected to %s", got)
	}
	if n, m := servers[0].Forwards.Load(), servers[1].Forwards.Load(); n != 1 || m != 1 {
		t.Errorf("%d and %d ways through the hops", n, m)
	}
}

// A key with a passphrase and a certificate for it, as a company's login service
// hands them out: the passphrase is asked for once, the certificate is shown first.
func TestALockedKeyWithACertificate(t *testing.T) {
	ca, private, dir := sshtest.NewKey(t), sshtest.NewPrivate(t), t.TempDir()
	cert := certificate(t, ca, sshtest.Signer(t, private), ssh.UserCert, "ubuntu")
	s := sshtest.Start(t, sshtest.Options{MaxAuthTries: 1, Accept: []ssh.PublicKey{cert}})
	tgt := sshconn.Target{Host: s.Host(), Port: s.Port(), User: "ubuntu", IdentityFile: sshtest.KeyFile(t, dir, "id", private, "made-up phrase")}
	sshtest.PublicFile(t, dir, "id-cert.pub", cert)
	o, asked := options(t), 0
	o.Passphrase = func(_ context.Context, file string) ([]byte, error) {
		asked++
		if file != tgt.IdentityFile {
			t.Errorf("asked for the passphrase of %s", file)
		}
		return []byte("made-up phrase"), nil
	}
	c := dial(t, tgt, o)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if trace := fmt.Sprint(c.Trace()); !strings.Contains(trace, "with certificate made-up") {
		t.Errorf("trace %s", trace)
	}
}

// A machine with an IPv6 address alone, here behind a ProxyCommand: the address
// goes in one piece to ssh -G, the command and known_hosts.
func TestIPv6Address(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
	o := options(t)
	o.ConfigFile = filepath.Join(t.TempDir(), "config")
	note := filepath.Join(t.TempDir(), "note")
	text := fmt.Sprintf("Host *\n ProxyCommand sh -c 'echo $0 $1 >>%s; exec %s proxy %s %d' %%h %%p\n", note, os.Args[0], s.Host(), s.Port())
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{22, 2222} {
		tgt := target(t, s)
		tgt.Host, tgt.Port = "2001:db8::5", port
		c := dial(t, tgt, o)
		if got, want := c.Info().Address, "ubuntu@"+net.JoinHostPort(tgt.Host, fmt.Sprint(port)); got != want {
			t.Errorf("connected to %s, want %s", got, want)
		}
	}
	if data, err := os.ReadFile(note); err != nil || string(data) != "2001:db8::5 22\n2001:db8::5 2222\n" {
		t.Errorf("the command was given %q (%v)", data, err)
	}
	data, err := os.ReadFile(o.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		names = append(names, strings.Fields(line)[0])
	}
	if got := strings.Join(names, " "); got != "2001:db8::5 [2001:db8::5]:2222" {
		t.Errorf("known_hosts has %s", got)
	}
}
