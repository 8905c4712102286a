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

// option is one thing that may be assumed.
type option struct {
	kind  optionKind
	id    string
	about string
}

type optionKind uint8

const (
	nothingAssumed optionKind = iota
	nodeLost
	pathCut
	copyRunning
)

func (k optionKind) says() string {
	return [...]string{"", "lost", "cut", "running"}[k]
}

// whatIfPane is the list of what may be assumed.
type whatIfPane struct {
	scroll
	filter string
	all    []option
	allR   *reading
	shown  []option
	shownF string
}

// options lists what the register has to assume something of: its nodes, its
// paths, the copies that are only planned.
func options(e *register.Explainer) []option {
	doc := e.Document()
	out := []option{{kind: nothingAssumed}}
	for _, n := range e.Estate().Nodes {
		compute := ""
		if !n.Value.Compute {
			compute = ", holds copies only"
		}
		out = append(out, option{nodeLost, n.ID, "in " + n.Value.Domain + compute})
	}
	for i := range doc.Paths {
		out = append(out, option{pathCut, doc.Paths[i].ID, doc.Paths[i].Name})
	}
	for i := range doc.Stores {
		s := &doc.Stores[i]
		for j := range s.Copies {
			if c := &s.Copies[j]; !c.Running() {
				out = append(out, option{copyRunning, c.ID, "of " + s.ID + ", into " + c.Domain})
			}
		}
	}
	return out
}

func (p *whatIfPane) list(r *reading) []option {
	if p.shown != nil && p.allR == r && p.shownF == p.filter {
		return p.shown
	}
	held := option{}
	if p.at < len(p.shown) {
		held = p.shown[p.at]
	}
	if p.allR == nil || p.allR.base != r.base {
		p.all = options(r.base)
	}
	p.allR, p.shownF, p.shown = r, p.filter, []option{}
	words := strings.Fields(strings.ToLower(p.filter))
	for _, o := range p.all {
		in := strings.ToLower(o.id + " " + o.about + " " + o.kind.says())
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(in, w) }) {
			continue
		}
		if o.kind == held.kind && o.id == held.id {
			p.at = len(p.shown)
		}
		p.shown = append(p.shown, o)
	}
	p.at = max(0, min(p.at, len(p.shown)-1))
	return p.shown
}

// toggle assumes an option of w, or not any more.
func toggle(w register.WhatIf, o option) register.WhatIf {
	flip := func(list []string) []string {
		if i := slices.Index(list, o.id); i >= 0 {
			return slices.Delete(slices.Clone(list), i, i+1)
		}
		return append(slices.Clone(list), o.id)
	}
	switch o.kind {
	case nodeLost:
		w.Lost = flip(w.Lost)
	case pathCut:
		w.Cut = flip(w.Cut)
	case copyRunning:
		w.Running = flip(w.Running)
	default:
		return register.WhatIf{}
	}
	return w
}

func assumes(w register.WhatIf, o option) bool {
	switch o.kind {
	case nodeLost:
		return slices.Contains(w.Lost, o.id)
	case pathCut:
		return slices.Contains(w.Cut, o.id)
	case copyRunning:
		return slices.Contains(w.Running, o.id)
	}
	return size(w) == 0
}

func (p *whatIfPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, w register.WhatIf, focused bool) {
	list := p.list(r)
	name := "what if"
	if p.filter != "" {
		name += ": /" + p.filter
	}
	note := "enter assumes it, or not"
	if !slices.Equal(w.Lost, r.assumed.Lost) || !slices.Equal(w.Cut, r.assumed.Cut) || !slices.Equal(w.Running, r.assumed.Running) {
		note = "deriving …"
	}
	in := view.Frame(c, area, focused, name, note)
	width, h := in.Size()
	effect := effectLines(r, width-2)
	rows := max(3, h-len(effect)-1)
	if rows >= h {
		rows, effect = h, nil
	}
	p.settle(len(list), rows)
	for y := 0; y < rows && p.top+y < len(list); y++ {
		o := list[p.top+y]
		on := assumes(w, o)
		box, st := "[ ]", plain
		if on {
			box, st = "[x]", loud
		}
		if o.kind == nothingAssumed {
			in.PutFit(1, y, width-2, box+" nothing: the register as it is", st)
		} else {
			what := map[optionKind]string{nodeLost: "lose", pathCut: "cut", copyRunning: "run"}[o.kind]
			x := in.PutFit(1, y, width-2, fmt.Sprintf("%s %-4s %s", box, what, text.Line(o.id)), st)
			in.PutFit(x+2, y, width-x-3, text.Line(o.about), dim)
		}
		if p.top+y == p.at {
			chosen(in, y, focused)
		}
	}
	if effect != nil {
		in.HLine(0, rows, width, '┄', canvas.Fg(canvas.Border))
		for i := 0; i < len(effect) && rows+1+i < h; i++ {
			effect[i].draw(in, 1, rows+1+i, width-2)
		}
	}
	view.More(c, area, len(list)-rows-p.top)
}

// effectLines sum up what the assumption changes.
func effectLines(r *reading, width int) []line {
	g := page{width: width}
	c := r.changes
	if c == nil {
		return nil
	}
	if c.Empty() {
		g.row(seg{"changes no finding and no cell", dim})
		return g.lines
	}
	better, worse, other := 0, 0, 0
	for i := range c.Cells {
		x := &c.Cells[i]
		if x.Posture != register.CurrentPosture || x.Before == nil || x.After == nil {
			continue
		}
		switch sign, _ := turn(x.Before, x.After); sign {
		case '▲':
			better++
		case '▼':
			worse++
		default:
			other++
		}
	}
	g.row(seg{"cells today: ", dim}, seg{fmt.Sprintf("▲ %d better  ▼ %d worse  ≠ %d on another side", better, worse, other), plain})
	g.row(seg{"findings: ", dim}, seg{fmt.Sprintf("+ %d opened  − %d closed  ~ %d changed", len(c.Opened), len(c.Closed), len(c.Turned)+len(c.Reworded)), plain})
	return g.lines
}
