package step

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"refbox/engine/analysis"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// patience is how long a frame waits for a page or titles that are nearly ready;
// a page that takes longer comes with a later frame.
const patience = 8 * time.Millisecond

// Draw implements view.Screen.
func (s *Screen) Draw(c canvas.Canvas) {
	r := c.Bounds()
	sides := s.sides
	if s.alone || len(sides) > 1 && r.W < 60 {
		sides = s.sides[s.lead : s.lead+1]
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	s.areas = s.areas[:0]
	for i, d := range sides {
		part, rest := r.CutLeft(r.W / (len(sides) - i))
		r = rest
		s.drawSide(c, part, d.top(), d == s.sides[s.lead], len(sides) > 1, timer.C)
	}
}

// split shares a side's room: list and page side by side where both are wide
// enough, else one above the other.
func split(r canvas.Rect) (list, page canvas.Rect) {
	switch {
	case r.W >= 150:
		return r.CutLeft(r.W * 2 / 5)
	case r.W >= 100:
		return r.CutLeft(r.W * 9 / 20)
	}
	return r.CutTop(max(5, r.H*2/5))
}

func (s *Screen) drawSide(c canvas.Canvas, r canvas.Rect, t *track, lead, two bool, late <-chan time.Time) {
	list, body := split(r)
	rows := max(0, list.H-2-footRows(list))
	s.areas = append(s.areas, area{slices.IndexFunc(s.sides, func(d *side) bool { return d.top() == t }), list, body})
	t.scroll(rows)
	if lead {
		s.listH, s.pageH = rows, max(0, body.H-2)
	}
	ready := t.ask(s, rows, body.W-4)
	if ready != nil {
		select {
		case <-ready:
		case <-late:
		}
	}
	s.drawList(c, list, t, lead, two)
	if lead && s.panel != noPanel {
		s.drawPanel(c, body, t)
		return
	}
	s.drawPage(c, body, t, lead)
}

// scroll brings the chosen row into a list of rows rows.
func (t *track) scroll(rows int) {
	margin := min(2, rows/4)
	if t.sel < t.top+margin {
		t.top = t.sel - margin
	}
	if t.sel >= t.top+rows-margin {
		t.top = t.sel - rows + 1 + margin
	}
	t.top = max(0, min(t.top, len(t.rows)-rows))
}

// pageKey is the page of a step as the screen wants it.
func (t *track) pageKey(h transcript.Head, s *Screen, width int) pageKey {
	_, _, ahead := t.verdict(h.Index)
	k := pageKey{step: h.Index, outcome: h.Outcome, flags: h.Flags, alone: ahead && analysis.Acts(h), look: look{width: width, open: t.open, private: s.private, zero: t.zero}}
	if i := t.subagent(h); i >= 0 {
		k.subs = t.agentName(i)
	}
	if k.subs == "" && t.cast != nil && t.cast(h) != "" {
		k.subs = "the recorded session"
	}
	return k
}

// ask asks for what the frame lacks; nil when it lacks nothing.
func (t *track) ask(s *Screen, rows, width int) <-chan struct{} {
	if v := t.value(); v != t.opened {
		t.opened, t.up, t.open = v, 0, false
	}
	var j job
	if h, ok := t.chosen(); ok {
		j.page = t.pageKey(h, s, width)
		_, _, final := t.page(j.page)
		j.paged = !final
	}
	for i := t.top; i < min(t.top+rows, len(t.rows)); i++ {
		if t.rows[i] < 0 {
			continue
		}
		h := t.tr.Head(int(t.rows[i]))
		if _, ok := t.title(h); !ok {
			j.titles = append(j.titles, h)
		}
	}
	if !j.paged && len(j.titles) == 0 {
		t.asked = job{page: j.page}
		return nil
	}
	if t.asking != nil && t.asked.page == j.page && len(t.asked.titles) == len(j.titles) &&
		(len(j.titles) == 0 || t.asked.titles[0] == j.titles[0]) {
		select {
		case <-t.asking: // it was given up
		default:
			return t.asking
		}
	}
	t.asked, t.asking = j, t.request(j)
	return t.asking
}

// columns of the list, by its width.
type columns struct {
	number, clock, word, tool, agent, took int // cells, 0 for none
	x                                      struct{ number, clock, sign, word, tool, agent, title, took, outcome int }
	title                                  int
}

func (t *track) columns(w int) columns {
	var k columns
	k.number = max(2, len(fmt.Sprint(max(0, t.tr.Len()-1))))
	if t.timed() {
		k.clock = 7
		if n := t.tr.Len(); n > 0 && t.tr.Head(n-1).AtMS+t.zero >= 3_600_000 {
			k.clock = 8
		}
	}
	if w >= 64 {
		k.word = 10
	}
	k.tool = min(max(4, t.counts.widest), w/6, 14)
	if t.counts.widest == 0 {
		k.tool = 0
	}
	agents := t.agents()
	several := 0
	for _, a := range agents {
		if a.Steps > 0 {
			several++
		}
	}
	if t.lens < 0 && several > 1 && w >= 76 {
		k.agent = 10
	}
	k.took = 6
	if w < 44 {
		k.took = 0
	}
	if w < 34 {
		k.tool = 0
	}
	x := 1
	place := func(at *int, w int) {
		*at = x
		if w > 0 {
			x += w + 1
		}
	}
	place(&k.x.number, k.number)
	place(&k.x.clock, k.clock)
	place(&k.x.sign, 1)
	place(&k.x.word, k.word)
	place(&k.x.tool, k.tool)
	place(&k.x.agent, k.agent)
	k.x.title = x
	k.x.outcome = w - 2
	k.x.took = k.x.outcome - 1 - k.took
	k.title = k.x.took - 1 - k.x.title
	if k.took == 0 {
		k.title = k.x.outcome - 1 - k.x.title
	}
	return k
}

// footRows is what the list gives to the totals and the filter; where it is low
// they are on its lower side.
func footRows(r canvas.Rect) int {
	switch {
	case r.H < 12:
		return 0
	case r.W < 76:
		return 3
	}
	return 2
}

func (s *Screen) drawList(c canvas.Canvas, r canvas.Rect, t *track, lead, two bool) {
	outline, line := view.Outline(lead && !s.detail && s.panel == noPanel)
	title := t.tr.Info().Format + " · " + t.name
	if two {
		side := 1
		if s.sides[1].top() == t {
			side = 2
		}
		title = fmt.Sprintf("%d %s", side, t.name)
		if lead {
			title += " leads"
		}
	}
	note := view.Plural(len(t.rows)-len(t.over), "step")
	if !t.tr.Complete() {
		note += " so far"
	}
	in := c.Sub(c.Frame(r, outline, title, note, line, canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	rows := h - footRows(r)
	k := t.columns(w)
	if len(t.rows) == 0 {
		words := "no step yet"
		switch {
		case !t.filter.empty():
			words = "no step passes the filter: " + t.filter.String()
		case t.tr.Complete() && t.grew == nil:
			words = "nothing was recorded"
		}
		in.PutFit(1, 0, w-2, words, canvas.Fg(canvas.Dim))
	}
	for y := 0; y < rows && t.top+y < len(t.rows); y++ {
		v := t.rows[t.top+y]
		if v < 0 {
			drawMark(in, y, k, t.marks[-1-v])
		} else {
			t.drawStep(in, y, k, t.tr.Head(int(v)))
		}
		if t.top+y == t.sel {
			view.Choose(in, y)
			if !lead {
				in.Set(0, y, '▸', canvas.Style{Fg: canvas.Focus, Bg: canvas.Selection})
			}
		}
	}
	if n := footRows(r); n > 0 {
		s.drawFoot(in.Sub(canvas.Rect{Y: h - n, W: w, H: n}), t)
	} else {
		c.PutRight(r.X+r.W-2, r.Y+r.H-1, r.W-4, " "+firstOf(s.aside(t), t.totalLine()+t.totalMethod())+" ", canvas.Fg(canvas.Dim))
	}
}

func (t *track) drawStep(c canvas.Canvas, y int, k columns, h transcript.Head) {
	dim := canvas.Fg(canvas.Dim)
	kind, changed, ahead := t.verdict(h.Index)
	sg := signOf(h, kind)
	c.PutRight(k.x.number+k.number, y, k.number, fmt.Sprint(h.Index), dim)
	if k.clock > 0 && h.AtMS >= 0 {
		c.PutRight(k.x.clock+k.clock, y, k.clock, view.Clock(h.AtMS+t.zero), dim)
	}
	st := sg.Style
	if changed {
		st = st.With(canvas.Bold)
	}
	c.Set(k.x.sign, y, sg.Shape, st)
	if k.word > 0 {
		word := sg.Word
		if ahead && kind != "" {
			word = text.Truncate(word, 9, "") + "?"
		}
		c.PutFit(k.x.word, y, k.word, word, st)
	}
	if k.tool > 0 {
		c.PutFit(k.x.tool, y, k.tool, h.Tool, canvas.Fg(canvas.Accent))
	}
	if k.agent > 0 {
		c.PutFit(k.x.agent, y, k.agent, t.agentName(h.Agent), canvas.Fg(canvas.Seat1+canvas.Color(h.Agent%4)))
	}
	title, ok := t.title(h)
	if !ok {
		title = "…"
	}
	words := canvas.Fg(canvas.Text)
	switch {
	case h.Kind == transcript.Thinking || h.Kind == transcript.State || h.Flags&(transcript.Copied|transcript.Duplicate) != 0:
		words = dim
	case h.Kind == transcript.Message:
		words = canvas.Fg(canvas.Title)
	}
	x := k.x.title
	if h.Has(transcript.Anomalous) {
		c.Set(x, y, '⚠', canvas.Fg(canvas.Warn))
		x += 2
	}
	if ref := t.refs.kinds[h.Pos]; ref != "" && kind != "" && ref != kind && h.Pos >= 0 {
		x = c.Put(x, y, "≠ ", canvas.Fg(canvas.Warn))
	}
	if t.subagent(h) >= 0 {
		x = c.Put(x, y, "▸ ", canvas.Fg(canvas.Key))
	}
	c.PutFit(x, y, k.title-(x-k.x.title), title, words)
	if k.took > 0 {
		c.PutRight(k.x.took+k.took, y, k.took, view.Span(h.DurationMS), dim)
	}
	o := outcomeSign(h.Outcome)
	c.Set(k.x.outcome, y, o.Shape, o.Style)
}

func drawMark(c canvas.Canvas, y int, k columns, m mark) {
	st := canvas.Fg(canvas.Ok).With(canvas.Bold)
	if m.bad {
		st = canvas.Fg(canvas.Bad).With(canvas.Bold)
	}
	if k.clock > 0 {
		c.PutRight(k.x.clock+k.clock, y, k.clock, view.Clock(m.ms), canvas.Fg(canvas.Dim))
	}
	c.Set(k.x.sign, y, m.shape, st)
	w, _ := c.Size()
	x := c.PutFit(k.x.word, y, w-k.x.word-2, m.text+" ", st)
	c.HLine(x, y, w-1-x, '┄', canvas.Fg(canvas.Border))
}

// drawFoot tells the totals with the method that found them, and the filter or
// the clock.
func (s *Screen) drawFoot(c canvas.Canvas, t *track) {
	w, h := c.Size()
	dim := canvas.Fg(canvas.Dim)
	c.HLine(0, 0, w, '┄', canvas.Fg(canvas.Border))
	x := 2
	if n := t.troubles(); n != "" {
		x = c.Put(2, 0, " ⚠ "+n+" ", canvas.Fg(canvas.Warn))
	}
	if aside := s.aside(t); aside != "" && w-x > 8 {
		c.PutRight(w-1, 0, w-x-2, " "+aside+" ", canvas.Fg(canvas.Key))
	}
	if h > 2 {
		c.PutFit(1, 1, w-2, t.totalLine(), dim)
		c.PutFit(1, 2, w-2, strings.TrimPrefix(t.totalMethod(), " · "), dim)
		return
	}
	c.PutFit(1, 1, w-2, t.totalLine()+t.totalMethod(), dim)
}

// aside is what is to be known of the list: its filter, or its clock.
func (s *Screen) aside(t *track) string {
	if !t.filter.empty() {
		return "only " + t.filter.String()
	}
	return firstOf(t.note, s.clock)
}

// totalLine are the figures of the whole record, totalMethod how they were found.
func (t *track) totalLine() string {
	if u := usageLine(t.totals().Usage, short); u != "" {
		return "Σ " + u
	}
	return "no usage recorded"
}

func (t *track) totalMethod() string {
	total := t.totals()
	method := total.Method
	switch {
	case usageLine(total.Usage, short) == "":
		return ""
	case total.Input == nil && total.Output == nil:
		method = total.CostMethod
	}
	if total.Partial {
		method += ", so far"
	}
	return " · " + method
}

// totals are asked for anew only when more was read.
func (t *track) totals() *transcript.Totals {
	if n := t.tr.Len(); t.sum == nil || t.sumFor != n && (t.tr.Complete() || n > t.sumFor+20_000) || t.sum.Partial && t.tr.Complete() {
		total := t.tr.Totals()
		t.sum, t.sumFor = &total, n
	}
	return t.sum
}

// troubles is the number of findings, in words.
func (t *track) troubles() string {
	n := 0
	for _, k := range t.integrity().Counts {
		n += k
	}
	if n == 0 {
		return ""
	}
	return view.Plural(n, "finding")
}

func (s *Screen) drawPage(c canvas.Canvas, r canvas.Rect, t *track, lead bool) {
	outline, line := view.Outline(lead && s.detail)
	words := canvas.Fg(canvas.Title).With(canvas.Bold)
	v := t.value()
	if v == noRow {
		c.Frame(r, outline, "step", "", line, words)
		return
	}
	if v < 0 {
		in := c.Sub(c.Frame(r, outline, "milestone", view.Clock(t.marks[-1-v].ms), line, words))
		w, _ := in.Size()
		for i, l := range text.Wrap(t.marks[-1-v].text, max(8, w-2)) {
			in.Put(1, i, l, canvas.Fg(canvas.Text))
		}
		return
	}
	h := t.tr.Head(int(v))
	kind, _, _ := t.verdict(h.Index)
	title := fmt.Sprintf("#%d %s", h.Index, signOf(h, kind).Word)
	if h.Tool != "" {
		title += " · " + h.Tool
	}
	if len(t.agents()) > 1 && t.lens < 0 {
		title += " · " + t.agentName(h.Agent)
	}
	note := size(h.Length) + " at byte " + view.Count(h.Offset)
	if h.Length == 0 {
		note = ""
	}
	in := c.Sub(c.Frame(r, outline, title, note, line, words))
	w, rows := in.Size()
	p, ok, final := t.page(t.pageKey(h, s, r.W-4))
	switch {
	case !ok:
		in.PutFit(1, 0, w-2, "reading …", canvas.Fg(canvas.Dim))
		return
	case p.err != "":
		for i, l := range text.Wrap(p.err, max(8, w-2)) {
			in.Put(1, i, l, canvas.Fg(canvas.Bad))
		}
		return
	}
	if s.seekUp && lead && final {
		s.toWords(t, p)
	}
	t.up = max(0, min(t.up, len(p.rows)-rows))
	for y := 0; y < rows && t.up+y < len(p.rows); y++ {
		row := p.rows[t.up+y]
		in.PutCells(1, y, row.cells[:min(len(row.cells), w-2)])
		if lead {
			row.mark(in, 1, y, s.words)
		}
	}
	view.More(c, r, len(p.rows)-rows-t.up)
}

// toWords scrolls the page to the words that were found; what is folded is
// opened when they are not to be seen.
func (s *Screen) toWords(t *track, p page) {
	for i, r := range p.rows {
		if s.words != "" && strings.Contains(r.words(), s.words) {
			t.up = max(0, i-3)
			s.seekUp = false
			return
		}
	}
	if p.folded > 0 && !t.open {
		t.open = true // and the next page is looked through
		s.wake()
		return
	}
	s.seekUp = false
}
