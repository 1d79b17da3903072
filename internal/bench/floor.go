//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"
)

// Floor does the least that a run can: to all machines at once it connects,
// logs in and sends the scripts that the product sent, one after another, over
// the plain library. It parses nothing, plans nothing and asks no API.
func Floor(ctx context.Context, site Site, ports []int, hostKey string, server, other [][]byte) (Cost, error) {
	before := usage()
	text, err := os.ReadFile(site.Key)
	if err != nil {
		return Cost{}, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return Cost{}, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		return Cost{}, err
	}
	login := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(key)}
	group, ctx := errgroup.WithContext(ctx)
	for i, port := range ports {
		scripts := other
		if i == 0 {
			scripts = server
		}
		group.Go(func() error { return least(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), login, scripts) })
	}
	err = group.Wait()
	return usage().since(before), err
}

// least is one machine's share.
func least(ctx context.Context, address string, login *ssh.ClientConfig, scripts [][]byte) error {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, address, login)
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	client := ssh.NewClient(conn, channels, requests)
	for _, script := range scripts {
		if err := send(client, script); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", address, err), client.Close())
		}
	}
	return client.Close()
}

// send runs one script without waiting for what it need not wait for.
func send(client *ssh.Client, script []byte) error {
	ch, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		return err
	}
	go ssh.DiscardRequests(requests)
	if _, err := ch.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{"/bin/sh"})); err != nil {
		return err
	}
	if _, err := ch.Write(script); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, ch)
	if err == nil && n == 0 {
		err = errors.New("no answer")
	}
	return err
}
