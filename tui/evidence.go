package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/view"
)

// evidenceScreen is a milestone's story on one seat: what was tried and what
// came of it on the left, the probe records behind the chosen line on the right.
type evidenceScreen struct {
	*heat
	territory, milestone string
	chosen               int
	up                   int // lines scrolled down in the record
	right                bool

	told     *world.World // that story was gathered from
	story    []trial
	shownFor proofKey // what lines were made from
	record   string   // the file that they come from
	lines    []styledLine
}

// proofKey says what the record's pane shows.
type proofKey struct {
	first, event, width int
}

type styledLine struct {
	text  string
	style canvas.Style
}

// trial is one line of the story: a run of equal failures, an attack, a pass.
type trial struct {
	ms     uint64
	shape  rune
	style  canvas.Style
	text   string
	note   string
	detail string
	first  int // its first event, by which it is known; -1 while there is none
	event  int // its last event
}

func newEvidence(h *heat, territory, milestone string) *evidenceScreen {
	return &evidenceScreen{heat: h, territory: territory, milestone: milestone, chosen: 1 << 30}
}

func (s *evidenceScreen) crumbs() []string {
	return append(s.heat.crumbs(), s.territory, s.milestone)
}

// trials are the milestone's story up to the playhead, gathered once per world.
func (s *evidenceScreen) trials() []trial {
	if s.told != s.world {
		s.told, s.story = s.world, s.gather()
	}
	return s.story
}

func (s *evidenceScreen) gather() []trial {
	seat := s.world.Seat(s.territory)
	if seat == nil {
		return nil
	}
	var out []trial
	for _, sp := range seat.Spans.All() {
		if sp.Milestone != s.milestone {
			continue
		}
		note := ""
		if sp.Count > 1 {
			note = fmt.Sprintf("×%d %s", sp.Count, view.Span(sp.LastMS-sp.SinceMS))
		}
		out = append(out, trial{
			ms: sp.SinceMS, shape: '✗', style: canvas.Fg(canvas.Bad), text: sp.Category + ": " + firstLine(sp.Detail),
			note: note, detail: sp.Detail, first: sp.First, event: sp.Last,
		})
	}
	for _, a := range seat.Attacks.All() {
		if a.Milestone != s.milestone {
			continue
		}
		t := trial{ms: a.StartMS, shape: '⚔', style: canvas.Fg(canvas.Warn), text: "attack: " + a.Attack, note: "runs", detail: a.Detail, first: a.Start, event: a.Start}
		if a.Done {
			t.event, t.note = a.End, "broke through"
			t.style = canvas.Fg(canvas.Bad)
			if a.Held {
				t.note, t.style = "withstood", canvas.Fg(canvas.Ok)
			}
			if !a.Undone {
				t.note += ", not undone"
			}
		}
		out = append(out, t)
	}
	for _, r := range seat.Revocations.All() {
		if r.Milestone == s.milestone {
			out = append(out, trial{ms: r.MS, shape: '↶', style: canvas.Fg(canvas.Bad), text: "revoked: " + firstLine(r.Reason), detail: r.Reason, first: r.Index, event: r.Index})
		}
	}
	if m := seat.Milestone(s.milestone); m != nil {
		switch {
		case m.Passed:
			out = append(out, trial{ms: m.PassedMS, shape: '✓', style: canvas.Fg(canvas.Ok), text: fmt.Sprintf("passed, %s", text.Count(m.Points, "point")), first: m.PassedIndex, event: m.PassedIndex, detail: compactJSON(m.Evidence)})
		case m.Evaluating:
			out = append(out, trial{ms: m.StartedMS, shape: '◐', style: canvas.Fg(canvas.Accent), text: "verifying", first: -1, event: -1})
		}
	}
	slices.SortStableFunc(out, func(a, b trial) int { return cmp.Compare(a.ms, b.ms) })
	return out
}

// recordOf is the evidence file that an event names.
func (h *heat) recordOf(i int) string {
	if i < 0 {
		return ""
	}
	e, err := h.rec.Event(i)
	if err != nil {
		return ""
	}
	switch b := e.Body.(type) {
	case event.MilestoneFailed:
		return b.Record
	case event.MilestonePassed:
		return b.Record
	case event.MilestoneRevoked:
		return b.Record
	case event.AttackFinished:
		return b.Record
	}
	return ""
}

