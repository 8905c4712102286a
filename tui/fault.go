package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/control"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/topology"
	"refbox/tui/view"
)

// faultSign stands for a fault wherever one is shown; faultShade for the time that it
// was on a seat.
const (
	faultSign  = '↯'
	faultShade = '▒'
)

// faultScreen is where a referee hurts a seat: the faults that are on it, to be cleared,
// and the kinds that can be injected. What the chosen one does, and what is proved of
// it, stands below before anything is asked, and again before it is confirmed.
type faultScreen struct {
	*heat
	chosen int
	first  int
}

// openFaults goes to the faults of a live heat.
func (h *heat) openFaults(m *model) tea.Cmd {
	if h.desk.Desk == nil || !h.rec.Live() {
		m.say("this heat is not live here: nothing can be hurt")
		return nil
	}
	return m.push(&faultScreen{heat: h})
}

func (s *faultScreen) crumbs() []string { return append(s.heat.crumbs(), "fault") }

// active are the faults on the chosen seat.
func (s *faultScreen) active() []world.Fault {
	if seat := s.heat.chosen(); seat != nil {
		return seat.ActiveFaults()
	}
	return nil
}

func (s *faultScreen) rows() (on []world.Fault, kinds []control.FaultKind) {
	return s.active(), control.FaultKinds()
}

