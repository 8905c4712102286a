package season

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/season/series"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// Together is what several heats say together: a series or a benchmark. Exactly
// one of the two is there.
type Together struct {
	Series    *series.Series
	Benchmark *series.Benchmark
	Figures   *series.Figures // ours; nil without recordings
	Checks    []season.Check
	// Heats are the recordings, by round or arena, as Heat opens them.
	Heats []Heat
}

// Heat is a recording among several.
type Heat struct {
	Name string // of its folder, in the document's
	Run  *series.Run
}

// TogetherSource is where a series or a benchmark comes from.
type TogetherSource struct {
	Name  string
	Watch func() []string // as Source has it
	Load  func() (Together, error)
	Heat  func(name string) (*recording.Recording, error)
}

// Sheet is the screen of a series or a benchmark: one page, of which enter opens
// the heats.
type Sheet struct {
	src TogetherSource
	f   *view.Follower[*Together]
	t   *Together

	trouble string
	page    textPane
	of      *Together // what the page was made from
	width   int
}

// NewSheet reads a series or a benchmark. The error is Load's.
func NewSheet(src TogetherSource) (*Sheet, error) {
	load := func() (*Together, error) {
		t, err := src.Load()
		if err != nil {
			return nil, err
		}
		return &t, nil
	}
	f := follow(src.Watch, load)
	t, err := load()
	if err != nil {
		return nil, err
	}
	return &Sheet{src: src, f: f, t: t}, nil
}

var _ view.Clicker = (*Sheet)(nil)

// Crumbs are the document's kind and name.
func (s *Sheet) Crumbs() []string {
	if s.t.Benchmark != nil {
		return []string{"benchmark", text.Line(s.t.Benchmark.SuiteID)}
	}
	return []string{"series", text.Line(s.src.Name)}
}

// Status says how much of it has been run, and whether it holds.
func (s *Sheet) Status(c canvas.Canvas) {
	w, _ := c.Size()
	what := ""
	if b := s.t.Benchmark; b != nil {
		what = fmt.Sprintf("%d of %s", b.ArenasCompleted, view.Plural(b.ArenasRequested, "arena"))
	} else {
		what = fmt.Sprintf("%d of %s", s.t.Series.RoundsCompleted, view.Plural(s.t.Series.RoundsRequested, "round"))
	}
	m := auditSign(&season.Audit{Checks: s.t.Checks})
	x := c.PutFit(0, 0, w, what+"  ", plain)
	c.PutFit(x, 0, w-x, string(m.Shape)+" "+m.Word, m.Style)
}

// Start begins to follow the document.
func (s *Sheet) Start(view.Host) tea.Cmd {
	s.f.Start()
	return nil
}

// Feed tells that the document was read anew.
func (s *Sheet) Feed() <-chan struct{} { return s.f.Feed() }

// Advance takes the newest reading.
func (s *Sheet) Advance(time.Time) time.Duration {
	t, err, ok := s.f.Take()
	switch {
	case !ok:
	case err != nil:
		s.trouble = "the last good one is shown: " + text.Line(err.Error())
	default:
		s.t, s.trouble = t, ""
	}
	return 0
}

// Close ends the following.
func (s *Sheet) Close() { s.f.Close() }

// Back has nothing to take back.
func (s *Sheet) Back() bool { return false }

// Hints are the page's keys.
func (s *Sheet) Hints() []keymap.Action {
	return []keymap.Action{keymap.Open, keymap.Down, keymap.Up, keymap.PageDown, keymap.Copy, keymap.Leave}
}

