//go:build !windows

package sshconn

import (
	"context"
	"io"
	"net"
)

// platformAgent is the agent where SSH_AUTH_SOCK is not set: none.
func platformAgent() string { return "" }

func dialAgent(ctx context.Context, socket string) (io.ReadWriteCloser, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