func (s *faultScreen) draw(c canvas.Canvas) {
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	seat, name := s.heat.chosen(), ""
	if seat != nil {
		name = "seat " + seat.ID
	}
	in := c.Sub(c.Frame(top, canvas.Heavy, "faults · "+text.Line(s.desk.Author), name, canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	on, kinds := s.rows()
	n := len(on) + len(kinds)
	s.chosen = max(0, min(s.chosen, n-1))
	about := s.aboutChosen(on, kinds, w-4)
	rows := max(1, min(n, h-len(about)-1))
	s.first = max(min(s.first, s.chosen, n-rows), s.chosen-rows+1, 0)
	for y := range rows {
		i := s.first + y
		if i < len(on) {
			f := on[i]
			in.Set(1, y, faultSign, canvas.Fg(canvas.Bad).With(canvas.Bold))
			x := in.PutFit(3, y, w-4, "clear "+f.Fault+" on "+f.Target, canvas.Fg(canvas.Title))
			in.PutFit(x+2, y, max(0, w-3-x), fmt.Sprintf("%s for %s, by %s", f.State, view.Span(s.now-min(s.now, f.InjectedMS)), f.Author), canvas.Fg(canvas.Warn))
		} else {
			k := kinds[i-len(on)]
			st, does := canvas.Fg(canvas.Text), control.Fault{Kind: k}.Describe().Does
			if lacks := s.lacks(k); lacks != "" {
				st, does = canvas.Fg(canvas.Dim), "– "+lacks
			}
			in.PutFit(3, y, 20, string(k), st)
			in.PutFit(22, y, max(0, w-23), does, canvas.Fg(canvas.Dim))
		}
		if i == s.chosen {
			view.Choose(in, y)
		}
	}
	y := rows + 1
	for _, l := range about {
		if y >= h {
			break
		}
		x := in.Put(2, y, l.label, canvas.Fg(canvas.Dim))
		in.PutFit(x, y, max(0, w-1-x), l.text, l.st)
		y++
	}
	if y++; y+1 < h && seat != nil {
		s.drawPast(in.Sub(canvas.Rect{X: 0, Y: y, W: w, H: h - y}), seat)
	}
}

type aboutLine struct {
	label, text string
	st          canvas.Style
}

// aboutChosen says of the chosen row what it does and proves, in w columns.
func (s *faultScreen) aboutChosen(on []world.Fault, kinds []control.FaultKind, w int) (out []aboutLine) {
	add := func(label, words string, st canvas.Style) {
		for i, l := range text.Wrap(words, max(10, w-len(label))) {
			if i > 0 {
				label = strings.Repeat(" ", len(label))
			}
			out = append(out, aboutLine{label, l, st})
		}
	}
	f := control.Fault{}
	if s.chosen < len(on) {
		x := on[s.chosen]
		f.Kind = control.FaultKind(x.Fault)
		add("", x.Words(), canvas.Fg(canvas.Title))
	} else {
		f.Kind = kinds[s.chosen-len(on)]
	}
	for _, l := range faultWords(f) {
		add(l[0], l[1], canvas.Fg(canvas.Text))
	}
	return out
}

// faultWords say what a fault does, what is proved of it, and how it is undone.
func faultWords(f control.Fault) [][2]string {
	d := f.Describe()
	out := [][2]string{{"does    ", d.Does}, {"proved  ", d.Witness}, {"undone  ", d.Undo}}
	if d.Forgeable != "" {
		out = append(out, [2]string{"forgery ", d.Forgeable})
	}
	return out
}

// drawPast lists the seat's faults, the newest first.
func (s *faultScreen) drawPast(c canvas.Canvas, seat *world.Seat) {
	w, h := c.Size()
	n := seat.Faults.Len()
	if n == 0 {
		c.PutFit(2, 0, w-3, "nothing has hurt this seat", canvas.Fg(canvas.Dim))
		return
	}
	c.Put(2, 0, "so far", canvas.Fg(canvas.Dim))
	for y := 1; y < h && y <= n; y++ {
		f := seat.Faults.At(n - y)
		c.Set(2, y, faultSign, faultStyle(f))
		x := c.Put(4, y, view.Clock(f.InjectedMS), canvas.Fg(canvas.Dim)) + 1
		c.PutFit(x, y, max(0, w-1-x), f.Words()+"; by "+f.Author+": "+f.Reason, canvas.Fg(canvas.Text))
	}
}

// faultStyle is a fault's colour; its words and its shade tell the same.
func faultStyle(f world.Fault) canvas.Style {
	switch f.State {
	case world.FaultInjected, world.FaultConfirmed:
		return canvas.Fg(canvas.Warn).With(canvas.Bold)
	case world.FaultNotCleared:
		return canvas.Fg(canvas.Bad).With(canvas.Bold)
	case world.FaultCleared:
		return canvas.Fg(canvas.Warn)
	}
	return canvas.Fg(canvas.Dim)
}

func (s *faultScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	if by := a.Stride(5, 5); by != 0 {
		s.chosen += by
		return nil
	}
	switch a {
	case keymap.Seat:
		if i := m.seatKey(raw); i >= 0 && i < len(s.world.Seats()) {
			s.seat = i
		}
	case keymap.NextPane, keymap.Right:
		s.turnSeat(1)
	case keymap.PrevPane, keymap.Left:
		s.turnSeat(-1)
	case keymap.Open:
		return s.choose(m)
	case keymap.Fault:
		m.pop()
	default:
		if cmd, moved := s.moveInTime(m, a); moved {
			return cmd
		}
		return s.act(m, a)
	}
	return nil
}

// choose begins to clear the chosen fault, or to inject one of the chosen kind.
func (s *faultScreen) choose(m *model) tea.Cmd {
	seat := s.heat.chosen()
	switch {
	case seat == nil:
		m.say("no seat is known yet")
		return nil
	case s.world.Over():
		m.say("the race is over: nothing is injected any more")
		return nil
	}
	on, kinds := s.rows()
	if s.chosen < len(on) {
		f := on[s.chosen]
		r := control.Ruling{Action: control.ClearFault, Territory: seat.ID, Fault: control.Fault{Kind: control.FaultKind(f.Fault)}, Target: f.Target}
		s.askFaultReason(m, r, "clear "+f.Fault+" on "+f.Target)
		return nil
	}
	f := control.Fault{Kind: kinds[s.chosen-len(on)]}
	if lacks := s.lacks(f.Kind); lacks != "" {
		m.say(string(f.Kind) + ": " + lacks)
		return nil
	}
	r := control.Ruling{Action: control.InjectFault, Territory: seat.ID, Fault: f}
	machines := s.targets(seat.ID)
	if len(machines) == 1 {
		r.Fault.Machine = machines[0]
		s.askParam(m, r, 0)
		return nil
	}
	m.ask("machine: ", nil, func(m *model, value string) tea.Cmd {
		if !slices.Contains(machines, value) {
			m.say("nothing done: the seat has " + strings.Join(machines, ", "))
			return nil
		}
		r.Fault.Machine = value
		s.askParam(m, r, 0)
		return nil
	})
	m.prompt.hint = strings.Join(machines, ", ")
	return nil
}

// lacks says why a kind is none for the chosen seat; "" when it may be.
func (s *faultScreen) lacks(k control.FaultKind) string {
	must, _ := control.FaultParams(k)
	seat := s.heat.chosen()
	if seat == nil || s.manifest == nil || !slices.Contains(must, "link") {
		return ""
	}
	if t, ok := s.manifest.Territory(seat.ID); ok && len(t.Links) == 0 {
		return "the seat has no private link"
	}
	return ""
}

// paramHints say what a parameter is.
var paramHints = map[string]string{
	"unit": "db.service", "port": "its port, if it is forwarded; or nothing", "link": "the link's name", "peer": "the machine at its other end",
	"delay_ms": "50 to 2000, or nothing", "loss_percent": "10 to 90, or nothing", "jump_ms": "3600000, or less than 0 for back", "mib": "64",
}

// askParam asks for the kind's i-th parameter, and after the last how long it lasts.
func (s *faultScreen) askParam(m *model, r control.Ruling, i int) {
	must, may := control.FaultParams(r.Fault.Kind)
	all := append(slices.Clone(must), may...)
	if i >= len(all) {
		s.askLength(m, r)
		return
	}
	m.ask(fmt.Sprintf("%s, %s: ", r.Fault.Kind, all[i]), nil, func(m *model, value string) tea.Cmd {
		if value != "" {
			given := any(value)
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				given = n
			}
			data, err := json.Marshal(map[string]any{all[i]: given})
			if err == nil {
				err = json.Unmarshal(data, &r.Fault)
			}
			if err != nil {
				m.say("nothing done: " + all[i] + " is not " + value)
				return nil
			}
		}
		s.askParam(m, r, i+1)
		return nil
	})
	m.prompt.hint = paramHints[all[i]]
}

func (s *faultScreen) askLength(m *model, r control.Ruling) {
	if err := r.Fault.Check(); err != nil {
		m.say("nothing done: " + err.Error())
		return
	}
	if !r.Fault.Kind.Lasts() {
		s.askFaultReason(m, r, faultTitle(r))
		return
	}
	m.ask(string(r.Fault.Kind)+", for how long: ", nil, func(m *model, value string) tea.Cmd {
		if value != "" {
			by, err := time.ParseDuration(value)
			if err != nil || by <= 0 {
				m.say("nothing done: that is no length of time, as 20s or 5m are")
				return nil
			}
			r.By = by
		}
		s.askFaultReason(m, r, faultTitle(r))
		return nil
	})
	m.prompt.hint = "20s, 5m; nothing: until it is cleared"
}

func faultTitle(r control.Ruling) string {
	s := string(r.Fault.Kind) + " on " + r.Fault.Target() + " of " + r.Territory
	switch {
	case r.By > 0:
		s += " for " + r.By.String()
	case r.Fault.Kind.Lasts():
		s += " until it is cleared"
	}
	return s
}

// askFaultReason asks why, and then, with all that is going to happen in sight, whether.
func (s *faultScreen) askFaultReason(m *model, r control.Ruling, title string) {
	m.ask(string(r.Action)+" "+string(r.Fault.Kind)+", because: ", nil, func(m *model, reason string) tea.Cmd {
		r.Reason = reason
		if err := r.Check(); err != nil {
			m.say("nothing done: " + err.Error())
			return nil
		}
		lines := []string{title}
		for _, l := range faultWords(r.Fault) {
			if r.Action == control.InjectFault || strings.HasPrefix(l[0], "undone") {
				lines = append(lines, strings.TrimSpace(l[0])+": "+l[1])
			}
		}
		if r.Action == control.InjectFault {
			lines = append(lines, "No other seat has it: from its injection to its clearing the seat's clock stands still.")
		}
		m.dialog = &dialog{title: "Confirm", lines: append(lines, "Because: "+r.Reason), answers: []answer{
			{"y", "do it", func(m *model) tea.Cmd { return s.do(m, r, title) }},
			{"esc", "leave it", nil},
		}}
		return nil
	})
}

func (s *faultScreen) do(m *model, r control.Ruling, title string) tea.Cmd {
	done := false
	m.sayWhile("asked: "+title+" …", func() bool { return !done })
	ctx, desk := m.ctx, s.desk
	return safe(func() tea.Msg {
		err := control.Do(ctx, desk, desk.Author, r)
		return doneMsg{err: err, then: func(m *model) tea.Cmd {
			if done = true; err == nil {
				m.say("done: " + title)
			}
			return nil
		}}
	})
}

func (s *faultScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.Down, keymap.Up, keymap.Open, keymap.Seat, keymap.PlayPause, keymap.End, keymap.Back}
}