func (s *evidenceScreen) draw(c canvas.Canvas) {
	w, h := c.Size()
	trials := s.trials()
	s.chosen = max(0, min(s.chosen, len(trials)-1))
	low, top := c.Bounds().CutBottom(s.laneRows())
	s.drawLanes(c.Sub(low))
	var left, right canvas.Rect
	if w >= 100 {
		left, right = top.CutLeft(w * 2 / 5)
	} else {
		left, right = top.CutTop(min(len(trials)+2, h/3))
	}
	s.drawTrials(c, left, trials)
	s.drawRecord(c, right, trials)
}

func (s *evidenceScreen) drawTrials(c canvas.Canvas, r canvas.Rect, trials []trial) {
	outline, line := view.Outline(!s.right)
	in := c.Sub(c.Frame(r, outline, s.milestone, countNote(len(trials)), line, canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	if len(trials) == 0 {
		in.PutFit(1, 0, w-2, "not tried yet", canvas.Fg(canvas.Dim))
	}
	first := max(0, s.chosen-h+1)
	for y := 0; y < h && first+y < len(trials); y++ {
		t := trials[first+y]
		in.Put(1, y, view.Clock(t.ms), canvas.Fg(canvas.Dim))
		in.Set(9, y, t.shape, t.style.With(canvas.Bold))
		note := t.note
		if t.event < 0 {
			note = view.Span(s.now - min(s.now, t.ms))
		}
		right := in.PutRight(w-1, y, w/2, note, canvas.Fg(canvas.Dim))
		in.PutFit(11, y, right-12, t.text, t.style)
		if first+y == s.chosen {
			view.Choose(in, y)
		}
	}
}

func (s *evidenceScreen) drawRecord(c canvas.Canvas, r canvas.Rect, trials []trial) {
	outline, line := view.Outline(s.right)
	if s.chosen >= len(trials) {
		c.Frame(r, outline, "evidence", "", line, canvas.Fg(canvas.Title).With(canvas.Bold))
		return
	}
	t := trials[s.chosen]
	key := proofKey{t.first, t.event, r.W}
	switch same := key.first == s.shownFor.first && key.width == s.shownFor.width; {
	case key == s.shownFor && s.lines != nil:
	case same && s.right && s.lines != nil:
		// Somebody reads: what a newer attempt brings waits.
	default:
		if !same {
			s.up = 0
		}
		s.shownFor = key
		s.record = s.recordOf(t.event)
		s.lines = s.recordLines(t, s.record, r.W-4)
	}
	in := c.Sub(c.Frame(r, outline, "evidence", s.record, line, canvas.Fg(canvas.Title).With(canvas.Bold)))
	w, h := in.Size()
	s.up = max(0, min(s.up, len(s.lines)-h))
	for y := 0; y < h && s.up+y < len(s.lines); y++ {
		in.PutFit(1, y, w-2, s.lines[s.up+y].text, s.lines[s.up+y].style)
	}
	view.More(c, r, len(s.lines)-h-s.up)
}

// proof is an evidence file, as far as it is shown.
type proof struct {
	Verdict   string          `json:"verdict"`
	Category  string          `json:"category"`
	Source    string          `json:"source"`
	Reason    string          `json:"reason"`
	Verifier  string          `json:"verifier"`
	SHA       string          `json:"verifier_sha256"`
	StartedMS uint64          `json:"started_ms"`
	EndedMS   uint64          `json:"finished_ms"`
	NotBefore *uint64         `json:"not_before_ms"`
	Held      *uint64         `json:"held_ms"`
	Evidence  json.RawMessage `json:"evidence"`
	Records   []struct {
		Call      string         `json:"call"`
		Machine   string         `json:"machine"`
		Request   map[string]any `json:"request"`
		Response  map[string]any `json:"response"`
		AtMS      uint64         `json:"at_ms"`
		TookMS    uint64         `json:"took_ms"`
		Tries     int            `json:"tries"`
		Outside   bool           `json:"outside"`
		Forgeable string         `json:"forgeable"`
		Error     string         `json:"error"`
		Refused   string         `json:"refused"`
	} `json:"records"`
	Dropped int `json:"dropped"`
}

// recordLines are the probe records behind a trial: request, response, time,
// and what root in the guest could have forged.
func (s *evidenceScreen) recordLines(t trial, record string, w int) []styledLine {
	var out []styledLine
	add := func(st canvas.Style, format string, a ...any) {
		for _, l := range text.Wrap(text.Block(fmt.Sprintf(format, a...)), max(8, w)) {
			out = append(out, styledLine{l, st})
		}
	}
	dim, plain := canvas.Fg(canvas.Dim), canvas.Fg(canvas.Text)
	if record == "" {
		add(dim, "No probe records: this recording keeps none for it.")
		if t.detail != "" {
			add(plain, "%s", t.detail)
		}
		return out
	}
	data, err := s.rec.File(record)
	var p proof
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		add(canvas.Fg(canvas.Bad), "%s cannot be read: %v", record, err)
		add(plain, "%s", t.detail)
		return out
	}
	if p.Verdict != "" {
		add(t.style.With(canvas.Bold), "%s  %s", p.Verdict, p.Reason)
	}
	if p.Source != "" || p.Category != "" {
		add(dim, "category %s, charged to %s", cmp.Or(p.Category, "none"), cmp.Or(p.Source, "nobody"))
	}
	add(dim, "%s (%.12s), %s to %s", p.Verifier, p.SHA, view.Clock(p.StartedMS), view.Clock(p.EndedMS))
	if p.Held != nil {
		from := "the start"
		if p.NotBefore != nil {
			from = view.Clock(*p.NotBefore)
		}
		add(dim, "became true after %s, seen true at %s", from, view.Clock(*p.Held))
	}
	if len(p.Evidence) > 0 && string(p.Evidence) != "null" {
		add(plain, "evidence %s", compactJSON(p.Evidence))
	}
	for _, r := range p.Records {
		out = append(out, styledLine{})
		where, st := "inside", canvas.Fg(canvas.Text)
		if r.Outside {
			where, st = "OUTSIDE", canvas.Fg(canvas.Accent)
		}
		if r.Error != "" || r.Refused != "" {
			st = canvas.Fg(canvas.Bad)
		}
		add(st.With(canvas.Bold), "%s %s %s %s  %s", view.Clock(r.AtMS), where, r.Call, r.Machine, view.Span(r.TookMS))
		add(plain, "→ %s", flat(r.Request))
		add(plain, "← %s", flat(r.Response))
		if r.Tries > 1 {
			add(dim, "%d tries", r.Tries)
		}
		if r.Error != "" {
			add(canvas.Fg(canvas.Bad), "%s", r.Error)
		}
		if r.Refused != "" {
			add(canvas.Fg(canvas.Bad), "refused: %s", r.Refused)
		}
		if r.Forgeable != "" {
			add(dim, "root could forge: %s", r.Forgeable)
		}
	}
	if p.Dropped > 0 {
		add(dim, "%s left out of the middle", text.Count(p.Dropped, "record"))
	}
	return out
}

func compactJSON(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	if m, ok := v.(map[string]any); ok {
		return flat(m)
	}
	return fmt.Sprint(v)
}

// flat is a map on one line, its keys sorted.
func flat(m map[string]any) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s=%v", k, m[k]))
	}
	return strings.Join(parts, "  ")
}

func (s *evidenceScreen) key(m *model, a keymap.Action, raw tea.KeyMsg) tea.Cmd {
	by := a.Stride(10, 20)
	switch {
	case by != 0 && s.right:
		s.up += by
	case by != 0:
		s.chosen += by
	case a == keymap.NextPane, a == keymap.PrevPane, a == keymap.Open:
		s.right = !s.right
	case a == keymap.Left, a == keymap.Right:
		s.right = a == keymap.Right
	default:
		if cmd, moved := s.moveInTime(m, a); moved {
			return cmd
		}
		return s.act(m, a)
	}
	return nil
}

func (s *evidenceScreen) hints() []keymap.Action {
	return []keymap.Action{keymap.NextPane, keymap.Down, keymap.Up, keymap.PlayPause, keymap.EventBack, keymap.EventNext, keymap.Why, keymap.Back}
}

func (s *evidenceScreen) advance(now time.Time) time.Duration { return s.heat.advance(now) }
