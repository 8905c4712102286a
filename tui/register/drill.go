package register

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/drill"
	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// Drills are what heats the register's drills can be.
type Drills struct {
	// File is the register's; "" for one that is no file, of which nothing can be kept.
	File string
	// Machines say on what a heat is raced: "real machines", "simulated machines".
	Machines string
	// Arenas are those that could be raced, and what of them could not be read. It is
	// called beside the screen.
	Arenas func() ([]drill.Arena, []string)
	// Result is what came of the heat that was raced last; nil for none.
	Result *Result
}

// Result is what came of a heat, for the register.
type Result struct {
	Store, Scenario string // what was chosen when it was raced
	Lines           []string
	// Diff is the change to the register's file, unified; "" for none.
	Diff string
	// Keep makes the change. It is called beside the screen, at most once.
	Keep func() error
	// Kept says that it was made.
	Kept bool
}

// drillPane proposes a heat, and shows what came of it.
type drillPane struct {
	textPane
	asked    pane // where d was pressed
	question drill.Question
	loaded   bool
	arenas   []drill.Arena
	trouble  []string
	result   *Result
	shown    bool // the change was shown by enter: the next one makes it
	busy     bool

	answer drill.Proposal // made for:
	of     answered
}

// answered is what a proposal was made of.
type answered struct {
	r        *reading
	question drill.Question
	loaded   bool
}

// showResult opens the pane with what came of a heat, and chooses what it was about.
func (s *Screen) showResult(r *Result) {
	s.matrix.goTo(s.r, r.Store, r.Scenario)
	s.drill.result, s.side, s.focus = r, drills, drills
}

// toggleDrill proposes the heat for what is under the cursor, or closes the pane.
func (s *Screen) toggleDrill(h view.Host) tea.Cmd {
	if s.side == drills && s.focus == drills {
		s.Back()
		return nil
	}
	at := s.focus
	if at != findings && at != store {
		at = matrix
	}
	q, ok := s.asking(at)
	if !ok {
		h.Say("choose a cell, a finding, or a line of a runbook that a rule is about")
		return nil
	}
	s.drill.asked, s.drill.question, s.drill.result, s.drill.shown = at, q, nil, false
	s.matrix.goTo(s.r, q.Store, q.Scenario)
	s.side, s.focus = drills, drills
	if s.drill.loaded || s.src.Drills == nil || s.src.Drills.Arenas == nil {
		return nil
	}
	return h.Beside(func(context.Context) (func(view.Host) tea.Cmd, error) {
		arenas, trouble := s.src.Drills.Arenas()
		return func(view.Host) tea.Cmd {
			s.drill.loaded, s.drill.arenas, s.drill.trouble = true, arenas, trouble
			return nil
		}, nil
	})
}

// asking is what a heat is wanted for: the chosen finding, the first finding that a
// line of the store's runbooks is about, or the chosen cell.
func (s *Screen) asking(at pane) (drill.Question, bool) {
	q := drill.Question{Store: s.storeID()}
	switch at {
	case findings:
		f := s.findings.chosen(s.r)
		if f == nil {
			return q, false
		}
		return drill.Question{Store: f.StoreID, Code: f.Code, Migration: deref(f.MigrationID)}, true
	case store:
		if s.store.at >= len(s.store.lines) {
			return q, false
		}
		for _, code := range s.store.lines[s.store.at].ask {
			for _, i := range s.r.of[q.Store] {
				if f := &s.r.rows[i]; f.Code == code && f.mark != closed {
					q.Code, q.Migration = code, deref(f.MigrationID)
					return q, true
				}
			}
		}
		return q, false
	}
	doc := s.r.now.Document()
	if q.Store == "" || s.matrix.scenario.at >= len(doc.Scenarios) {
		return q, false
	}
	q.Scenario = doc.Scenarios[s.matrix.scenario.at].ID
	return q, true
}

// propose answers the question of the register as the file is.
func (s *Screen) propose() drill.Proposal {
	d := &s.drill
	if of := (answered{s.r, d.question, d.loaded}); of != d.of {
		d.of, d.answer = of, drill.Propose(s.r.base.Document(), d.question, d.arenas)
	}
	return d.answer
}

// race leaves for the proposed heat, or keeps what came of the last one.
func (s *Screen) race(h view.Host) tea.Cmd {
	if r := s.drill.result; r != nil {
		return s.keep(h, r)
	}
	p := s.propose()
	racer, ok := h.(view.Racer)
	switch {
	case s.src.Drills != nil && s.src.Drills.Arenas != nil && !s.drill.loaded:
		h.Say("reading the arenas …")
	case p.Arena == "":
		h.Say("there is no heat to race for it; the pane says why")
	case s.src.Drills.File == "":
		h.Say("this register is no file of yours: refbox register init FILE makes one, and keeps what its heats show")
	case !ok:
		h.Say("no heat can be raced from here")
	default:
		r := view.Race{Arena: p.Arena, Register: s.src.Drills.File, Store: p.Store, Scenario: s.drill.question.Scenario}
		for _, a := range s.drill.arenas {
			if a.Name == p.Arena {
				r.Starts = view.Starts(a.Manifest, s.src.Drills.Machines)
			}
		}
		return racer.Race(r)
	}
	return nil
}

