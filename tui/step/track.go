package step

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"refbox/engine/analysis"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// mark is an instant of the heat between steps: a milestone, and what became of
// it.
type mark struct {
	ms    int64 // on the heat's clock
	shape rune
	bad   bool
	text  string
}

// track is a way through a record: which of its steps are listed, which is
// chosen, where its clock stands on the common one.
type track struct {
	*record
	name  string
	owned bool   // the record is closed with the track
	lens  int    // the only agent whose steps are listed; -1 for all
	lane  string // by its name, until it is known; then nothing of others is listed
	acts  bool   // of a heat's log only what the seat itself did
	// territory is the seat's, in a heat.
	territory string
	heatFor   int            // events of the heat that marks and sessions are of
	sessions  map[int]string // recorded ones, by the action's number
	// zero is the common clock's time when the record's is 0, give or take slack.
	zero, slack int64
	placed      bool   // zero is known
	note        string // about the clock
	marks       []mark
	cast        func(h transcript.Head) string // the recorded session of a step; nil

	filter filter
	rows   []int32 // steps; or -1 minus the place in marks
	built  int     // steps that were considered
	ended  bool    // the marks behind the last step are listed
	over   []int32 // marks that were listed
	counts tally

	sel    int   // in rows
	wanted int32 // what sel is to be, while rows are built; noRow: nothing
	top    int   // of the list
	pinned bool  // to the newest step
	up     int   // rows of the page scrolled down
	open   bool  // the chosen step's parts are whole
	opened int32 // the row that open and up are about

	asked  job // what was asked of the clerk last, and its end
	asking <-chan struct{}

	cached    []transcript.AgentInfo // the record's, when it had cachedFor steps
	cachedFor int
	starts    map[int]int        // by the step that started them
	report    *transcript.Report // when it had reportFor steps
	reportFor int
	sum       *transcript.Totals // when it had sumFor steps
	sumFor    int
}

const noRow = int32(-1 << 31)

// tally counts what a filter can choose.
type tally struct {
	kinds  [8]int
	tools  map[string]int
	widest int // of the tools' names, in cells
}

// filter says which steps are listed; the zero filter lists all.
type filter struct {
	kinds  map[transcript.Kind]bool
	sorts  map[analysis.Kind]bool
	tools  map[string]bool
	agents map[int]bool
}

func (f filter) empty() bool {
	return len(f.kinds) == 0 && len(f.sorts) == 0 && len(f.tools) == 0 && len(f.agents) == 0
}

func (f filter) clone() filter {
	c := filter{map[transcript.Kind]bool{}, map[analysis.Kind]bool{}, map[string]bool{}, map[int]bool{}}
	for k := range f.kinds {
		c.kinds[k] = true
	}
	for k := range f.sorts {
		c.sorts[k] = true
	}
	for k := range f.tools {
		c.tools[k] = true
	}
	for k := range f.agents {
		c.agents[k] = true
	}
	return c
}

// takes says whether a step is listed. Kinds of records and of actions are one
// choice: either will do.
func (f filter) takes(h transcript.Head, kind analysis.Kind) bool {
	if len(f.kinds)+len(f.sorts) > 0 && !f.kinds[h.Kind] && !(kind != "" && f.sorts[kind]) {
		return false
	}
	if len(f.tools) > 0 && !f.tools[h.Tool] {
		return false
	}
	return len(f.agents) == 0 || f.agents[h.Agent]
}

