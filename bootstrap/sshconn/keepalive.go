package sshconn

import (
	"context"
	"fmt"
	"time"
)

// defaultKeepalive: a question each 15 s, an answer within twice that; a dead
// peer is noticed within 45 s.
const defaultKeepalive = 15 * time.Second

// keepalive asks the peer for a sign of life until ctx ends, and closes the
// connection when none comes. Any answer counts, also "unknown request".
func (c *Conn) keepalive(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		limit := time.NewTimer(2 * interval)
		select {
		case <-ctx.Done():
			limit.Stop()
			return
		case err := <-answered:
			limit.Stop()
			if err != nil {
				return // the connection ended and says so elsewhere
			}
		case <-limit.C:
			c.lose(fmt.Errorf("no sign of life for %s", 2*interval))
			return
		}
	}
}
