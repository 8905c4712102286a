package tui

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/step"
	"refbox/tui/view"
)

// sitScreen is a seat that whoever looks at it plays: first the brief, then a
// terminal in the guest, with the ladder beside it or above.
type sitScreen struct {
	*heat
	territory string
	working   bool // at the terminal, which gets every key
	brief     string
	laid      struct { // the brief, as last laid out
		rows [][]canvas.Cell
		w    int
	}
	first int // line of the brief
	lines int // that it has, and
	rows  int // that are shown
	place control.Size
}

func newSit(h *heat, territory string) *sitScreen {
	s := &sitScreen{heat: h, territory: territory, place: control.Size{Cols: 80, Rows: 24}}
	for i, seat := range h.world.Seats() {
		if seat.ID == territory {
			h.seat = i
		}
	}
	return s
}

// personsSeat is the seat that a person may take now: the chosen one if a person
// plays it, else the one that this person plays, else any; "" for none.
func (h *heat) personsSeat() string {
	if h.desk.Desk == nil {
		return ""
	}
	if s := h.chosen(); s != nil && byPerson(s) {
		return s.ID
	}
	if h.desk.Plays != "" {
		return h.desk.Plays
	}
	for _, s := range h.world.Seats() {
		if byPerson(s) {
			return s.ID
		}
	}
	return ""
}

// byPerson says that a person plays a seat.
func byPerson(s *world.Seat) bool {
	if s.Prepared == nil {
		return false
	}
	adapter, _, _ := strings.Cut(s.Prepared.Adapter, ":")
	return adapter == "human"
}

// sit goes to the person's seat: to its brief, or at once to the terminal there.
func (h *heat) sit(m *model, atOnce bool) tea.Cmd {
	territory := h.personsSeat()
	if territory == "" {
		if h.desk.Desk == nil {
			m.say("this heat is not live here: take a seat in the lobby")
		} else {
			m.say("no person plays in this heat; refbox play ARENA takes a seat")
		}
		return nil
	}
	if h.chair != nil {
		territory = h.chair.territory
	}
	s := newSit(h, territory)
	show := m.push(s)
	if atOnce {
		return tea.Batch(show, s.work(m))
	}
	return show
}

// work sits down at the terminal.
func (s *sitScreen) work(m *model) tea.Cmd {
	s.working = true
	s.play = s.play.Follow()
	return s.takeChair(m, s.territory, s.place)
}

func (s *sitScreen) crumbs() []string { return append(s.heat.crumbs(), s.territory, "your seat") }

func (s *sitScreen) wantsRaw() bool { return s.working }

func (s *sitScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }

func (s *sitScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if s.working {
		return s.toGuest(m, a, raw)
	}
	page := max(1, s.rows-1)
	if by := a.Stride(page, page); by != 0 {
		s.scroll(by)
		return nil
	}
	switch a {
	case keymap.Open, keymap.Detach, keymap.Sit:
		return s.work(m)
	case keymap.Start:
		s.first = 0
	case keymap.End:
		s.scroll(s.lines)
	default:
		return s.act(m, a)
	}
	return nil
}

func (s *sitScreen) scroll(by int) { s.first = max(0, min(s.first+by, s.lines-s.rows)) }

// toGuest gives a key to the guest; the one that leaves goes to the heat's screen,
// and the session waits.
func (s *sitScreen) toGuest(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if a == keymap.Detach {
		s.working = false
		m.pop()
		if s.chair != nil && !s.chair.over.Load() {
			key, _ := m.cfg.Keys.Hint(keymap.Detach)
			m.say(key + " goes back to your terminal, which stays as it is")
		}
		return nil
	}
	b := keyBytes(raw)
	switch c := s.chair; {
	case c != nil && !c.over.Load():
		if len(b) > 0 && !c.press(b) {
			m.say("the machine takes no keys")
		}
	case s.sitDown != nil: // typed ahead
		if len(s.ahead)+len(b) <= typedAhead {
			s.ahead = append(s.ahead, b...)
		}
	case a == keymap.Open: // a session that has ended, or never was
		return s.takeChair(m, s.territory, s.place)
	}
	return nil
}

func (s *sitScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.Open, keymap.Down, keymap.Up, keymap.Why, keymap.Back}
}