func (s *Screen) keep(h view.Host, r *Result) tea.Cmd {
	switch {
	case r.Kept:
		h.Say("it is in the register")
		return nil
	case r.Diff == "" || r.Keep == nil:
		h.Say("there is nothing to add")
		return nil
	case s.drill.busy:
		return nil
	case !s.drill.shown:
		s.drill.shown = true
		s.drill.at = 0
		s.drill.jump(1)
		h.Say("this is the change to " + text.Line(s.src.Name) + ": enter makes it, esc does not")
		return nil
	}
	s.drill.busy = true
	return h.Beside(func(context.Context) (func(view.Host) tea.Cmd, error) {
		err := r.Keep()
		return func(h view.Host) tea.Cmd {
			s.drill.busy = false
			if err != nil {
				h.Say(text.Line(err.Error()))
				return nil
			}
			r.Kept = true
			h.Say("added to " + text.Line(s.src.Name))
			return nil
		}, nil
	})
}

func (s *Screen) drawDrill(c canvas.Canvas, r canvas.Rect, k lineKey, focused bool) {
	d := &s.drill
	k.store = -1
	name, note := "drill", ""
	if x := d.result; x != nil {
		k.question = fmt.Sprint("result", x.Kept)
		name = "the heat for " + text.Line(x.Store)
		d.show(k, func() []line { return resultLines(x, k.width) })
		switch {
		case x.Kept:
			note = "added"
		case s.drill.shown:
			note = "enter makes the change"
		case x.Diff != "":
			note = "enter shows the change"
		}
		d.draw(c, r, focused, false, name, note)
		return
	}
	k.question = fmt.Sprint(d.question, d.loaded)
	p := s.propose()
	d.show(k, func() []line { return s.proposalLines(p, k.width) })
	if p.Arena != "" && d.loaded {
		note = "enter races it"
	}
	what := string(d.question.Code)
	if d.question.Scenario != "" {
		what = d.question.Scenario
	}
	d.draw(c, r, focused, false, text.Line(name+": "+what), note)
}

func (s *Screen) proposalLines(p drill.Proposal, width int) []line {
	g := page{width: width}
	d := s.src.Drills
	switch {
	case d == nil || d.Arenas == nil:
	case !s.drill.loaded:
		g.row(seg{"reading the arenas …", dim})
		return g.lines
	}
	g.say("", 0, title, "%s", p.Store)
	switch {
	case p.Arena == "" && p.Procedure == "":
		g.row(seg{"✗ no heat", alarm.With(canvas.Bold)})
	case p.Arena == "":
		g.row(seg{"✗ no arena", alarm.With(canvas.Bold)}, seg{" for a " + string(p.Procedure) + " of " + p.Store, plain})
	case p.Rehearses:
		g.row(seg{"◐ a rehearsal", canvas.Fg(canvas.Warn).With(canvas.Bold)}, seg{" of its " + string(p.Procedure) + ", which closes nothing", plain})
	default:
		g.row(seg{"✓ a drill", canvas.Fg(canvas.Ok).With(canvas.Bold)}, seg{" of its " + string(p.Procedure), plain})
	}
	if len(p.Closes) > 0 && !p.Rehearses && p.Arena != "" {
		g.say("closes", 9, plain, "%s", codeList(p.Closes))
	}
	if p.Arena != "" {
		g.say("races", 9, plain, "%s", p.Arena)
		if d != nil && d.Machines != "" {
			g.say("on", 9, plain, "%s", d.Machines)
		}
		if d != nil && strings.HasPrefix(d.Machines, "simulated") {
			g.say("", 9, dim, "%s", "whatever comes of it is a rehearsal")
		}
	}
	g.blank()
	for _, says := range p.Says {
		g.say("", 0, plain, "%s", says)
		g.blank()
	}
	for _, why := range s.drill.trouble {
		g.say("✗", 2, alarm, "%s", why)
	}
	return g.lines
}

func codeList(codes []register.Code) string {
	list := make([]string, len(codes))
	for i, c := range codes {
		list[i] = string(c)
	}
	return strings.Join(list, ", ")
}

func resultLines(r *Result, width int) []line {
	g := page{width: width}
	for i, l := range r.Lines {
		st, sign, n := plain, "", 2
		switch {
		case i == 0:
			st, n = title, 0
		case strings.HasPrefix(l, "closes no"):
			st = dim
		case strings.HasPrefix(l, "closes "):
			st, sign = canvas.Fg(canvas.Ok), "✓"
		case strings.HasPrefix(l, "opens "), strings.Contains(l, " is OVER "), strings.Contains(l, ": failed"):
			st, sign = alarm, "✗"
		case strings.HasPrefix(l, "no drill"):
			st, sign = canvas.Fg(canvas.Warn), "○"
		}
		g.say(sign, n, st, "%s", l)
	}
	if r.Diff == "" {
		return g.lines
	}
	head := "the change, not made yet"
	if r.Kept {
		head = "the change, made"
	}
	g.heading(head)
	for _, l := range strings.Split(strings.TrimRight(r.Diff, "\n"), "\n") {
		st := dim
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		case strings.HasPrefix(l, "+"):
			st = canvas.Fg(canvas.Ok)
		case strings.HasPrefix(l, "-"):
			st = canvas.Fg(canvas.Bad)
		}
		g.row(seg{l, st})
	}
	return g.lines
}
