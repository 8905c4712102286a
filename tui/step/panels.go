package step

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/analysis"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// panel is what takes the page's place.
type panel uint8

const (
	noPanel panel = iota
	integrityPanel
	totalsPanel
	filterPanel
)

// chooser is a panel's list: which line is chosen, and from which on it is shown.
type chooser struct{ at, top int }

func (s *Screen) openPanel(p panel) {
	if s.panel == p {
		s.panel = noPanel
		return
	}
	s.panel, s.chooser = p, chooser{}
}

// panelKey handles a key while a panel is open; false leaves it to the screen.
func (s *Screen) panelKey(h view.Host, a keymap.Action) (taken bool) {
	t := s.track()
	n := 0
	switch s.panel {
	case integrityPanel:
		n = len(t.integrity().Findings)
	case filterPanel:
		n = len(t.choices())
	case totalsPanel:
		n = 1 << 20
	}
	if by := s.stride(a); by != 0 {
		s.chooser.at = max(0, min(s.chooser.at+by, n-1))
		return true
	}
	switch a {
	case keymap.Start:
		s.chooser.at = 0
	case keymap.End:
		s.chooser.at = max(0, n-1)
	case keymap.Open, keymap.PlayPause:
		switch s.panel {
		case integrityPanel:
			s.jumpToFinding(h)
		case filterPanel:
			s.toggle(t)
		}
	default:
		return false
	}
	return true
}

func (s *Screen) jumpToFinding(h view.Host) {
	t := s.track()
	found := t.integrity().Findings
	if s.chooser.at >= len(found) {
		return
	}
	f := found[s.chooser.at]
	if f.Step < 0 {
		h.Say("this finding belongs to no step")
		return
	}
	s.move(func(t *track) { t.goTo(f.Step) })
	if v := t.value(); v != int32(f.Step) {
		h.Say(fmt.Sprintf("step %d is not listed: the filter, or the choice of an agent, leaves it out", f.Step))
	}
}

// integrity is the record's report, asked for anew only when more was read.
func (t *track) integrity() *transcript.Report {
	if t.report == nil || t.reportFor != t.tr.Len() || !t.report.Complete {
		if t.report == nil || t.tr.Complete() || t.tr.Len() > t.reportFor+50_000 {
			r := t.tr.Integrity()
			t.report, t.reportFor = &r, t.tr.Len()
		}
	}
	return t.report
}

func (s *Screen) drawPanel(c canvas.Canvas, r canvas.Rect, t *track) {
	title, note := "", ""
	switch s.panel {
	case integrityPanel:
		rep := t.integrity()
		title, note = "integrity", view.Plural(len(rep.Findings), "finding")
	case totalsPanel:
		title = "tokens, cost, and what the record says of itself"
	case filterPanel:
		title, note = "filter", "enter chooses"
	}
	in := c.Sub(c.Frame(r, canvas.Heavy, title, note, canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold)))
	switch s.panel {
	case integrityPanel:
		s.drawIntegrity(in, t)
	case totalsPanel:
		s.drawTotals(in, t)
	case filterPanel:
		s.drawFilter(in, t)
	}
}

// window brings the chosen line of n into rows rows.
func (k *chooser) window(n, rows int) {
	k.at = max(0, min(k.at, n-1))
	k.top = max(min(k.top, k.at), k.at-rows+1)
	k.top = max(0, min(k.top, n-rows))
}

