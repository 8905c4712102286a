package transcript

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"refbox/engine/text"
)

// maxSteps bounds the steps that are kept in memory, maxNames the different
// names (tools, files, agents) that a hostile record can make us keep.
const (
	maxSteps = 2 << 20
	maxNames = 60_000
)

const noTime = math.MinInt64

// entry is a step in memory. Times are milliseconds: since 1970 for times of
// day, since the transcript's zero otherwise.
type entry struct {
	off, length       int64
	resOff, resLength int64 // of the record that holds the result; resLength 0: none
	at                int64 // noTime: not recorded
	clock             int64 // at, made monotone
	dur               int32 // -1: unknown
	pos               int32
	file, resFile     uint32
	tool              uint16
	agent             uint16
	block, resBlock   uint16 // which block of the record
	flags             Flags
	kind              Kind
	actor             Actor
	class             Class
	outcome           Outcome
}

const pageSize = 4096

// charge is a usage and the step that it belongs to.
type charge struct {
	step int32
	usageFigures
}

// usageFigures is Usage in memory: -1 is not recorded.
type usageFigures struct {
	in, cacheRead, cacheWrite, out, reasoning, cost int64
}

var noUsage = usageFigures{-1, -1, -1, -1, -1, -1}

func (u usageFigures) empty() bool { return u == noUsage }

func (u usageFigures) usage() Usage {
	return Usage{known(u.in), known(u.cacheRead), known(u.cacheWrite), known(u.out), known(u.reasoning), known(u.cost)}
}

// add sums what is known; a sum is unknown while nothing of it is known.
func (u *usageFigures) add(v usageFigures) {
	u.in, u.cacheRead, u.cacheWrite = plus(u.in, v.in), plus(u.cacheRead, v.cacheRead), plus(u.cacheWrite, v.cacheWrite)
	u.out, u.reasoning, u.cost = plus(u.out, v.out), plus(u.reasoning, v.reasoning), plus(u.cost, v.cost)
}

func plus(a, b int64) int64 {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	case a > math.MaxInt64-b:
		return math.MaxInt64
	}
	return a + b
}

func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// microUSD turns dollars into micro-dollars; -1 for what is no amount.
func microUSD(dollars float64, ok bool) int64 {
	if !ok || !(dollars >= 0) || dollars > 1e12 {
		return -1
	}
	return int64(math.Round(dollars * 1e6))
}

// index is what importers fill and readers read, each under its lock and for a
// moment only.
type index struct {
	mu       sync.RWMutex
	pages    [][]entry
	n        int
	tools    []string
	toolIDs  map[string]uint16
	files    []string
	agents   []AgentInfo
	charges  []charge
	mixed    bool // charges are not in the order of their steps
	findings []Finding
	counts   map[Trouble]int
	info     Info
	clock    Clock
	totals   Totals           // rules and, where the record has them, figures
	given    bool             // totals has the figures; else they are summed
	lastTime map[uint16]int64 // by agent: the clock is monotone for each
	zero     int64            // the first time of day: AtMS counts from it
	records  int
	read     int64  // bytes
	foretold int    // a step that a finding points at before it is added
	full     bool   // more steps than are kept
	lined    bool   // pos counts lines
	current  uint32 // the file of steps that name none
}

func newIndex(format, file string) *index {
	return &index{
		toolIDs: map[string]uint16{}, tools: []string{""}, counts: map[Trouble]int{},
		files: []string{file}, agents: []AgentInfo{{ID: "main", Parent: -1, Step: -1}},
		info: Info{Format: format}, lastTime: map[uint16]int64{}, zero: noTime, foretold: -1,
		totals: Totals{Method: noneRecorded, CostMethod: noneRecorded},
	}
}

const noneRecorded = "none recorded"

// step makes an entry with nothing known.
func step(kind Kind, actor Actor, off, length int64) entry {
	return entry{kind: kind, actor: actor, off: off, length: length, at: noTime, dur: -1, pos: -1}
}

// add appends a step and returns its number, -1 when no more are kept.
func (x *index) add(e entry) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n >= maxSteps {
		if !x.full {
			x.full = true
			x.report(Finding{Severity: Break, Trouble: Bounded, Code: "too-many-steps", Offset: e.off, Step: -1,
				Text: fmt.Sprintf("more than %d steps: the rest is left out", maxSteps)})
		}
		return -1
	}
	if e.at != noTime {
		if x.zero == noTime {
			x.zero = e.at
		}
	}
	e.clock = x.tick(e)
	if e.file == 0 {
		e.file = x.current
	}
	if x.foretold == x.n {
		e.flags |= Anomalous
	}
	if x.n%pageSize == 0 {
		x.pages = append(x.pages, make([]entry, 0, pageSize))
	}
	if int(e.agent) < len(x.agents) {
		x.agents[e.agent].Steps++
	}
	last := len(x.pages) - 1
	x.pages[last] = append(x.pages[last], e)
	x.n++
	return x.n - 1
}

// change edits a step that was added.
func (x *index) change(i int, edit func(e *entry)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i >= 0 && i < x.n {
		edit(&x.pages[i/pageSize][i%pageSize])
	}
}

func (x *index) at(i int) (entry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if i < 0 || i >= x.n {
		return entry{}, false
	}
	return x.pages[i/pageSize][i%pageSize], true
}

// each calls yield for the steps from i on, a page at a time, so that readers
// never wait long.
func (x *index) each(i int, yield func(i int, e entry) bool) {
	for {
		x.mu.RLock()
		if i < 0 || i >= x.n {
			x.mu.RUnlock()
			return
		}
		page := slices.Clone(x.pages[i/pageSize][i%pageSize:])
		x.mu.RUnlock()
		for _, e := range page {
			if !yield(i, e) {
				return
			}
			i++
		}
	}
}

