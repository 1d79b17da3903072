// Package notify tells systemd that the service is up.
package notify

import (
	"net"
	"os"
)

// Ready sends READY=1 to the service manager, if there is one.
func Ready() error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("READY=1\n"))
	return err
}