func (s *Screen) drawIntegrity(c canvas.Canvas, t *track) {
	w, h := c.Size()
	rep := t.integrity()
	read := fmt.Sprintf("read %s of %s, %s, %s", size(rep.Bytes), size(rep.Size), view.Plural(rep.Records, "record"), view.Plural(rep.Steps, "step"))
	if !rep.Complete {
		read += ", more to come"
	}
	c.PutFit(1, 0, w-2, read, canvas.Fg(canvas.Text))
	var kinds []string
	for k, n := range rep.Counts {
		kinds = append(kinds, fmt.Sprintf("%s %s", k, view.Count(n)))
	}
	slices.Sort(kinds)
	if len(kinds) == 0 {
		c.PutFit(1, 1, w-2, "nothing is wrong with it", canvas.Fg(canvas.Ok))
		return
	}
	c.PutFit(1, 1, w-2, strings.Join(kinds, ", "), canvas.Fg(canvas.Warn))
	list, story := canvas.Rect{Y: 2, W: w, H: h - 2}.CutTop(max(1, h-2-min(7, h/3)))
	found := rep.Findings
	s.chooser.window(len(found), list.H)
	in := c.Sub(list)
	for y := 0; y < list.H && s.chooser.top+y < len(found); y++ {
		f := found[s.chooser.top+y]
		st, shape := canvas.Fg(canvas.Warn), '·'
		if f.Severity == transcript.Break {
			st, shape = canvas.Fg(canvas.Bad), '✗'
		}
		in.Set(1, y, shape, st)
		in.PutRight(14, y, 11, view.Count(f.Offset), canvas.Fg(canvas.Dim))
		step := ""
		if f.Step >= 0 {
			step = fmt.Sprintf("#%d", f.Step)
		}
		in.PutRight(22, y, 7, step, canvas.Fg(canvas.Key))
		x := in.PutFit(23, y, 12, f.Trouble.String(), st)
		in.PutFit(max(x+1, 35), y, w-37, f.Text, canvas.Fg(canvas.Text))
		if s.chooser.top+y == s.chooser.at {
			view.Choose(in, y)
		}
	}
	if s.chooser.at < len(found) && story.H > 1 {
		f := found[s.chooser.at]
		in := c.Sub(story)
		in.HLine(0, 0, w, '┄', canvas.Fg(canvas.Border))
		where := fmt.Sprintf("%s, byte %s", f.File, view.Count(f.Offset))
		if f.Line > 0 {
			where = fmt.Sprintf("%s, line %s, byte %s", f.File, view.Count(f.Line), view.Count(f.Offset))
		}
		if f.Length > 0 {
			where += ", " + size(f.Length)
		}
		lines := append(text.Wrap(fmt.Sprintf("%s %s (%s)", f.Severity, f.Trouble, f.Code), max(8, w-2)), text.Wrap(where, max(8, w-2))...)
		lines = append(lines, text.Wrap(f.Text, max(8, w-2))...)
		for i, l := range lines {
			in.Put(1, 1+i, l, canvas.Fg(canvas.Text))
		}
	}
}

func (s *Screen) drawTotals(c canvas.Canvas, t *track) {
	w, h := c.Size()
	p := &paper{w: max(8, w-2)}
	pair := func(name, value string) {
		if value == "" {
			return
		}
		p.put(text.Pad(name, 16), canvas.Fg(canvas.Dim), 16)
		p.put(value, canvas.Fg(canvas.Text), 16)
		p.end(16)
	}
	figure := func(name string, n *int64, show func(int64) string) {
		if n == nil {
			pair(name, "not recorded")
			return
		}
		pair(name, show(*n))
	}
	total := t.tr.Totals()
	p.say("the whole record", canvas.Fg(canvas.Title).With(canvas.Bold))
	figure("input tokens", total.Input, view.Count[int64])
	figure("  from a cache", total.CacheRead, view.Count[int64])
	figure("  into a cache", total.CacheWrite, view.Count[int64])
	figure("output tokens", total.Output, view.Count[int64])
	figure("  reasoning", total.Reasoning, view.Count[int64])
	pair("counted by", total.Method)
	figure("cost", total.CostMicroUSD, dollars)
	pair("counted by", total.CostMethod)
	pair("charges", view.Count(total.Charges))
	if total.Partial {
		p.say("the record is not read to its end yet", canvas.Fg(canvas.Warn))
	}
	for _, n := range total.Notes {
		p.say("⚠ "+n, canvas.Fg(canvas.Warn))
	}
	if i := t.stepAt(t.sel); i >= 0 {
		p.gap()
		p.say(fmt.Sprintf("up to step %d", i), canvas.Fg(canvas.Title).With(canvas.Bold))
		p.say(firstOf(usageLine(t.tr.Spent(i), view.Count[int64]), "nothing was charged"), canvas.Fg(canvas.Text))
	}
	p.gap()
	info := t.tr.Info()
	p.say("the record", canvas.Fg(canvas.Title).With(canvas.Bold))
	pair("format", strings.TrimSpace(info.Format+" "+info.Version))
	pair("harness", info.Harness)
	pair("model", info.Model)
	pair("session", info.Session)
	pair("territory", info.Territory)
	pair("in", info.WorkDir)
	clock, zero := t.tr.Clock()
	when := clock.String()
	if !zero.IsZero() {
		when += ", from " + zero.Format("2006-01-02 15:04:05") + " UTC"
	}
	pair("clock", when)
	pair("on the heat's", t.note)
	pair("outcome", info.Outcome)
	for _, f := range info.Extra {
		pair(f.Name, f.Value)
	}
	pair("task", text.Truncate(text.Line(info.Task), 400, ""))
	pair("result", text.Truncate(text.Line(info.Result), 400, ""))
	s.chooser.at = max(0, min(s.chooser.at, len(p.rows)-h))
	for y := 0; y < h && s.chooser.at+y < len(p.rows); y++ {
		c.PutCells(1, y, p.rows[s.chooser.at+y].cells)
	}
}

