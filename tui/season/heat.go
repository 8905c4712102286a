package season

import (
	"fmt"
	"strings"

	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// textPane shows lines that follow from what is chosen elsewhere.
type textPane struct {
	scroll
	lines []line
	made  lineKey
}

// lineKey says what lines were made from.
type lineKey struct {
	r         *reading
	round, at int
	width     int
}

// show makes the lines anew where something changed. The place stays where the
// same thing is shown of a newer week.
func (p *textPane) show(k lineKey, make func() []line) {
	if k == p.made {
		return
	}
	if p.made.round != k.round || p.made.at != k.at {
		p.scroll = scroll{}
	}
	p.made, p.lines = k, make()
}

func (p *textPane) move(by int) { p.at = max(0, min(p.at+by, len(p.lines)-1)) }

// jump goes to the next heading, or the previous one.
func (p *textPane) jump(dir int) {
	for i := p.at + dir; i >= 0 && i < len(p.lines); i += dir {
		if p.lines[i].heading || i == 0 {
			p.at, p.top = i, i
			return
		}
	}
}

// opens is what enter opens on the chosen line.
func (p *textPane) opens() string {
	if p.at < len(p.lines) {
		return p.lines[p.at].opens
	}
	return ""
}

func (p *textPane) draw(c canvas.Canvas, area canvas.Rect, focused bool, name, note string) {
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	p.settle(len(p.lines), h)
	for y := 0; y < h && p.top+y < len(p.lines); y++ {
		p.lines[p.top+y].draw(in, 1, y, w-2)
		if p.top+y == p.at {
			chosen(in, y, focused)
		}
	}
	view.More(c, area, len(p.lines)-h-p.top)
}

// blockLines tell the chosen block in full.
func blockLines(r *reading, round int, b *block, width int) []line {
	p := &page{width: width}
	rv := &r.View.Rounds[round-1]
	switch b.kind {
	case aHeat:
		heatLines(p, r, rv, &rv.Heats[b.heat])
	case unseated:
		p.say(0, plain, "Who plays in these heats follows from the round before: its winners, its byes and its wildcards, shuffled by the stream of rounds.")
	case byes:
		p.say(0, plain, "What is left when the field does not divide into heats goes on to the next round without playing.")
		p.blank()
		for _, id := range rv.Byes {
			p.row(seg{"→ ", dim}, seg{id, plain}, seg{wayOn(r, round, id), dim})
		}
	case wildcards:
		p.say(0, plain, "The field of the next round is filled with those who did not win. Rules: %s.", r.View.RuleSet)
		p.blank()
		for _, x := range rv.Wildcards {
			p.row(seg{"◇ ", dim}, seg{x.Entrant, plain.With(canvas.Bold)}, seg{wayOn(r, round, x.Entrant), dim})
			p.say(2, plain, "%s", x.Why)
		}
		if len(rv.Wildcards) == 0 {
			p.say(0, dim, "%s, not drawn yet", view.Plural(rv.Places, "wildcard"))
		}
	case outcome:
		p.say(0, plain, "The champion is the durable winner of the single heat of the last round, and nobody else.")
	}
	return p.lines
}

// wayOn says where an entrant of a round plays next.
func wayOn(r *reading, round int, id string) string {
	switch n := r.goesOn(round, id); {
	case n > 0:
		return fmt.Sprintf("  → round %d, heat %s", round+1, view.Count(n))
	case n < 0:
		return fmt.Sprintf("  → round %d", round+1)
	}
	return ""
}

func heatLines(p *page, r *reading, rv *season.RoundView, h *season.HeatView) {
	latest := r.latest(rv.Round, h)
	p.opens = latest
	m := heatSign(h.State)
	segs := []seg{{string(m.Shape) + " " + m.Word, m.Style}}
	if h.Winner != "" {
		segs = append(segs, seg{"  " + text.Line(h.Winner) + " won", canvas.Fg(canvas.Ok)})
	}
	if rv.Arena != "" {
		segs = append(segs, seg{"  on " + text.Line(rv.Arena), dim})
	}
	p.row(segs...)
	if h.Note != "" {
		p.say(0, canvas.Fg(canvas.Warn), "○ %s", h.Note)
	}
	p.blank()
	wide := max(6, min(28, p.width-42))
	for k := range h.Seats {
		seatLines(p, r, rv.Round, h, &h.Seats[k], wide)
	}
	if len(h.Seats) == 0 {
		p.say(0, dim, "Who sits in this heat is not known here.")
	}
	if h.State == "waiting" {
		return
	}
	p.blank()
	p.recording(r, latest, "the last attempt")
	for n := range h.Earlier {
		name := season.Folder(rv.Round, h.Heat, n+1)
		p.opens = name
		p.heading("attempt %d", n+1)
		p.lines[len(p.lines)-1].opens = name
		for _, s := range h.Earlier[n] {
			at := ""
			if s.DurableAtMS != nil {
				at = seconds(*s.DurableAtMS)
			}
			m := resultSign(s.Outcome)
			p.row(seg{string(m.Shape) + " ", m.Style}, cell(s.FleetID, wide, plain), cell(m.Word, 10, m.Style), right(fmt.Sprint(s.MilestonePoints), 4, plain), right(at, 8, plain),
				right(season.Money{MicroUSD: s.CostMicroUSD, Complete: s.CostComplete}.String(), 12, dim))
		}
		p.recording(r, name, fmt.Sprintf("attempt %d", n+1))
	}
}

// recording says whether the recording of an attempt is here.
func (p *page) recording(r *reading, name, what string) {
	switch {
	case name == "":
	case r.Here[name]:
		p.row(seg{"enter opens ", dim}, seg{name, plain}, seg{", " + what, dim})
	default:
		p.row(seg{"the recording of " + what + " is not here: " + name, dim})
	}
}

func seatLines(p *page, r *reading, round int, h *season.HeatView, s *season.SeatView, wide int) {
	m := resultSign(s.Result)
	if h.State == "playing" {
		m = view.NewSign('●', "playing", canvas.Accent)
	}
	segs := []seg{{string(m.Shape) + " ", m.Style}, cell(s.Entrant, wide, plain.With(canvas.Bold)), cell(m.Word, 10, m.Style)}
	if s.Result != "waiting" {
		at := ""
		if s.DurableAtMS != nil {
			at = seconds(*s.DurableAtMS)
		}
		segs = append(segs, right(fmt.Sprint(s.Points), 4, plain), right(at, 8, plain), right(s.Cost.String(), 12, dim))
	}
	p.row(segs...)
	more := []string{s.Territory}
	if s.EndedBy != "" {
		more = append(more, "session ended by "+s.EndedBy)
	}
	if on := wayOn(r, round, s.Entrant); on != "" {
		more = append(more, strings.TrimSpace(on))
	}
	p.say(2, dim, "%s", strings.Join(more, "  "))
	if s.Detail != "" {
		p.say(2, dim, "%s", s.Detail)
	}
}
