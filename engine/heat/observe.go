package heat

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"refbox/engine/agent"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// console opens the record of a machine's console.
func (s *seat) console(machine string) io.Writer {
	c, err := s.heat.rec.Console(s.id(), machine)
	if err != nil {
		slog.Warn("a console is not recorded", "territory", s.id(), "machine", machine, "error", err)
		return io.Discard
	}
	w := &watched{to: c, seat: s, mask: s.mask(), eye: text.Detector{Screen: true}}
	s.consoles.Store(machine, w)
	return w
}

// watched is a console whose output is looked through. Its machine writes to it
// from one goroutine, and is never held up or failed: what is not kept is drained
// all the same.
type watched struct {
	to   *recording.CastWriter
	seat *seat
	mask mask
	eye  text.Detector
	seen bool
	full bool // nothing is kept any more
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.seen {
		if what := w.eye.Scan(p); what != "" {
			w.seen = true
			w.seat.hostile.saw(inConsole, what)
		}
	}
	if !w.full {
		w.keep(w.mask.pass(p))
	}
	return len(p), nil
}

func (w *watched) keep(p []byte) {
	if w.full = !w.seat.budget.take(onDisk(p)); w.full {
		p = []byte("\r\n[refbox: the record of this console ends here: the seat's " + recordsFull + "]\r\n")
	}
	w.to.Write(p) //nolint:errcheck // never fails
}

// recordsFull is why something is not kept, after "the seat's" or "the".
const recordsFull = "budget of what is recorded is used up"

// endConsoles keeps what is held of consoles whose machines have ended.
func (s *seat) endConsoles() {
	s.consoles.Range(func(_, w any) bool {
		if w := w.(*watched); !w.full {
			w.keep(w.mask.rest())
		}
		return true
	})
}

// mask hides the seat's password in one stream.
func (s *seat) mask() mask { return mask{secret: []byte(s.password)} }

// masked hides the seat's password in a whole text.
func (s *seat) masked(text string) string {
	if s.password == "" {
		return text
	}
	return strings.ReplaceAll(text, s.password, strings.Repeat("*", len(s.password)))
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
	bare     map[uint64]bool // running actions whose session is not recorded
}

func (o *observer) ActionStarted(a agent.Action) {
	o.s.hostile.saw(inAction, a.Hostile)
	if !a.SelfReported { // that would be the guest's word
		o.s.decoys.saw(decoyInAction, fmt.Sprintf("action %d, %s", a.Number, a.Channel), []byte(a.Command))
	}
	if !o.s.budget.action(a.Number) {
		return
	}
	o.s.budget.take(len(a.Command)) // the command is kept anyway
	o.s.heat.say(event.AgentActionStarted{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: a.Number, Channel: a.Channel, Machine: a.Machine,
		Command: o.s.masked(a.Command), SelfReported: a.SelfReported, Session: o.path(a)})
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
	if a.SelfReported && a.Channel != agent.ChannelTerminal {
		return ""
	}
	if !o.s.budget.session() {
		o.bare[a.Number] = true
		return ""
	}
	cast, path, err := o.s.heat.rec.Session(o.s.id(), 80, 24)
	if err != nil {
		slog.Warn("a session is not recorded", "territory", o.s.id(), "error", err)
		return ""
	}
	o.sessions[a.Session] = &session{seat: o.s, cast: cast, path: path, out: o.s.mask(), in: o.s.mask(), sent: stream{d: o.s.decoys}, over: func() { o.forget(a.Session) }}
	return path
}

func (o *observer) forget(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sessions, number)
}

func (o *observer) ActionEnded(uint64, string) {
	if r := o.s.heat.contest(); r != nil {
		r.Nudge(o.s.id())
	}
}

func (o *observer) ActionFinished(f agent.Finish) {
	o.s.hostile.saw(inAction, f.Hostile)
	o.mu.Lock()
	bare := o.bare[f.Number]
	delete(o.bare, f.Number)
	o.mu.Unlock()
	if !o.s.budget.action(f.Number) {
		return
	}
	why := ""
	if bare {
		why = "the session is not recorded: the seat's " + recordsFull
	}
	if !o.s.budget.take(len(f.Output)) && f.Output != "" {
		f.Output, why = "", "the output is not kept: the seat's "+recordsFull
	}
	if f.Detail != "" && why != "" {
		why = "; " + why
	}
	o.s.heat.say(event.AgentActionFinished{Territory: o.s.id(), Agent: o.s.arena.Agent.ID, Action: f.Number, Exit: f.Exit,
		TookMS: uint64(max(0, f.Took.Milliseconds())), Output: o.s.masked(f.Output), Bytes: f.Bytes, Detail: o.s.masked(f.Detail) + why})
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

// session is a cast as a gateway writes it; an exit is its action's.
type session struct {
	seat    *seat
	cast    *recording.CastWriter
	path    string
	out, in mask
	sent    stream
	full    bool // nothing is kept any more
	over    func()
}

func (c *session) Event(code byte, data []byte) {
	switch code {
	case agent.CastOutput:
		data = c.out.pass(data)
	case agent.CastInput:
		c.sent.saw("a session, "+c.path, data)
		data = c.in.pass(data)
	}
	c.keep(code, data)
}

func (c *session) keep(code byte, data []byte) {
	if c.full || len(data) == 0 {
		return
	}
	if c.full = !c.seat.budget.take(onDisk(data)); c.full {
		c.cast.Marker("the record ends here: the seat's " + recordsFull)
		return
	}
	switch code {
	case agent.CastOutput:
		c.cast.Write(data) //nolint:errcheck // never fails
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
	c.keep(agent.CastOutput, c.out.rest())
	c.keep(agent.CastInput, c.in.rest())
	c.sent.end("a session, " + c.path)
	c.over()
	return c.cast.Close()
}