// choice is a line of the filter's panel.
type choice struct {
	head  string // begins a group
	name  string
	n     int // steps; -1 for not counted
	on    bool
	flip  func(f *filter)
	clear bool
}

// choices are what a track can be filtered by.
func (t *track) choices() []choice {
	var out []choice
	f := t.filter
	if !f.empty() {
		out = append(out, choice{name: "all steps", n: t.tr.Len(), clear: true})
	}
	head := "kind"
	add := func(c choice) {
		c.head, head = head, ""
		out = append(out, c)
	}
	var sorts [len(kindOrder)]int
	t.mu.Lock()
	for _, k := range t.kinds {
		sorts[(k&^changedBit)%kindByte(len(kindOrder))]++
	}
	t.mu.Unlock()
	for i, k := range kindOrder {
		if sorts[i] > 0 && k != "" {
			add(choice{name: string(k), n: sorts[i], on: f.sorts[k], flip: func(f *filter) { flip(&f.sorts, k) }})
		}
	}
	for i, n := range t.counts.kinds {
		k := transcript.Kind(i)
		if n > 0 || f.kinds[k] {
			name := k.String()
			if k == transcript.ToolCall {
				name = "any tool"
			}
			add(choice{name: name, n: n, on: f.kinds[k], flip: func(f *filter) { flip(&f.kinds, k) }})
		}
	}
	head = "tool"
	tools := make([]string, 0, len(t.counts.tools))
	for name := range t.counts.tools {
		tools = append(tools, name)
	}
	for name := range f.tools {
		if t.counts.tools[name] == 0 {
			tools = append(tools, name)
		}
	}
	slices.SortFunc(tools, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.counts.tools[b], t.counts.tools[a]), cmp.Compare(a, b))
	})
	for _, name := range tools {
		add(choice{name: name, n: t.counts.tools[name], on: f.tools[name], flip: func(f *filter) { flip(&f.tools, name) }})
	}
	head = "agent"
	if agents := t.agents(); t.lens < 0 && len(agents) > 1 {
		for i, a := range agents[:min(len(agents), 500)] {
			if a.Steps > 0 {
				add(choice{name: t.agentName(i), n: a.Steps, on: f.agents[i], flip: func(f *filter) { flip(&f.agents, i) }})
			}
		}
	}
	return out
}

// flip takes a key into a set, or out of it.
func flip[K comparable](set *map[K]bool, k K) {
	if (*set)[k] {
		delete(*set, k)
		return
	}
	if *set == nil {
		*set = map[K]bool{}
	}
	(*set)[k] = true
}

func (s *Screen) toggle(t *track) {
	list := t.choices()
	if s.chooser.at >= len(list) {
		return
	}
	c := list[s.chooser.at]
	was := t.filter.empty()
	t.filter = t.filter.clone()
	if c.clear {
		t.filter = filter{}
	} else {
		c.flip(&t.filter)
	}
	switch now := t.filter.empty(); { // the line "all steps" came or went above the chosen one
	case was && !now:
		s.chooser.at++
	case !was && now && !c.clear:
		s.chooser.at--
	}
	t.rebuild(t.value())
	t.build()
}

func (s *Screen) drawFilter(c canvas.Canvas, t *track) {
	w, h := c.Size()
	list := t.choices()
	s.chooser.window(len(list), h)
	for y := 0; y < h && s.chooser.top+y < len(list); y++ {
		l := list[s.chooser.top+y]
		c.PutFit(2, y, 6, l.head, canvas.Fg(canvas.Dim))
		box, st := "[ ]", canvas.Fg(canvas.Text)
		if l.on {
			box, st = "[x]", canvas.Fg(canvas.Key).With(canvas.Bold)
		}
		if l.clear {
			box = "   "
		}
		c.Put(9, y, box, st)
		style := st
		for _, k := range kindOrder {
			if string(k) == l.name && k != "" {
				style = signOf(transcript.Head{}, analysis.Kind(l.name)).Style
			}
		}
		c.PutFit(13, y, w-26, l.name, style)
		if l.n >= 0 {
			c.PutRight(w-2, y, 10, view.Count(l.n), canvas.Fg(canvas.Dim))
		}
		if s.chooser.top+y == s.chooser.at {
			view.Choose(c, y)
		}
	}
}
