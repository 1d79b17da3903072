package sshconn

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
)

// platformAgent is the named pipe of Windows' own agent.
func platformAgent() string { return `\\.\pipe\openssh-ssh-agent` }

func dialAgent(ctx context.Context, socket string) (io.ReadWriteCloser, error) {
	if strings.HasPrefix(socket, `\\.\pipe\`) {
		return os.OpenFile(socket, os.O_RDWR, 0)
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
