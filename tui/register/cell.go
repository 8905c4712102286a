package register

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// cellLines tell the chosen cell in both postures, side by side, with every
// side of the break.
func cellLines(r *reading, store, scenario, width int) []line {
	doc := r.now.Document()
	g := page{width: width}
	now, plan := doc.Cell(register.CurrentPosture, store, scenario), doc.Cell(register.TargetPosture, store, scenario)
	if now == nil || plan == nil {
		g.row(seg{"no cell is chosen", dim})
		return g.lines
	}
	s, sc := &doc.Stores[store], &doc.Scenarios[scenario]
	g.say("", 0, title, "%s", sc.Name)
	g.say("", 0, dim, "%s", sc.Description)
	lost := "no node"
	if len(sc.LostNodes) > 0 {
		lost = strings.Join(sc.LostNodes, ", ")
	}
	g.say("nodes lost", 12, plain, "%s", lost)
	g.blank()

	name := 10
	for i := range sc.Partitions {
		name = max(name, min(18, text.Width(sc.Partitions[i].ID)+3))
	}
	const col = 16
	g.row(seg{strings.Repeat(" ", name), dim}, seg{text.Pad("today", col), dim}, seg{"planned", dim})
	two := func(label string, st canvas.Style, a, b view.Sign, after string) {
		g.row(seg{text.Pad(text.Truncate(label, name-1, text.Ellipsis), name), st},
			seg{string(a.Shape) + " ", a.Style}, seg{text.Pad(a.Word, col-2), a.Style}, seg{string(b.Shape) + " ", b.Style}, seg{text.Pad(b.Word, col-2), b.Style}, seg{after, dim})
	}
	two("outcome", plain, timed(now), timed(plan), "")
	for i := range sc.Partitions {
		p := &sc.Partitions[i]
		label, st := "  "+p.ID, plain
		if p.Operator {
			label, st = "◆ "+p.ID, canvas.Fg(canvas.Focus).With(canvas.Bold)
		}
		two(label, st, outcomeSign(now.Partitions[i].Outcome), outcomeSign(plan.Partitions[i].Outcome), "")
	}
	g.row(seg{text.Pad("writers", name), plain}, seg{text.Pad(writers(now), col), writersStyle(now)}, seg{writers(plan), writersStyle(plan)})
	for _, posture := range []register.Posture{register.CurrentPosture, register.TargetPosture} {
		if b := was(r, posture, store, scenario); b != nil {
			sign, word := turn(b, doc.Cell(posture, store, scenario))
			g.say("", 0, loud, "%c %s, %s: without what is assumed %s", sign, postureWord(posture), word, sides(b))
		}
	}
	g.blank()
	g.notes(now, plan)
	g.heading("sides")
	for i := range sc.Partitions {
		p := &sc.Partitions[i]
		who := ""
		if p.Operator {
			who = ", where the operator is"
		}
		internet := "no internet"
		if p.VendorReachable {
			internet = "internet"
		}
		nodes := "no node"
		if len(p.Nodes) > 0 {
			nodes = strings.Join(p.Nodes, ", ")
		}
		g.say(p.ID, name, plain, "%s; %s%s%s", nodes, internet, who, primaryOn(s, p))
	}
	return g.lines
}

func (p *page) notes(now, plan *register.Cell) {
	if slices.Equal(now.Notes, plan.Notes) {
		for _, n := range now.Notes {
			p.say("", 0, plain, "%s", n)
		}
		return
	}
	for _, n := range now.Notes {
		p.say("today", 10, plain, "%s", n)
	}
	for _, n := range plan.Notes {
		p.say("planned", 10, plain, "%s", n)
	}
}

// timed is a cell's outcome with its time.
func timed(c *register.Cell) view.Sign {
	m := outcomeSign(c.Outcome)
	if c.Minutes != nil {
		m.Word += " " + register.Span(c.Minutes)
	}
	return m
}

func primaryOn(s *register.Store, p *register.Partition) string {
	if !s.Primary.Held() && slices.Contains(p.Nodes, s.Primary.Node) {
		return "; the primary is here"
	}
	return ""
}

func writers(c *register.Cell) string {
	if c.ConcurrentWriters > 1 {
		return fmt.Sprintf("‖ %d at once", c.ConcurrentWriters)
	}
	return fmt.Sprint(c.ConcurrentWriters)
}

func writersStyle(c *register.Cell) canvas.Style {
	if c.ConcurrentWriters > 1 {
		return alarm.With(canvas.Bold)
	}
	return plain
}

// sides is a cell in one line, the operator's side marked.
func sides(c *register.Cell) string {
	parts := make([]string, 0, len(c.Partitions))
	for _, p := range c.Partitions {
		who := ""
		if p.Operator {
			who = "◆ "
		}
		parts = append(parts, who+p.ID+" "+outcomeSign(p.Outcome).Word)
	}
	return strings.Join(parts, ", ")
}