// bar is the footer at the terminal: how to get out of it, and what it is.
func (s *sitScreen) bar(keys keymap.Map, c canvas.Canvas) {
	w, _ := c.Size()
	key, _ := keys.Hint(keymap.Detach)
	x := c.Put(1, 0, key, canvas.Fg(canvas.Key).With(canvas.Bold))
	x = c.Put(x+1, 0, "to the heat, and back", canvas.Fg(canvas.Dim)) + 2
	line, st := fitting(w-1-x, "every key goes to the machine; what it shows is recorded", "keys go to the machine; it is recorded", "recorded"), canvas.Fg(canvas.Dim)
	if why := s.closed(keys); why != "" {
		line, st = why, canvas.Fg(canvas.Warn)
	}
	c.PutFit(x, 0, max(0, w-1-x), line, st)
}

// closed says why there is no terminal to type into; "" when there is one.
func (s *sitScreen) closed(keys keymap.Map) string {
	open, _ := keys.Hint(keymap.Open)
	switch {
	case s.chair != nil && !s.chair.over.Load():
		return ""
	case s.sitDown != nil:
		return "waiting for the machine …"
	case s.world.Over():
		return "the heat is over, and the machine with it"
	case s.sitTrouble != "":
		return text.Line(s.sitTrouble) + "; " + open + " tries again"
	}
	return "the session has ended; " + open + " opens another"
}

// Columns of the panel beside the terminal, which has 80 before there is one.
const (
	sitPanelMin = 34
	sitPanel    = 38
	sitPanelMax = 52
)

func (s *sitScreen) draw(c canvas.Canvas) {
	seat := s.world.Seat(s.territory)
	if seat == nil {
		return
	}
	w, h := c.Size()
	main, strip := c.Bounds(), canvas.Rect{}
	if w >= 82+sitPanelMin && h >= 16 {
		side := min(w-82, max(sitPanel, w/4), sitPanelMax)
		left, right := main.CutLeft(w - side)
		main = left
		s.drawPanel(c, right, seat)
	} else {
		strip, main = main.CutTop(2)
		at := c.Sub(strip)
		s.drawLadder(at, seat)
	}
	said, st := s.verdict(seat)
	if said != "" {
		var row canvas.Rect
		row, main = main.CutTop(1)
		at := c.Sub(row)
		at.Fill(at.Bounds(), ' ', st)
		at.PutFit(1, 0, row.W-2, said, st)
	}
	if !s.working {
		s.drawBrief(c, main, seat)
		return
	}
	if main.W >= 82 && main.H >= 26 {
		main = frameNoted(c, main, canvas.Heavy, "your terminal · "+seat.ID, seat.Agent, canvas.Fg(canvas.Focus))
	} else {
		var row canvas.Rect
		row, main = main.CutTop(1)
		at := c.Sub(row)
		at.HLine(0, 0, row.W, '━', canvas.Fg(canvas.Focus))
		at.PutFit(2, 0, row.W-4, " your terminal · "+seat.ID+" ", canvas.Fg(canvas.Title).With(canvas.Bold))
	}
	s.place = control.Size{Cols: main.W, Rows: main.H}
	at := c.Sub(main)
	if s.chair == nil || s.chair.territory != s.territory {
		line := "waiting for the machine …"
		if s.sitDown == nil {
			line = "no terminal is open here"
		}
		at.PutFit(1, 0, main.W-2, line, canvas.Fg(canvas.Dim))
		return
	}
	s.chair.draw(at, !s.chair.over.Load())
}

// verdict says plainly what the seat has come to; "" while that is open.
func (s *sitScreen) verdict(seat *world.Seat) (string, canvas.Style) {
	good := canvas.Style{Fg: canvas.Ok, Attr: canvas.Bold | canvas.Reverse}
	bad := canvas.Style{Fg: canvas.Warn, Attr: canvas.Bold | canvas.Reverse}
	at := ""
	if seat.Durable != nil {
		at = " at " + view.Clock(seat.Durable.At)
	}
	lost := ""
	if seat.Unavailable != nil {
		lost = ": " + text.Line(seat.Unavailable.Detail)
	}
	first := ""
	if s.world.Winner != nil {
		first = *s.world.Winner
	}
	switch s.about(seat.ID).outcome {
	case world.OutcomeWon:
		if seat.Conquest() {
			return "★ YOU WON: your territory stood longest", good
		}
		return "★ YOU WON: your seat was durable first," + at, good
	case world.OutcomeDeadHeat:
		return "★ DEAD HEAT: your seat was durable" + at + ", not to be told from another", good
	case world.OutcomeDurable:
		return "★ DURABLE" + at + ", but " + first + " was first", good
	case world.OutcomeOutraced:
		if first == "" {
			first = strings.Join(s.world.DeadHeat, " and ")
		}
		return "■ OUTRACED: " + first + " reached durable first", bad
	case world.OutcomeStanding:
		return "■ THE HEAT IS OVER: your territory stands, and did not win: " + s.reason(), bad
	case world.OutcomeIncomplete:
		return "■ THE HEAT IS OVER, and your seat is not durable: " + s.reason(), bad
	case world.OutcomeAborted:
		return "■ THE HEAT WAS ABORTED: " + s.reason(), bad
	case world.OutcomeVoided:
		return "■ THE HEAT WAS VOIDED: it counts for nobody", bad
	case world.OutcomeUnavailable, world.OutcomeEliminated:
		return "✗ YOUR SEAT IS OUT" + lost, bad
	}
	switch {
	case seat.Durable != nil:
		return "★ DURABLE" + at + ": nothing that you do changes it any more", good
	case seat.Unavailable != nil:
		return "✗ YOUR SEAT IS OUT" + lost, bad
	}
	return "", canvas.Style{}
}