func (s *faultScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }

// turnSeat goes to another seat.
func (h *heat) turnSeat(by int) {
	if n := len(h.world.Seats()); n > 0 {
		h.seat = (h.seat + by + n) % n
	}
}

// targets are a seat's machines as the log names them.
func (h *heat) targets(territory string) []string {
	if s := h.world.Seat(territory); s != nil && s.Prepared != nil && len(s.Prepared.Machines) > 0 {
		return s.Prepared.Machines
	}
	return []string{"host"}
}

// drawFaults shades the stretches of a lane in which a fault was on its seat. One that
// did not bite has its sign alone.
func (h *heat) drawFaults(c canvas.Canvas, s *world.Seat, end uint64) {
	w, _ := c.Size()
	for _, f := range s.Faults.All() {
		from, to := column(f.InjectedMS, end, w), column(h.now, end, w)
		if f.EndedMS != nil {
			to = column(*f.EndedMS, end, w)
		} else if ms := h.world.FinishedMS; ms != nil {
			to = column(min(h.now, *ms), end, w)
		}
		if f.Bit() || f.On() {
			c.HLine(from, 0, max(1, to-from+1), faultShade, faultStyle(f))
			continue
		}
		c.Set(from, 0, faultSign, faultStyle(f))
	}
}

// hurtNodes are the nodes of the picture that stand for the machines that a fault is on:
// those of its name, or, where a seat has one machine, the host's.
func (h *heat) hurtNodes(seat *world.Seat) (ids []string) {
	alone := len(h.targets(seat.ID)) == 1
	for _, f := range seat.ActiveFaults() {
		machine := strings.FieldsFunc(f.Target, func(r rune) bool { return r == '/' || r == '→' })
		for _, n := range h.picture().Nodes {
			if len(machine) > 0 && (n.ID == machine[0] || alone && n.Kind == string(topology.Host)) {
				ids = append(ids, n.ID)
			}
		}
	}
	return ids
}
