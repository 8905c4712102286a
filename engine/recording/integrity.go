package recording

import (
	"fmt"
	"slices"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Severity of a finding.
type Severity string

// Severities (design: section 7). Only breaks fail a check.
const (
	Note  Severity = "note"  // odd, foreign, torn, missing, of another era
	Break Severity = "break" // fold and world differ, chain broken, digest or sum wrong
)

// Finding is something that is not as it should be. Text is one line, sanitised.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1; 0: the whole file
	Offset   int64    `json:"offset,omitempty"` // byte of the line in the file
	Text     string   `json:"text"`
}

// Report is what is known of a recording's integrity.
type Report struct {
	Findings []Finding `json:"findings"`
	Events   int       `json:"events"`
	// Stopped says where a log ends that is not a whole heat's; "" for one that
	// is, or that is still written.
	Stopped string `json:"stopped,omitempty"`
	// Chained says that the log's lines carry hashes, Sealed that match.json
	// names the last one.
	Chained bool `json:"chained"`
	Sealed  bool `json:"sealed"`
	// Branched says from which heat's state this one started; "" for none. Such a heat
	// is no evidence of what a player can do from the arena's start.
	Branched string `json:"branched,omitempty"`
	// Verified says that the report comes from Verify: chain, world and digests
	// have been checked.
	Verified bool `json:"verified"`
}

// Breaks is the number of findings that are breaks.
func (r Report) Breaks() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == Break {
			n++
		}
	}
	return n
}

// Badge is the report in a word: "ok", "notes" or "broken".
func (r Report) Badge() string {
	switch {
	case r.Breaks() > 0:
		return "broken"
	case len(r.Findings) > 0:
		return "notes"
	}
	return "ok"
}

// tally keeps findings, at most a hundred of each code; more are counted.
type tally struct {
	list  []Finding
	count map[string]int
}

const perCode = 100

func newTally() tally { return tally{count: map[string]int{}} }

func (t *tally) add(f Finding) {
	t.count[f.Code]++
	if t.count[f.Code] <= perCode {
		t.list = append(t.list, f)
	}
}

func (t *tally) findings() []Finding {
	out := slices.Clone(t.list)
	for code, n := range t.count {
		if n > perCode {
			out = append(out, Finding{Severity: Note, Code: code, Text: fmt.Sprintf("%d more of this kind", n-perCode)})
		}
	}
	slices.SortStableFunc(out[len(t.list):], func(a, b Finding) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return out
}

// check looks at one event before it is folded.
func (r *Recording) check(i int, e event.Event) {
	note := func(code, format string, args ...any) {
		r.findings.add(Finding{Severity: Note, Code: code, File: r.log, Line: r.lines + 1, Offset: r.size,
			Text: text.Line(fmt.Sprintf("line %d: ", r.lines+1) + fmt.Sprintf(format, args...))})
	}
	switch {
	case e.Sequence == r.sequence:
	case e.Sequence > r.sequence:
		note("sequence_gap", "sequence %d follows %d", e.Sequence, int64(r.sequence)-1)
	default:
		note("sequence_repeated", "sequence %d where %d is next", e.Sequence, r.sequence)
	}
	r.sequence = e.Sequence + 1
	// Each step back is one finding: what goes on from there goes on.
	if e.ElapsedMS < r.previous {
		note("clock_back", "the clock goes back from %d to %d ms", r.previous, e.ElapsedMS)
	}
	r.previous = e.ElapsedMS
	if e.Extra != nil {
		note("unknown_keys", "%s has keys that are not known: %.200s", e.Kind(), e.Extra)
	}
	switch b := e.Body.(type) {
	case event.Unknown:
		note("unknown_kind", "kind %s is not known", b.Name)
	case event.TerritoryRegistered:
		if s := r.head.Seat(b.Territory); s != nil && s.Registered {
			note("duplicate_id", "territory %s is registered twice", b.Territory)
		}
	case event.AgentStarted:
		if a := r.head.Agent(b.Agent); a != nil && a.Running {
			note("duplicate_id", "agent %s is started twice", b.Agent)
		}
	case event.DurableDeploymentCompleted:
		if b.Repeated != nil && *b.Repeated != e.ElapsedMS {
			note("clock_doubled", "elapsed_ms says %d and %d", e.ElapsedMS, *b.Repeated)
		}
	}
}

// Integrity is what reading has found so far. Verify finds more.
func (r *Recording) Integrity() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{Events: len(r.offsets)}
	out.Findings = append(append(r.findings.findings(), r.problems...), r.found...)
	out.Sealed = r.match.Ours() && r.match.End != nil
	note := func(code, file, format string, args ...any) {
		out.Findings = append(out.Findings, Finding{Severity: Note, Code: code, File: text.Line(file), Text: text.Line(fmt.Sprintf(format, args...))})
	}
	if r.file == nil {
		note("missing_file", r.log, "there is no %s", r.log)
	}
	if r.restarts > 0 {
		note("restarted", r.log, "the log was replaced or cut %s while it was read", text.Count(r.restarts, "time"))
	}
	if r.head != nil {
		out.Branched = r.head.BranchedFrom()
	}
	if r.live || !r.complete() {
		return out
	}
	if r.total > r.size {
		out.Findings = append(out.Findings, Finding{Severity: Note, Code: "torn_tail", File: r.log, Line: r.lines + 1, Offset: r.size,
			Text: fmt.Sprintf("line %d (byte %d) was never finished: %d bytes are left out", r.lines+1, r.size, r.total-r.size)})
	}
	switch n := len(r.offsets); {
	case n == 0 && r.file != nil:
		out.Stopped = "the log stops before its first event: no seat was ready"
		note("stopped", r.log, "%s", out.Stopped)
	case n > 0 && (!r.head.Over() || r.head.Drain.State == "draining"):
		what := "the heat was " + r.head.MatchState
		if r.head.Over() {
			what = "the drain was not finished"
		}
		out.Stopped = fmt.Sprintf("the log stops at %d ms, after event %d: %s", r.clock, n-1, what)
		note("stopped", r.log, "%s", out.Stopped)
	}
	if r.single {
		return out
	}
	for _, name := range []string{matchFile, arenaFile, worldFile} {
		if _, err := r.src.stat(name); err != nil {
			note("missing_file", name, "there is no %s", name)
		}
	}
	if r.match.Ours() && r.match.End == nil && out.Stopped == "" && len(r.offsets) > 0 {
		out.Stopped = fmt.Sprintf("the log stops at %d ms, after event %d: the heat was %s, and not closed properly", r.clock, len(r.offsets)-1, r.head.MatchState)
		note("not_sealed", matchFile, "the heat was not closed properly: match.json does not name the log's last line")
	}
	r.missingResults(r.head, note)
	return out
}

// missingResults notes agents of a finished heat whose result was not kept.
func (r *Recording) missingResults(w *world.World, note func(code, file, format string, args ...any)) {
	if !w.Over() {
		return
	}
	missing := []string{}
	for _, a := range w.Agents() {
		if _, err := r.artifactPath(w, a.Territory, "result.json"); err != nil {
			missing = append(missing, a.ID)
		}
	}
	if n := len(missing); n > 0 {
		note("missing_result", "", "%d of %d results were left out: %v", n, len(w.Agents()), missing[:min(n, 10)])
	}
}
