// Package runbook distils a won heat into a runbook: the actions of its winner that
// the repair needs, and no others.
//
// What is needed is not judged by reading. Statements are taken away and what is
// left is run against the same fault on fresh machines, without the player, before
// the same referee, until nothing more can be taken away (Minimise). Reading decides
// only what is tried first.
//
// It hides how commands are cut into statements, and which of the 2^n choices are
// tried. It promises: what Minimise returns has won; where it says that it is
// minimal, each of its statements was left out alone and that lost.
package runbook

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"refbox/engine/analysis"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Step is a statement of an action of the winner's.
type Step struct {
	Action    uint64 `json:"action"`    // its number at the seat, from 1
	Statement int    `json:"statement"` // its place in the action, from 0
	Machine   string `json:"machine"`
	Text      string `json:"text"`
	Changes   bool   `json:"changes"` // reading says that it changed something that lasts
}

// Action is where the steps come from.
type Action struct {
	Number  uint64   `json:"action"`
	AtMS    uint64   `json:"at_ms"` // its start on the heat's clock
	TookMS  uint64   `json:"took_ms"`
	Exit    *int     `json:"exit"` // null when its session broke
	Session string   `json:"session,omitempty"`
	Passed  []string `json:"passed,omitempty"` // milestones that passed after it and before the next
	pause   uint64   // ms from the end of the one before
}

// Source is a won seat of a recording.
type Source struct {
	Recording string   `json:"recording"` // its name
	LogHead   string   `json:"log_head"`
	Arena     string   `json:"arena"`
	Title     string   `json:"title"` // the arena's display name
	Seat      string   `json:"seat"`
	Agent     string   `json:"agent"`
	DurableMS uint64   `json:"durable_at_ms"`
	Actions   []Action `json:"actions"`
	Steps     []Step   `json:"steps"` // in the order in which the actions began
	// Untold are actions that the log does not hold whole, in words: what was
	// copied to the machine, and commands longer than an event keeps.
	Untold []string `json:"untold,omitempty"`
}

// Distil reads what a durable seat's player did up to the instant at which the seat
// became durable; "" is the winner.
func Distil(rec *recording.Recording, seat string) (Source, error) {
	w := rec.World(rec.Len())
	if seat == "" && w.Winner != nil {
		seat = *w.Winner
	}
	s := w.Seat(seat)
	switch {
	case w.Branched != nil:
		return Source{}, fmt.Errorf("%s was %s: what was done before is not in it; distil the parent heat", rec.Name(), w.BranchedFrom())
	case seat == "":
		return Source{}, fmt.Errorf("%s has no winner; name a seat that became durable", rec.Name())
	case s == nil:
		var seats []string
		for _, s := range w.Seats() {
			seats = append(seats, s.ID)
		}
		return Source{}, fmt.Errorf("%s has no seat %s; its seats are %s", rec.Name(), text.Line(seat), strings.Join(seats, ", "))
	case s.Durable == nil:
		return Source{}, fmt.Errorf("%s did not become durable in %s: a runbook comes of a repair that held", seat, rec.Name())
	}
	src := Source{Recording: rec.Name(), Arena: rec.Arena(), Seat: seat, Agent: s.Agent, DurableMS: s.Durable.At}
	if m := rec.Match(); m != nil && m.End != nil {
		src.LogHead = m.End.LogHead
	}
	if m := rec.Manifest(); m != nil {
		src.Title = m.Arena.DisplayName
	}
	commands, err := src.actions(rec)
	if err != nil {
		return Source{}, err
	}
	if len(src.Actions) == 0 {
		why := "the log has none of its actions before that, as a reference recording's has not"
		if len(src.Untold) > 0 {
			why = src.Untold[0]
		}
		return Source{}, fmt.Errorf("%s: nothing that %s did can be run again: %s", rec.Name(), seat, why)
	}
	src.passed(s)
	src.cut(commands)
	return src, nil
}

// actions reads the seat's actions and gives their commands.
func (src *Source) actions(rec *recording.Recording) ([]command, error) {
	var out []command
	at := map[uint64]int{}
	err := rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.AgentActionStarted:
			if b.Territory != src.Seat || e.ElapsedMS > src.DurableMS {
				break
			}
			if why := untold(b); why != "" {
				src.Untold = append(src.Untold, fmt.Sprintf("action %d at %s: %s", b.Action, clock(e.ElapsedMS), why))
				break
			}
			a := Action{Number: b.Action, AtMS: e.ElapsedMS, Session: b.Session}
			if n := len(src.Actions); n > 0 {
				a.pause = a.AtMS - min(a.AtMS, src.Actions[n-1].AtMS+src.Actions[n-1].TookMS)
			}
			at[b.Action] = len(src.Actions)
			src.Actions = append(src.Actions, a)
			out = append(out, command{machine: b.Machine, text: b.Command})
		case event.AgentActionFinished:
			if i, ok := at[b.Action]; ok && b.Territory == src.Seat {
				src.Actions[i].TookMS, src.Actions[i].Exit = b.TookMS, b.Exit
			}
		}
		return true
	})
	return out, err
}

