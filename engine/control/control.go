// Package control is what a person may do to a running heat. Everything else
// about a heat is read from its folder; this is the only way back in.
//
// The heat's owner implements Desk. Serve offers one to other processes over a
// Unix socket in the runtime directory, and Dial reaches it; both ends behave
// the same, which one test holds. Every call leaves an event with its author,
// so nothing that a person does is invisible in the recording.
package control

import (
	"context"
	"io"
)

// Desk is the referee's desk of one running heat.
type Desk interface {
	// End finishes the heat as aborted: machines are ended after the log is
	// closed properly. Reason and author go into the log.
	End(ctx context.Context, author, reason string) error
	// Note adds a line to the log.
	Note(ctx context.Context, author, text string) error
	// Attach joins a machine's serial console: reads give what is printed from
	// now on, writes are typed. The seat is marked as touched. Closing it
	// detaches and records what was typed.
	Attach(ctx context.Context, author, territory, machine string) (io.ReadWriteCloser, error)
}