// reclock makes the clock monotone again after times were set late.
func (x *index) reclock() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lastTime, x.zero = map[uint16]int64{}, noTime
	for _, page := range x.pages {
		for i := range page {
			if page[i].at != noTime {
				if x.zero == noTime {
					x.zero = page[i].at
				}
			}
			page[i].clock = x.tick(page[i])
		}
	}
}

// tick moves an agent's clock to a step's time, never back.
func (x *index) tick(e entry) int64 {
	last, ok := x.lastTime[e.agent]
	if !ok {
		last = noTime
	}
	if e.at > last {
		last = e.at
		x.lastTime[e.agent] = last
	}
	return last
}

// tool gives a tool's name a number.
func (x *index) tool(name string) uint16 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, ok := x.toolIDs[name]; ok {
		return id
	}
	if len(x.tools) >= maxNames {
		return x.toolIDs["…"]
	}
	if len(x.tools) == maxNames-1 {
		name = "…"
	}
	id := uint16(len(x.tools))
	x.tools = append(x.tools, text.Truncate(text.Line(name), 80, ""))
	x.toolIDs[name] = id
	return id
}

// file gives a file's name a number.
func (x *index) file(name string) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files = append(x.files, name)
	return uint32(len(x.files) - 1)
}

// fileName is the name of a file by its number.
func (x *index) fileName(file uint32) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.files[min(int(file), len(x.files)-1)]
}

// agent adds an agent and returns its number; when there are too many, the main
// one's.
func (x *index) agent(a AgentInfo) uint16 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.agents) >= maxNames {
		return 0
	}
	a.ID, a.Name = label(a.ID), label(a.Name)
	x.agents = append(x.agents, a)
	return uint16(len(x.agents) - 1)
}

func (x *index) changeAgent(i int, edit func(a *AgentInfo)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	edit(&x.agents[i])
}

// describe edits what the transcript says of itself.
func (x *index) describe(edit func(i *Info)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	edit(&x.info)
}

// label sets one name of what describe edits.
func (x *index) label(field *string, name string) { x.describe(func(*Info) { *field = label(name) }) }

func (x *index) setClock(c Clock) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clock = c
}

// method names the rules by which charges are summed.
func (x *index) method(tokens, cost string, notes ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if tokens != "" {
		x.totals.Method = tokens
	}
	if cost != "" {
		x.totals.CostMethod = cost
	}
	for _, n := range notes {
		if !slices.Contains(x.totals.Notes, n) {
			x.totals.Notes = append(x.totals.Notes, n)
		}
	}
}

// give sets totals that the record itself states.
func (x *index) give(u usageFigures, tokens, cost string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.given, x.totals.Usage = true, u.usage()
	if u.cost < 0 {
		cost = ""
	}
	v := u
	v.cost = -1
	if v.empty() {
		tokens = ""
	}
	if tokens != "" {
		x.totals.Method = tokens
	}
	if cost != "" {
		x.totals.CostMethod = cost
	}
}

// charge notes a usage; the number it returns can be used to change it.
func (x *index) charge(step int, u usageFigures) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.charges); n > 0 && x.charges[n-1].step > int32(step) {
		x.mixed = true
	}
	x.charges = append(x.charges, charge{int32(step), u})
	return len(x.charges) - 1
}

func (x *index) recharge(i int, u usageFigures) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.charges[i].usageFigures = u
}

func (x *index) charged(i int) charge {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.charges[i]
}

// find reports a finding and marks its step.
func (x *index) find(f Finding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report(f)
}

// report is find for those who hold the lock.
func (x *index) report(f Finding) {
	if f.Step >= 0 && f.Step < x.n {
		x.pages[f.Step/pageSize][f.Step%pageSize].flags |= Anomalous
	}
	if f.Step >= x.n {
		x.foretold = x.n
	}
	x.counts[f.Trouble]++
	if len(x.findings) >= MaxFindings {
		return
	}
	if f.File == "" {
		f.File = x.files[x.current]
	}
	f.File, f.Text = text.Line(f.File), text.Truncate(text.Line(f.Text), 400, "")
	x.findings = append(x.findings, f)
}

// note is find for the common case.
func (x *index) note(t Trouble, code string, step int, line int, off, length int64, format string, args ...any) {
	x.find(Finding{Trouble: t, Code: code, Step: step, Line: line, Offset: off, Length: length, Text: fmt.Sprintf(format, args...)})
}

// progress counts what was read.
func (x *index) progress(read int64, records int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read = read
	x.records += records
}

func (x *index) head(i int, e entry) Head {
	x.mu.RLock()
	defer x.mu.RUnlock()
	h := Head{
		Index: i, Pos: int(e.pos), Kind: e.kind, Actor: e.actor, Class: e.class, Outcome: e.outcome, Flags: e.flags,
		Agent: int(e.agent), AtMS: -1, RecordedMS: -1, DurationMS: int64(e.dur),
		File: text.Line(x.files[e.file]), Offset: e.off, Length: e.length,
	}
	if e.kind == ToolCall {
		h.Tool = x.tools[e.tool]
	}
	if x.clock != NoClock {
		h.AtMS = 0
		zero := x.zero
		if x.clock == Relative || x.clock == Synthetic {
			zero = 0
		}
		if e.clock != noTime && zero != noTime {
			h.AtMS = max(0, e.clock-zero)
		}
		if e.at != noTime && zero != noTime {
			h.RecordedMS = e.at - zero
		}
	}
	if e.at != noTime && (x.clock == Absolute || x.clock == Naive) {
		h.Time = time.UnixMilli(e.at).UTC()
	}
	return h
}

// label is a short name from a record, sanitised.
func label(s string) string { return text.Truncate(text.Line(s), 200, "") }