// reason is why the heat ended, in the log's words.
func (h *heat) reason() string {
	if h.world.FinishReason == nil {
		return "no reason was given"
	}
	return text.Line(*h.world.FinishReason)
}

// limits says how long there is.
func (s *sitScreen) limits() string {
	if s.manifest == nil {
		return ""
	}
	left := s.limit() - min(s.limit(), s.now)
	if s.world.Over() {
		return "the heat is over"
	}
	return fmt.Sprintf("%s left of %s", clockShort(left), clockShort(s.limit()))
}

// drawPanel draws what stands beside the terminal: the ladder, the time that is
// left, the brief.
func (s *sitScreen) drawPanel(c canvas.Canvas, r canvas.Rect, seat *world.Seat) {
	in := c.Sub(frameNoted(c, r, canvas.Rounded, "ladder", fmt.Sprint(seat.Points), canvas.Fg(canvas.Border)))
	w, h := in.Size()
	rungs := s.about(seat.ID).rungs
	names := rungNames(rungs, w)
	y := 0
	for ; y < len(rungs) && y < h-2; y++ {
		s.drawRung(in, y, names, rungs[y])
	}
	moreRungs(in, y-1, len(rungs)-y)
	blocker := min(3, max(0, h-y))
	s.drawBlocker(in.Sub(canvas.Rect{X: 1, Y: y, W: w - 2, H: blocker}), seat)
	y += blocker
	if y < h {
		in.PutFit(1, y, w-2, s.limits(), canvas.Fg(canvas.Title))
		y++
	}
	if !s.working || h-y < 4 {
		return // the brief is the screen's, or has no room
	}
	in.HLine(0, y, w, '┄', canvas.Fg(canvas.Border))
	y++
	lines := s.briefRows(w - 2)
	for i := 0; i < len(lines) && y < h; i, y = i+1, y+1 {
		if y == h-1 && i < len(lines)-1 {
			in.PutFit(1, y, w-2, "… S in the heat shows the brief", canvas.Fg(canvas.Key))
			break
		}
		in.PutCells(1, y, lines[i])
	}
}

// briefRows are the brief in rows of at most w cells.
func (s *sitScreen) briefRows(w int) [][]canvas.Cell {
	if s.brief == "" {
		data, _, err := s.rec.Artifact(s.territory, "brief.md")
		if err != nil {
			return step.Markdown("no brief was written", w)
		}
		s.brief = string(data)
	}
	if s.laid.rows == nil || s.laid.w != w {
		s.laid.rows, s.laid.w = step.Markdown(s.brief, w), w
	}
	return s.laid.rows
}

// drawBrief draws the brief in full.
func (s *sitScreen) drawBrief(c canvas.Canvas, r canvas.Rect, seat *world.Seat) {
	in := frameNoted(c, r, canvas.Heavy, "your brief · "+seat.ID, s.limits(), canvas.Fg(canvas.Focus))
	at := c.Sub(in)
	lines := s.briefRows(min(100, in.W-4))
	s.lines, s.rows = len(lines), max(1, in.H-2)
	s.scroll(0)
	for y := 0; y < s.rows && s.first+y < len(lines); y++ {
		at.PutCells(2, y, lines[s.first+y])
	}
	if more := len(lines) - s.first - s.rows; more > 0 {
		at.PutRight(in.W-1, in.H-1, 24, fmt.Sprintf(" %s more ↓ ", view.Plural(more, "line")), canvas.Fg(canvas.Key))
	}
	at.PutFit(2, in.H-1, in.W-28, "enter sits down at a terminal in your machine", canvas.Fg(canvas.Accent))
}
