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
	// Rule does what a referee ruled, any Action but a note and an end; it returns
	// when the ruling is in the log, and of a fault when its witness has seen it, or
	// that it is gone. The heat's referees are heard one after the
	// other: a ruling that no longer applies is refused with the reason why, and
	// then changes nothing.
	Rule(ctx context.Context, author string, r Ruling) error
	// Note adds a line to the log.
	Note(ctx context.Context, author, text string) error
	// Attach joins a machine's serial console: reads give what is printed from
	// now on, writes are typed. The seat is marked as touched. Closing it
	// detaches and records of what was typed what the console showed. LoginAt
	// tells how to log in there.
	Attach(ctx context.Context, author, territory, machine string) (io.ReadWriteCloser, error)
	// Sit gives the person who plays a seat a terminal on one of its machines, ""
	// for the first. It leads through the seat's gateway like any player's: it is an
	// action and a recorded session of the seat's agent, and the seat is not
	// touched. A seat that nobody but a script or a model plays has none.
	Sit(ctx context.Context, author, territory, machine string, size Size) (Terminal, error)
}

// Size is a terminal's, in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Terminal is a terminal in a machine. Reads give what is printed, and io.EOF when
// its session has ended; writes are typed; Close ends the session.
type Terminal interface {
	io.ReadWriteCloser
	Resize(Size) error
}

// Login lets a person in at a console. It is for the eyes of whoever attached:
// they may end the heat and are at the machine already, and the socket is their
// user's alone. Nothing may log it or keep it, which is why formatting and
// marshalling it leave the password out.
type Login struct {
	User     string `json:"user"`
	Password string `json:"-"`
}

// String leaves the password out.
func (l Login) String() string { return l.User }

// GoString leaves the password out.
func (l Login) GoString() string { return "control.Login{" + l.User + "}" }

// LoginAt is the login at a console that Attach returned, from either side of a
// socket; false when the desk does not know it.
func LoginAt(console io.ReadWriteCloser) (Login, bool) {
	c, ok := console.(interface{ Login() Login })
	if !ok {
		return Login{}, false
	}
	l := c.Login()
	return l, l != Login{}
}