type command struct{ machine, text string }

// maxCommand is what an event keeps of a command (design, section 3); one as long
// may have been cut.
const maxCommand = 4 << 10

// untold says what keeps an action from being run again; "" for nothing.
func untold(b event.AgentActionStarted) string {
	switch {
	case b.Channel == "sftp":
		return "it copied " + text.Line(b.Command) + "; what files held is not in the log"
	case b.Channel == "shell" || b.Channel == "forward":
		return "a " + b.Channel + ": what went through it are keys and bytes, not commands" // a shell that announces its commands has actions for them
	case len(b.Command) >= maxCommand-4:
		return "its command is longer than an event keeps"
	case slices.Contains(strings.Split(b.Command, "\n"), "---"):
		return "its command has a line ---, which a script cannot carry"
	}
	return ""
}

// passed notes with each action what passed between it and the next: what it, and
// those before it, brought about.
func (src *Source) passed(s *world.Seat) {
	for i := range s.Milestones {
		m := &s.Milestones[i]
		if !m.Passed {
			continue
		}
		held := m.PassedMS
		if m.HeldAt != nil {
			held = *m.HeldAt
		}
		for j := len(src.Actions) - 1; j >= 0; j-- {
			if a := &src.Actions[j]; a.AtMS <= held {
				a.Passed = append(a.Passed, m.ID)
				break
			}
		}
	}
}

// cut makes steps of the commands.
func (src *Source) cut(commands []command) {
	var acts []analysis.Action
	for i, c := range commands {
		acts = append(acts, analysis.Action{Index: i, Tool: "exec", Command: c.text, Success: true,
			StartedMS: int64(src.Actions[i].AtMS), DurationMS: int64(src.Actions[i].TookMS)})
	}
	effects := make([][]analysis.Effect, len(commands))
	for _, s := range analysis.Analyse(acts).Steps {
		if s.Action.Index < len(effects) {
			effects[s.Action.Index] = s.Effects
		}
	}
	for i, c := range commands {
		from := 0
		for j, end := range statements(c.text) {
			body := strings.TrimSpace(c.text[from:end])
			changes := slices.ContainsFunc(effects[i], func(e analysis.Effect) bool {
				return e.Changes() && e.Span.Start >= from && e.Span.Start < end
			})
			src.Steps = append(src.Steps, Step{Action: src.Actions[i].Number, Statement: j, Machine: c.machine, Text: strings.TrimRight(body, "; \n"), Changes: changes})
			from = end
		}
	}
}

// statements gives the ends of a command's statements, as far as it can be cut into
// such: what a statement's text does not hold alone, as a here-document, keeps it
// whole.
func statements(s string) []int {
	whole := []int{len(s)}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s), "")
	if err != nil || len(f.Stmts) < 2 {
		return whole
	}
	here := false
	syntax.Walk(f, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
			here = true
		}
		return !here
	})
	if here {
		return whole
	}
	var ends []int
	for i := 1; i < len(f.Stmts); i++ {
		ends = append(ends, int(f.Stmts[i].Pos().Offset()))
	}
	return append(ends, len(s))
}

// Script is the steps as a scripted player's, an action of the heat's per block; with
// paced, each waits as long as the player did. Of no steps it is a player that does nothing.
func (src *Source) Script(name string, steps []Step, paced bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# player %s\n", name)
	if len(steps) == 0 {
		b.WriteString(":\n")
	}
	waits := src.waits(steps)
	last := uint64(0)
	for _, s := range steps {
		if s.Action != last {
			if last != 0 {
				b.WriteString("---\n")
			}
			if ms := waits[s.Action]; paced && ms > 0 {
				fmt.Fprintf(&b, "# pause %dms\n", ms)
			}
			if s.Machine != "" {
				fmt.Fprintf(&b, "# on %s\n", s.Machine)
			}
			b.WriteString(": \n") // so that no comment of the player's is taken for a directive
			last = s.Action
		}
		b.WriteString(s.Text + "\n")
	}
	return []byte(b.String())
}

// waits is how long, in milliseconds, the player took from the end of the action of
// the step before to the beginning of each action that steps are left of: its pauses,
// and what it did in between. At most maxPause.
func (src *Source) waits(steps []Step) map[uint64]uint64 {
	out := map[uint64]uint64{}
	waited := uint64(0)
	for _, a := range src.Actions {
		waited += a.pause
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Action == a.Number }) {
			waited += a.TookMS
			continue
		}
		out[a.Number], waited = min(waited, maxPause), 0
	}
	return out
}

// maxPause bounds one pause of a paced run, in milliseconds.
const maxPause = 60_000