// Key handles an action.
func (s *Sheet) Key(h view.Host, a keymap.Action, _ tea.KeyMsg) tea.Cmd {
	s.Advance(h.Now())
	_, height := h.Size()
	by := a.Stride(max(1, height/2), max(1, height-3))
	switch a {
	case keymap.Start:
		by = -1 << 40
	case keymap.End:
		by = 1 << 40
	case keymap.MarkNext:
		s.page.jump(1)
	case keymap.MarkBack:
		s.page.jump(-1)
	case keymap.Open:
		if name := s.page.opens(); name != "" {
			return openHeat(h, name, s.src.Heat)
		}
		h.Say("choose a heat to open its recording")
	case keymap.Copy:
		if s.page.at < len(s.page.lines) {
			what := ""
			for _, g := range s.page.lines[s.page.at].segs {
				what += g.text
			}
			return h.Copy(text.Line(what))
		}
	}
	if by != 0 {
		s.page.move(by)
	}
	return nil
}

// Click chooses the line.
func (s *Sheet) Click(_ view.Host, _, y int) tea.Cmd {
	s.page.at = max(0, min(s.page.top+y-1, len(s.page.lines)-1))
	return nil
}

// Draw draws the page.
func (s *Sheet) Draw(c canvas.Canvas) {
	area := c.Bounds()
	if s.trouble != "" {
		var row canvas.Rect
		row, area = area.CutBottom(1)
		c.PutFit(1, row.Y, row.W-2, "✗ "+s.trouble, alarm)
	}
	if s.of != s.t || s.width != area.W {
		s.of, s.width = s.t, area.W
		s.page.lines = s.lines(area.W - 4)
	}
	name := "series"
	if s.t.Benchmark != nil {
		name = "benchmark"
	}
	s.page.draw(c, area, true, name, "")
}

func (s *Sheet) lines(width int) []line {
	p := &page{width: width}
	if b := s.t.Benchmark; b != nil {
		benchmarkLines(p, b)
	} else {
		seriesLines(p, s.t.Series)
	}
	heatsLines(p, s.t)
	if s.t.Figures != nil {
		figureLines(p, s.t.Figures)
	}
	p.heading("checks")
	for i := range s.t.Checks {
		p.lines = append(p.lines, tellCheck(&s.t.Checks[i], width)...)
	}
	return p.lines
}

// money is a cost, nil for one that is not known.
func money(n *int64) string {
	if n == nil {
		return "unknown"
	}
	yes := true
	return season.Money{MicroUSD: *n, Complete: &yes}.String()
}

func median(ms *int64) string {
	if ms == nil {
		return "none"
	}
	return seconds(*ms)
}

func seriesLines(p *page, x *series.Series) {
	wide := max(8, min(32, (p.width-58)/2))
	p.heading("standings on %s", x.ArenaID)
	p.row(cell("agent", wide, dim), cell("model", wide, dim), right("won", 7, dim), right("durable", 7, dim), right("median", 9, dim), right("cost", 10, dim), right("a durable", 10, dim))
	for _, st := range x.Standings {
		p.row(cell(st.Agent, wide, plain.With(canvas.Bold)), cell(st.Model, wide, dim), right(fmt.Sprintf("%d of %d", st.Wins, st.Appearances), 7, plain), right(fmt.Sprint(st.DurableDeployments), 7, plain),
			right(median(st.MedianDurableMS), 9, plain), right(money(st.CostMicroUSD), 10, plain), right(money(st.CostPerDurable), 10, dim))
	}
}

