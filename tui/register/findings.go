package register

import (
	"fmt"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// finding is a row of the findings' pane.
type finding struct {
	*register.Finding
	mark   rune              // what the assumption did to it: + opened, − closed, ~ changed; 0 nothing
	before *register.Finding // of a changed one
	words  string            // what a filter looks in, in lower case
}

const (
	opened  = '+'
	closed  = '−'
	changed = '~'
)

func markWord(m rune) string {
	switch m {
	case opened:
		return "opened by what is assumed"
	case closed:
		return "closed by what is assumed"
	case changed:
		return "changed by what is assumed"
	}
	return ""
}

// index makes what panes look up: it is done beside the screen.
func (r *reading) index() {
	list := r.now.Document().Findings
	add := func(f *register.Finding, mark rune, before *register.Finding) {
		r.rows = append(r.rows, finding{f, mark, before, strings.ToLower(wordsOf(f))})
	}
	marked := map[string]int{}
	if c := r.changes; c != nil {
		for i := range c.Opened {
			add(&c.Opened[i], opened, nil)
			marked[identity(&c.Opened[i])]++
		}
		for i := range c.Closed {
			add(&c.Closed[i], closed, nil)
		}
		for _, t := range [][]register.Turned{c.Turned, c.Reworded} {
			for i := range t {
				add(&t[i].After, changed, &t[i].Before)
				marked[identity(&t[i].After)]++
			}
		}
	}
	for i := range list {
		if id := ""; len(marked) > 0 {
			if id = identity(&list[i]); marked[id] > 0 {
				marked[id]--
				continue
			}
		}
		add(&list[i], 0, nil)
	}
	r.gaps, r.of = map[string]int{}, map[string][]int{}
	for i := range r.rows {
		f := &r.rows[i]
		r.of[f.StoreID] = append(r.of[f.StoreID], i)
		if f.Severity == register.Gap && f.mark != closed {
			r.gaps[f.StoreID]++
		}
	}
}

func wordsOf(f *register.Finding) string {
	return strings.Join([]string{string(f.Severity), string(f.Code), f.StoreID, deref(f.ScenarioID), deref(f.MigrationID)}, " ")
}

func identity(f *register.Finding) string { return wordsOf(f) + "\x00" + f.Detail }

// filter chooses findings. Its zero value takes all.
type filter struct {
	words    string // each must occur; store:x, severity:x and code:x look in one field
	severity register.Severity
	store    string // only of this one
}

func (f filter) String() string {
	var parts []string
	if f.severity != "" {
		parts = append(parts, string(f.severity)+" only")
	}
	if f.store != "" {
		parts = append(parts, "of "+f.store)
	}
	if f.words != "" {
		parts = append(parts, "/"+f.words)
	}
	return strings.Join(parts, ", ")
}

// of lists the rows that pass.
func (f filter) of(r *reading) []int {
	out := []int{}
	words := strings.Fields(strings.ToLower(f.words))
	take := func(i int) {
		if f.takes(&r.rows[i], words) {
			out = append(out, i)
		}
	}
	if f.store != "" {
		for _, i := range r.of[f.store] {
			take(i)
		}
		return out
	}
	for i := range r.rows {
		take(i)
	}
	return out
}

func (f filter) takes(x *finding, words []string) bool {
	if f.severity != "" && x.Severity != f.severity {
		return false
	}
	for _, w := range words {
		in := x.words
		field, rest, ok := strings.Cut(w, ":")
		switch {
		case ok && field == "store":
			in, w = strings.ToLower(x.StoreID), rest
		case ok && field == "severity":
			in, w = string(x.Severity), rest
		case ok && field == "code":
			in, w = string(x.Code), rest
		}
		if !strings.Contains(in, w) {
			return false
		}
	}
	return true
}

// findingsPane is the list of findings that pass the filter.
type findingsPane struct {
	scroll
	filter filter
	// shown are the rows that pass, made for these:
	shown  []int
	shownR *reading
	shownF filter
}

// list is what passes the filter now; the chosen row stays the chosen one.
func (p *findingsPane) list(r *reading) []int {
	if p.shown != nil && p.shownR == r && p.shownF == p.filter {
		return p.shown
	}
	held := ""
	if p.shownR != nil && p.at < len(p.shown) {
		held = wordsOf(p.shownR.rows[p.shown[p.at]].Finding)
	}
	p.shown, p.shownR, p.shownF = p.filter.of(r), r, p.filter
	for i, k := range p.shown {
		if held != "" && wordsOf(r.rows[k].Finding) == held {
			p.at = i
			break
		}
	}
	p.at = max(0, min(p.at, len(p.shown)-1))
	return p.shown
}

// chosen is the finding under the cursor, or nil.
func (p *findingsPane) chosen(r *reading) *finding {
	list := p.list(r)
	if p.at >= len(list) {
		return nil
	}
	return &r.rows[list[p.at]]
}

func (p *findingsPane) draw(c canvas.Canvas, area canvas.Rect, r *reading, focused bool) {
	list := p.list(r)
	name := "findings"
	if s := p.filter.String(); s != "" {
		name += ": " + s
	}
	note := fmt.Sprintf("%d of %d", len(list), len(r.rows))
	in := view.Frame(c, area, focused, name, note)
	w, h := in.Size()
	if len(list) == 0 {
		what := "nothing is found wrong"
		if p.filter != (filter{}) {
			what = "no finding passes the filter"
		}
		in.PutFit(1, 0, w-2, what, dim)
		return
	}
	// The chosen finding in full stands below the list.
	f := p.chosen(r)
	told := p.tell(f, w-2)
	rows := max(3, h-len(told)-1)
	if rows >= h {
		rows, told = h, nil
	}
	p.settle(len(list), rows)
	about := max(8, min(w/4, 24)) // for stores' ids
	for y := 0; y < rows && p.top+y < len(list); y++ {
		p.drawRow(in, y, &r.rows[list[p.top+y]], about)
		if p.top+y == p.at {
			chosen(in, y, focused)
		}
	}
	if told != nil {
		in.HLine(0, rows, w, '┄', canvas.Fg(canvas.Border))
	}
	for i := 0; i < len(told) && rows+1+i < h; i++ {
		told[i].draw(in, 1, rows+1+i, w-2)
	}
	view.More(c, area, len(list)-rows-p.top)
}

func (p *findingsPane) drawRow(c canvas.Canvas, y int, f *finding, about int) {
	w, _ := c.Size()
	m := severitySign(f.Severity)
	st := plain
	if f.mark == closed {
		st = dim.With(canvas.Strike)
	}
	if f.mark != 0 {
		c.Set(1, y, f.mark, loud)
	}
	c.Set(2, y, m.Shape, m.Style)
	c.PutFit(4, y, 8, m.Word, m.Style)
	c.PutFit(13, y, about, text.Line(f.StoreID), st)
	x := 14 + about
	x = c.PutFit(x, y, w-x-1, string(f.Code), st)
	if id := deref(f.ScenarioID) + deref(f.MigrationID); id != "" {
		x = c.PutFit(x+1, y, w-x-2, text.Line("@ "+id), dim)
	}
	if w-x > 20 {
		c.PutFit(x+2, y, w-x-3, text.Line(f.Says()), dim)
	}
}

// tell is a finding in full.
func (p *findingsPane) tell(f *finding, w int) []line {
	g := page{width: w}
	if f.mark != 0 {
		g.row(seg{string(f.mark) + " " + markWord(f.mark), loud})
	}
	g.say("", 0, plain.With(canvas.Bold), "%s", f.Title)
	g.say("", 0, plain, "%s", f.Says())
	if b := f.before; b != nil {
		if b.Severity != f.Severity {
			g.row(seg{fmt.Sprintf("was %s", b.Severity), dim})
		}
		if b.Detail != f.Detail {
			g.say("was", 5, dim, "%s", b.Detail)
		}
	}
	if a := f.Acceptance; a != nil {
		g.say("", 0, canvas.Fg(canvas.Warn), "accepted by %s until %s: %s", a.AcceptedBy, a.ReviewOn, a.Reason)
	}
	return g.lines
}
