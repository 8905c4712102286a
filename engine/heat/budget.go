package heat

import (
	"fmt"
	"sync"
)

// What is recorded of one seat is bounded, so that no seat can fill the disk.
// These are all the bounds of a seat as a whole; those of a single session are
// engine/agent's, of a single console engine/recording's, and of evidence
// engine/referee's. An honest seat stays far below: a heat of the bundled arena
// records less than 1 MiB and 200 actions of a seat.
//
// Whatever is reached, the seat plays on as before, and so does everybody else:
// its sessions work, its consoles are drained, its actions are observed and cause
// evaluations, and verdicts have their evidence. What is left out says so where it
// would be.
type limits struct {
	// bytes is for consoles, sessions, commands, outputs, evidence and what a player
	// leaves together, as they are on the disk. Beyond it records of terminals end,
	// and outputs, the evidence of failed attempts and a player's artefacts are not
	// kept.
	bytes int
	// sessions have a record each, which is a file. Later ones have none.
	sessions int
	// actions (sessions, forwards, announced commands, refusals) are in the log.
	// Of later ones every listedEvery-th is; the numbers tell how many there were.
	actions uint64
}

var seatLimits = limits{bytes: 128 << 20, sessions: 2000, actions: 5000}

const listedEvery = 1000

// budget is what may still be recorded of a seat.
type budget struct {
	limits limits

	mu       sync.Mutex
	bytes    int // recorded
	full     bool
	sessions int    // recorded
	limit    string // the one that was reached first; "" for none
	detail   string
	tell     func(limit, detail string)
}

// take asks for room for n bytes. Once it was refused it always is.
func (b *budget) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full = b.full || b.bytes+n > b.limits.bytes; b.full {
		b.reached("recorded_bytes", fmt.Sprintf("%d bytes of the seat are recorded; further output, input and artefacts are not", b.bytes))
		return false
	}
	b.bytes += n
	return true
}

// session asks for another session's record.
func (b *budget) session() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return false
	}
	if b.sessions >= b.limits.sessions {
		b.reached("recorded_sessions", fmt.Sprintf("%d sessions of the seat are recorded; further ones are not", b.sessions))
		return false
	}
	b.sessions++
	return true
}

// action tells whether the action of that number is listed.
func (b *budget) action(number uint64) bool {
	if number <= b.limits.actions {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached("recorded_actions", fmt.Sprintf("%d actions of the seat are listed; of further ones every %dth is", b.limits.actions, listedEvery))
	return number%listedEvery == 0
}

// reached tells the log of the first limit; what a later one leaves out says so
// itself. b.mu is held.
func (b *budget) reached(limit, detail string) {
	if b.limit != "" {
		return
	}
	b.limit, b.detail = limit, detail
	if b.tell != nil {
		b.tell(limit, detail)
	}
}

// open tells what was reached before the log was open, and from now on at once.
func (b *budget) open(tell func(limit, detail string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = tell
	if b.limit != "" {
		tell(b.limit, b.detail)
	}
}

// close ends it: the log takes no more.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = nil
}

// onDisk is about how long p is in a cast: a control takes six bytes there, and
// a frame has a clock.
func onDisk(p []byte) int {
	n := 24 + len(p)
	for _, c := range p {
		switch {
		case c < ' ' || c == 0x7f:
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}