func benchmarkLines(p *page, b *series.Benchmark) {
	wide := max(8, min(40, p.width-66))
	p.heading("models")
	p.row(cell("model", wide, dim), right("won", 9, dim), right("durable", 7, dim), right("median", 9, dim), right("milestones", 10, dim), right("cost", 10, dim), right("a durable", 10, dim))
	for _, m := range b.Standings {
		p.row(cell(m.Model, wide, plain.With(canvas.Bold)), right(fmt.Sprintf("%d of %d", m.Wins, m.Appearances), 9, plain), right(fmt.Sprint(m.DurableDeployments), 7, plain), right(median(m.MedianDurableMS), 9, plain),
			right(fmt.Sprintf("%d/%d", m.MilestonePasses, m.MilestonesAvailable), 10, plain), right(money(m.CostMicroUSD), 10, plain), right(money(m.CostPerDurable), 10, dim))
		p.say(2, dim, "%s, effort %s", m.Adapter, m.ReasoningEffort)
	}
	p.heading("arenas")
	for i, x := range b.Plan {
		state := view.NewSign('○', "waiting", canvas.Dim)
		done := 0
		if i < len(b.Arenas) {
			a := b.Arenas[i]
			done = a.RoundsCompleted
			switch {
			case a.Aborted:
				state = view.NewSign('✗', "aborted", canvas.Bad)
			case done >= a.RoundsRequested:
				state = view.NewSign('✓', "complete", canvas.Ok)
			default:
				state = view.NewSign('●', "running", canvas.Accent)
			}
		}
		p.row(seg{string(state.Shape) + " ", state.Style}, cell(x.ArenaID, max(26, wide), plain), cell(state.Word, 9, state.Style), seg{fmt.Sprintf("%d of %s", done, view.Plural(x.Rounds, "round")), dim})
	}
}

// heatsLines list the heats; enter opens one.
func heatsLines(p *page, t *Together) {
	if len(t.Heats) == 0 {
		return
	}
	p.heading("heats")
	wide := max(10, min(36, p.width-58))
	for _, h := range t.Heats {
		p.opens = h.Name
		if h.Run == nil {
			p.row(seg{"○ ", dim}, cell(h.Name, wide, plain), seg{"its recording is not here", dim})
			continue
		}
		m := heatSign("over")
		who := "nobody won"
		switch {
		case !h.Run.Finished:
			m, who = heatSign("aborted"), "aborted"
		case h.Run.Winner == "":
			m = heatSign("drawn")
		}
		at := ""
		for _, x := range h.Run.Players {
			if x.Territory == h.Run.Winner && h.Run.Winner != "" {
				who = x.Agent + " won at " + x.Territory
				if x.DurableMS != nil {
					at = seconds(*x.DurableMS)
				}
			}
		}
		p.row(seg{string(m.Shape) + " ", m.Style}, cell(h.Name, wide, plain), cell(who, 40, m.Style), right(at, 9, plain))
	}
	p.opens = ""
}

// figureLines are ours: shares with intervals, pairs, what is not comparable.
func figureLines(p *page, f *series.Figures) {
	share := func(i series.Interval) string {
		return fmt.Sprintf("%.0f %% [%.0f, %.0f]", 100*i.Estimate, 100*i.Low, 100*i.High)
	}
	p.heading("our figures, with intervals that hold 19 times in 20")
	for _, x := range f.Players {
		p.row(seg{x.Model, plain.With(canvas.Bold)}, seg{fmt.Sprintf("  %s %s", x.Adapter, x.Effort), dim})
		p.say(2, plain, "%s, won %s, durable %s, outraced %d", view.Plural(x.Heats, "heat"), share(x.Won), share(x.Durable), x.Outraced)
		if d := x.DurableMS; d != nil {
			p.say(2, plain, "durable after %.1f s [%.1f, %.1f], %s", d.Estimate/1000, d.Low/1000, d.High/1000, d.How)
		}
		switch c := x.CostMicroUSD; {
		case c != nil:
			p.say(2, plain, "cost a heat $%.4f [%.4f, %.4f], unknown in %s", c.Estimate/1e6, c.Low/1e6, c.High/1e6, view.Plural(x.CostUnknown, "heat"))
		default:
			p.say(2, dim, "cost unknown in %s", view.Plural(x.CostUnknown, "heat"))
		}
	}
	for _, x := range f.Pairs {
		p.say(0, plain, "%s against %s: ahead %d, behind %d, even %d of %s, share %s", x.A, x.B, x.Ahead, x.Back, x.Even, view.Plural(x.Heats, "common heat"), share(x.Share))
	}
	if len(f.Apart) > 0 {
		p.heading("not comparable")
	}
	for _, x := range f.Apart {
		p.say(0, canvas.Fg(canvas.Warn), "%s: %s", x.Heat, x.Why)
	}
}
