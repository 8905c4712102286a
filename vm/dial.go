package vm

import (
	"context"
	"errors"
	"net"
	"time"
)

// Dial connects to a port of the host that leads to a guest (see Machine.Addr).
//
// QEMU listens on it with a queue of one connection, which a few that come at the
// same time overflow while it is busy. The kernel drops what does not fit, and asks
// again for the connection only a second later; Dial does so at once. An error is
// that of the last attempt, or a timeout when ctx ended first.
func Dial(ctx context.Context, addr string) (net.Conn, error) {
	for {
		// A port with room in its queue takes a connection in microseconds.
		try, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		c, err := new(net.Dialer).DialContext(try, "tcp", addr)
		cancel()
		var timeout net.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &timeout) || !timeout.Timeout() {
			return c, err
		}
	}
}
