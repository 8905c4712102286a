package runbook

import (
	"fmt"
	"strings"

	"refbox/engine/playback"
	"refbox/engine/text"
)

// Markdown is the runbook for people to read and to run by hand: each step with the
// action it comes from and with what happened without it.
func (rb Runbook) Markdown() string {
	var b strings.Builder
	src := rb.Source
	simulated := ""
	if rb.Machines == "sim" {
		simulated = "simulated "
	}
	title := src.Title
	if title == "" {
		title = src.Arena
	}
	fmt.Fprintf(&b, "# Runbook: %s\n\n", text.Line(title))
	fmt.Fprintf(&b, "From the heat `%s`, seat %s, played by %s, durable at %s.", text.Line(src.Recording), src.Seat, text.Line(src.Agent), clock(src.DurableMS))
	if src.LogHead != "" {
		fmt.Fprintf(&b, " The log's head is `%s`.", src.LogHead)
	}
	fmt.Fprintf(&b, "\n\nOf %[2]s in %[3]s, %[1]d stay", len(rb.Steps), count(len(src.Steps), "statement"), count(len(src.Actions), "action"))
	if rb.Minimal {
		fmt.Fprintf(&b, ": each was left out alone on fresh %smachines, and the rest lost", simulated)
	} else {
		b.WriteString("; not each of them was left out alone")
	}
	fmt.Fprintf(&b, " (%s).", count(rb.Runs, "run"))
	if rb.Paced {
		b.WriteString(" It wins only with the player's own pauses, which stand below.")
	}
	b.WriteString("\n\n")
	if rb.Again > 0 {
		if simulated != "" {
			b.WriteString("The machines were simulated: on real ones nothing of this was tried.\n\n")
		}
		fmt.Fprintf(&b, "Run again without the player, the whole of it won %d of %d times (flake rate %d %%).\n\n", rb.Won, rb.Again, 100*(rb.Again-rb.Won)/rb.Again)
		for _, t := range rb.Flakes {
			fmt.Fprintf(&b, "- lost at %s: %s; `%s`, seat %s\n", t.Lost, code(t.Why), text.Line(t.Dir), t.Seat)
		}
		if len(rb.Flakes) > 0 {
			b.WriteByte('\n')
		}
	} else {
		b.WriteString("The whole of it was not run again.\n\n")
	}
	if len(src.Untold) > 0 {
		b.WriteString("Left aside, as the log does not hold what they did:\n\n")
		for _, u := range src.Untold {
			fmt.Fprintf(&b, "- %s\n", text.Line(u))
		}
		b.WriteByte('\n')
	}
	b.WriteString("## Steps\n")
	var steps []Step
	for _, s := range rb.Steps {
		steps = append(steps, s.Step)
	}
	waits := src.waits(steps)
	for i, s := range rb.Steps {
		a := src.action(s.Action)
		fmt.Fprintf(&b, "\n%d. on %s", i+1, s.Machine)
		if ms := waits[s.Action]; rb.Paced && ms > 0 && (i == 0 || rb.Steps[i-1].Action != s.Action) {
			fmt.Fprintf(&b, ", %s after the one before", playback.Exact(ms))
			if ms == maxPause {
				b.WriteString(", as long as a script waits: the player took longer")
			}
		}
		b.WriteString("\n\n" + fenced(s.Text, "   ") + "\n")
		fmt.Fprintf(&b, "   - action %d at %s", a.Number, clock(a.AtMS))
		if a.Exit != nil {
			fmt.Fprintf(&b, ", exit %d", *a.Exit)
		}
		if a.Session != "" {
			fmt.Fprintf(&b, ", `%s`", text.Line(a.Session))
		}
		if len(a.Passed) > 0 {
			fmt.Fprintf(&b, "; %s held from then on", strings.Join(a.Passed, ", "))
		}
		b.WriteByte('\n')
		if t := s.Without; t != nil {
			fmt.Fprintf(&b, "   - without it: lost at %s: %s; `%s`, seat %s\n", t.Lost, code(t.Why), text.Line(t.Dir), t.Seat)
		}
	}
	if len(rb.Dropped) > 0 {
		b.WriteString("\n## Not needed\n\n")
		for _, s := range rb.Dropped {
			fmt.Fprintf(&b, "- action %d: %s\n", s.Action, code(text.Truncate(text.Line(s.Text), 120, "…")))
		}
	}
	return b.String()
}

func (src *Source) action(number uint64) Action {
	for _, a := range src.Actions {
		if a.Number == number {
			return a
		}
	}
	return Action{Number: number}
}

// fenced is a block of code whose fence is longer than any in it.
func fenced(s, indent string) string {
	s = text.Block(s)
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	lines := strings.Split(fence+"sh\n"+s+"\n"+fence, "\n")
	return indent + strings.Join(lines, "\n"+indent)
}

// code is a line of words of a guest's or a player's in which nothing is Markdown.
func code(s string) string {
	s = text.Line(s)
	tick := "`"
	for strings.Contains(s, tick) {
		tick += "`"
	}
	if len(tick) > 1 || s == "" {
		return tick + " " + s + " " + tick
	}
	return tick + s + tick
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func clock(ms uint64) string { return playback.Format(ms) }
