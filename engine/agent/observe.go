package agent

import "time"

// Observer is told what goes through a gateway. Its methods are called from
// several goroutines, must not block for long (they delay that seat's player),
// and must not call the gateway back. All text is sanitised and bounded.
type Observer interface {
	// ActionStarted is called in the order of the actions' numbers.
	ActionStarted(Action)
	// ActionEnded is called as soon as it is known that an action has ended,
	// before what it left on the wire has drained: the moment to evaluate.
	// Once per action, before ActionFinished.
	ActionEnded(action uint64, machine string)
	// ActionFinished is called exactly once for each ActionStarted, after it.
	ActionFinished(Finish)
	// SessionStarted opens the recording of an exec or interactive session.
	// Nil records nothing.
	SessionStarted(Session) Cast
}

// Channels of an action, as the log names them.
const (
	ChannelExec      = "exec"
	ChannelShell     = "shell"
	ChannelSFTP      = "sftp"
	ChannelForward   = "forward"
	ChannelAnnounced = "announced"
)

// Action is something that a player began to do.
type Action struct {
	Number  uint64 // from 1, per seat
	Channel string // one of the Channel constants
	Machine string
	Command string // as on the wire, sanitised, at most 4 KiB
	// Session is the number of the session's recording, 0 for none. An announced
	// action has that of the session that it was announced in.
	Session      uint64
	SelfReported bool   // announced by the guest's shell
	Hostile      string // what in it would have driven a terminal; "" for nothing
}

// Finish is how an action ended.
type Finish struct {
	Number  uint64
	Machine string
	Exit    *int // 128+n when killed by signal n; nil when the session broke or has no exit
	Took    time.Duration
	Output  string // both streams' head and tail, sanitised, at most 4 KiB
	Bytes   uint64 // of output on the wire
	Detail  string // why there is no exit, what was refused, what was left out
	Hostile string // what in its output would have driven a terminal; "" for nothing
}

// Session is an exec or interactive session that is about to be recorded.
type Session struct {
	Number  uint64 // from 1, per seat: session-N.cast
	Machine string
	Command string // in full as on the wire, not sanitised; "" for a shell
	Term    string // the client's terminal type; "" without a terminal
	Width   int    // columns; 80 without a terminal
	Height  int    // rows; 24 without a terminal
}

// Codes of a cast's events: those of asciicast.
const (
	CastOutput = 'o' // what a terminal would have shown, stderr included
	CastInput  = 'i' // standard input; of a terminal only lines that it showed, each when its echo ended
	CastResize = 'r' // data is "COLUMNSxROWS"
	CastMarker = 'm' // data is a remark of the gateway
	CastExit   = 'x' // data is the exit status in decimal
)

// Cast records one session. Its methods are called by one goroutine at a time
// and must not keep the slice. Data are raw bytes from the wire: hostile, but
// never cut inside a UTF-8 sequence; lone line feeds of a session without a
// terminal come with their carriage return. The time of an event is the time of the call. Errors are
// remembered by the cast, not reported here: a full disk must not stop a
// player.
type Cast interface {
	Event(code byte, data []byte)
	Close() error
}
