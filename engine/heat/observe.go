package heat

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"refbox/engine/agent"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// maxSessions bounds the files that a player can make us write; what comes after
// is observed, and not recorded.
const maxSessions = 2000

// console opens the record of a machine's console.
func (s *seat) console(machine string) io.Writer {
	c, err := s.heat.rec.Console(s.id(), machine)
	if err != nil {
		slog.Warn("a console is not recorded", "territory", s.id(), "machine", machine, "error", err)
		return io.Discard
	}
	return &watched{to: c, seat: s, eye: text.Detector{Screen: true}}
}

// watched is a console whose output is looked through. Its machine writes to it
// from one goroutine.
type watched struct {
	to   io.Writer
	seat *seat
	eye  text.Detector
	seen bool
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.seen {
		if what := w.eye.Scan(p); what != "" {
			w.seen = true
			w.seat.hostile.saw(inConsole, what)
		}
	}
	return w.to.Write(p)
}

func (s *seat) recordDir() string { return filepath.Join(s.heat.rec.Dir(), "seats", s.id()) }

// Places where hostile output is found, in the words of design: section 3. The
// referee has the fourth, evidence.
const (
	inConsole = "console"
	inAction  = "action"
	inResult  = "result"
)

// hostile tells the log, once for each place, that something of a seat's would
// have driven the user's terminal.
type hostile struct {
	mu   sync.Mutex
	seen map[string]string // what was found first, by place
	tell func(where, what string)
}

func (h *hostile) saw(where, what string) {
	if what == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.seen[where]; ok {
		return
	}
	if h.seen == nil {
		h.seen = map[string]string{}
	}
	h.seen[where] = what
	if h.tell != nil {
		h.tell(where, what)
	}
}

// open tells what was found before the log was open, and from now on at once.
func (h *hostile) open(tell func(where, what string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell = tell
	for _, where := range []string{inConsole, inAction, inResult} {
		if what, ok := h.seen[where]; ok {
			tell(where, what)
		}
	}
}

// close ends it: the log takes no more.
func (h *hostile) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell = nil
}

// observer tells the log what a gateway sees.
type observer struct {
	s  *seat
	mu sync.Mutex
	// Sessions that are recorded, by the gateway's number: from their action's
	// start to their own end.
	sessions map[uint64]*session
	begun    int
}

func (o *observer) ActionStarted(a agent.Action) {
	o.s.hostile.saw(inAction, a.Hostile)
	o.s.heat.say(event.AgentActionStarted{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: a.Number, Channel: a.Channel, Machine: a.Machine,
		Command: a.Command, SelfReported: a.SelfReported, Session: o.path(a)})
}

// path is where an action's session is recorded, "" when it is not. An action
// that was announced within a session has that one's.
func (o *observer) path(a agent.Action) string {
	if a.Session == 0 {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.sessions[a.Session]; c != nil {
		return c.path
	}
	if a.SelfReported || o.begun >= maxSessions {
		return ""
	}
	o.begun++
	if o.begun == maxSessions {
		slog.Warn("further sessions are not recorded", "territory", o.s.id(), "sessions", maxSessions)
	}
	cast, path, err := o.s.heat.rec.Session(o.s.id(), 80, 24)
	if err != nil {
		slog.Warn("a session is not recorded", "territory", o.s.id(), "error", err)
		return ""
	}
	o.sessions[a.Session] = &session{cast: cast, path: path, over: func() { o.forget(a.Session) }}
	return path
}

func (o *observer) forget(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, number)
}

func (o *observer) ActionEnded(uint64, string) {
	if r := o.s.heat.race.Load(); r != nil {
		r.Nudge(o.s.id())
	}
}

func (o *observer) ActionFinished(f agent.Finish) {
	o.s.heat.say(event.AgentActionFinished{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: f.Number, Exit: f.Exit,
		TookMS: uint64(max(0, f.Took.Milliseconds())), Output: f.Output, Bytes: f.Bytes, Detail: f.Detail})
	o.s.hostile.saw(inAction, f.Hostile)
}

func (o *observer) SessionStarted(s agent.Session) agent.Cast {
	o.mu.Lock()
	c := o.sessions[s.Number]
	o.mu.Unlock()
	if c == nil {
		return nil
	}
	c.cast.Resize(s.Width, s.Height)
	return c
}

// session is a cast as a gateway writes it. What was typed after a password
// prompt is not among it; an exit is its action's.
type session struct {
	cast *recording.CastWriter
	path string
	over func()
}

func (c *session) Event(code byte, data []byte) {
	switch code {
	case agent.CastOutput:
		c.cast.Write(data)
	case agent.CastInput:
		c.cast.Input(data)
	case agent.CastMarker:
		c.cast.Marker(string(data))
	case agent.CastResize:
		var w, h int
		if n, err := fmt.Sscanf(string(data), "%dx%d", &w, &h); n == 2 && err == nil {
			c.cast.Resize(w, h)
		}
	}
}

func (c *session) Close() error {
	c.over()
	return c.cast.Close()
}