func (f filter) String() string {
	var out []string
	for k := range f.kinds {
		out = append(out, k.String())
	}
	for k := range f.sorts {
		out = append(out, string(k))
	}
	for k := range f.tools {
		out = append(out, k)
	}
	for k := range f.agents {
		out = append(out, fmt.Sprintf("agent %d", k))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func newTrack(r *record, name string) *track {
	return &track{record: r, name: name, lens: -1, wanted: noRow, opened: noRow, counts: tally{tools: map[string]int{}}}
}

// builtAtOnce bounds the steps that are considered in one frame.
const builtAtOnce = 8_000

// build lists more of the steps that have been read, and says whether there are
// more to list.
func (t *track) build() (more bool) {
	n := t.tr.Len()
	if t.built > n { // the record was replaced
		t.rebuild(t.value())
	}
	limit := min(n, t.built+builtAtOnce)
	if len(t.filter.sorts) > 0 {
		passed, all := t.passed()
		if limit = min(limit, passed); !all && limit < n {
			more = true
		}
	}
	if t.built < limit {
		if t.ended {
			t.rebuild(t.value()) // the marks behind the end are now between steps
			limit = min(n, builtAtOnce)
		}
		t.tr.Heads(t.built, func(h transcript.Head) bool {
			if h.Index >= limit {
				return false
			}
			t.list(h)
			t.built = h.Index + 1
			return true
		})
	}
	if t.built >= n && t.tr.Complete() && !t.ended {
		t.ended = true
		for len(t.over) < len(t.marks) {
			t.listMark()
		}
	}
	if t.wanted != noRow && (t.built >= n || int(t.wanted) < t.built && t.wanted >= 0) {
		t.sel, t.wanted = t.find(t.wanted), noRow
	}
	if t.pinned {
		t.sel = len(t.rows) - 1
	}
	t.sel = max(0, min(t.sel, len(t.rows)-1))
	return more || t.built < n
}

func (t *track) list(h transcript.Head) {
	if t.lens < 0 && t.lane != "" {
		t.lens = t.agentCalled(t.lane)
	}
	if h.Agent != t.lens && (t.lens >= 0 || t.lane != "") || t.acts && !acted(h) {
		return
	}
	t.counts.kinds[int(h.Kind)%len(t.counts.kinds)]++
	if h.Tool != "" && (len(t.counts.tools) < 500 || t.counts.tools[h.Tool] > 0) {
		t.counts.tools[h.Tool]++
		t.counts.widest = max(t.counts.widest, text.Width(h.Tool))
	}
	kind := analysis.Kind("")
	if len(t.filter.sorts) > 0 {
		kind, _, _ = t.verdict(h.Index)
	}
	if !t.filter.takes(h, kind) {
		return
	}
	for len(t.over) < len(t.marks) && h.AtMS >= 0 && t.marks[len(t.over)].ms < h.AtMS+t.zero {
		t.listMark()
	}
	t.rows = append(t.rows, int32(h.Index))
}

// acted says that a step of a heat's log is the seat's own doing.
func acted(h transcript.Head) bool {
	switch h.Kind {
	case transcript.ToolCall, transcript.Output, transcript.Message:
		return true
	}
	return false
}

func (t *track) listMark() {
	i := int32(len(t.over))
	t.over = append(t.over, i)
	t.rows = append(t.rows, -1-i)
}

// rebuild lists anew, with the same row chosen.
func (t *track) rebuild(want int32) {
	t.rows, t.built, t.ended, t.over = t.rows[:0], 0, false, t.over[:0]
	t.counts = tally{tools: map[string]int{}}
	t.wanted = want
}

// value is the chosen row; noRow while there is none.
func (t *track) value() int32 {
	if t.wanted != noRow {
		return t.wanted
	}
	if t.sel < 0 || t.sel >= len(t.rows) {
		return noRow
	}
	return t.rows[t.sel]
}

// find is the row of a step or a mark; of a step that is not listed, the next
// one.
func (t *track) find(want int32) int {
	if want < 0 {
		return max(0, slices.Index(t.rows, want))
	}
	i := sort.Search(len(t.rows), func(i int) bool { return t.stepAt(i) >= int(want) })
	for i < len(t.rows) && t.rows[i] < 0 {
		i++
	}
	return max(0, min(i, len(t.rows)-1))
}

// stepAt is the step of a row, of a mark that of the step before it; -1 before
// the first.
func (t *track) stepAt(i int) int {
	if i = t.rowBefore(i); i < 0 {
		return -1
	}
	return int(t.rows[i])
}

// onMark says that a mark is chosen and no step.
func (t *track) onMark() bool {
	v := t.value()
	return v < 0 && v != noRow
}

// rowBefore is the last row of a step at or above i; -1 when there is none.
func (t *track) rowBefore(i int) int {
	for i >= 0 && t.rows[i] < 0 {
		i--
	}
	return i
}

// chosen is the step that is chosen; false on a mark, or when there is none.
func (t *track) chosen() (transcript.Head, bool) {
	v := t.value()
	if v < 0 {
		return transcript.Head{}, false
	}
	return t.tr.Head(int(v)), int(v) < t.tr.Len()
}

// choose moves to a row.
func (t *track) choose(i int) {
	i = max(0, min(i, len(t.rows)-1))
	t.sel, t.wanted = i, noRow
	t.pinned = false
}

// goTo moves to a step, once it has been read.
func (t *track) goTo(step int) {
	t.pinned = false
	t.wanted = int32(step)
	if t.built > step {
		t.choose(t.find(int32(step)))
	}
}

// when is a row's time on the common clock; false when it has none.
func (t *track) when(i int) (int64, bool) {
	if i < 0 || i >= len(t.rows) {
		return 0, false
	}
	if v := t.rows[i]; v < 0 {
		return t.marks[-1-v].ms, true
	}
	h := t.tr.Head(int(t.rows[i]))
	return h.AtMS + t.zero, h.AtMS >= 0
}

// at is the last row that had begun at a time of the common clock.
func (t *track) at(ms int64) int {
	i := sort.Search(len(t.rows), func(i int) bool {
		w, ok := t.when(i)
		return ok && w > ms
	})
	return max(0, i-1)
}

// timed says that the record has a clock.
func (t *track) timed() bool {
	c, _ := t.tr.Clock()
	return c != transcript.NoClock
}

// setMarks takes over the milestones of a heat, by their time.
func (t *track) setMarks(marks []mark) {
	t.marks = marks
	t.rebuild(t.value())
}

// agentCalled is the agent with a name; -1 while none is known.
func (t *track) agentCalled(id string) int {
	for i, a := range t.agents() {
		if a.ID == id {
			return i
		}
	}
	return -1
}

// agents are the record's.
func (t *track) agents() []transcript.AgentInfo {
	if n := t.tr.Len(); t.cachedFor != n || t.cached == nil {
		t.cached, t.cachedFor = t.tr.Agents(), n
		t.starts = map[int]int{}
		for i, a := range t.cached {
			if i > 0 && a.Step >= 0 && (a.File != "" || a.Steps > 0) {
				t.starts[a.Step] = i
			}
		}
	}
	return t.cached
}

// subagent is the agent that a step has started, as an index of Agents; -1 for
// none.
func (t *track) subagent(h transcript.Head) int {
	t.agents()
	if i, ok := t.starts[h.Index]; ok && i != t.lens {
		return i
	}
	return -1
}

func (t *track) agentName(i int) string {
	agents := t.agents()
	if i < 0 || i >= len(agents) {
		return ""
	}
	return firstOf(agents[i].Name, agents[i].ID)
}
