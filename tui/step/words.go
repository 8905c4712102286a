package step

import (
	"fmt"
	"strings"

	"refbox/engine/analysis"
	"refbox/engine/transcript"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// signOf shows what a step was: by its effects where it was an action that has
// been judged, else by its kind.
func signOf(h transcript.Head, kind analysis.Kind) view.Sign {
	switch kind {
	case analysis.Discovery:
		return view.NewSign('◦', "discovery", canvas.Dim)
	case analysis.Mutation:
		return view.NewSign('✎', "mutation", canvas.Warn)
	case analysis.Lifecycle:
		return view.NewSign('↻', "lifecycle", canvas.Worker)
	case analysis.Validation:
		return view.NewSign('≡', "validation", canvas.Service)
	}
	switch h.Kind {
	case transcript.Message:
		switch h.Actor {
		case transcript.User:
			return view.NewSign('»', "user", canvas.Accent)
		case transcript.Agent:
			return view.NewSign('«', "says", canvas.Title)
		}
		return view.NewSign('·', "says", canvas.Text)
	case transcript.Thinking:
		return view.NewSign('≈', "reasoning", canvas.Dim)
	case transcript.ToolCall:
		return view.NewSign('○', classWord(h.Class), canvas.Text)
	case transcript.Output:
		return view.NewSign('▪', "output", canvas.Dim)
	case transcript.State:
		return view.NewSign('·', "state", canvas.Dim)
	case transcript.Lifecycle:
		return view.NewSign('■', "session", canvas.Dim)
	case transcript.Marker:
		return view.NewSign('●', "marker", canvas.Focus)
	}
	return view.NewSign('?', "unknown", canvas.Dim)
}

func classWord(c transcript.Class) string {
	switch c {
	case transcript.NoClass, transcript.Other:
		return "tool"
	case transcript.Shell:
		return "command"
	case transcript.Delegate:
		return "sub-agent"
	}
	return c.String()
}

func outcomeSign(o transcript.Outcome) view.Sign {
	switch o {
	case transcript.Done:
		return view.NewSign('·', "done", canvas.Dim)
	case transcript.Succeeded:
		return view.NewSign('✓', "ok", canvas.Ok)
	case transcript.Failed:
		return view.NewSign('✗', "failed", canvas.Bad)
	case transcript.TimedOut:
		return view.NewSign('⌀', "timeout", canvas.Bad)
	case transcript.Cancelled:
		return view.NewSign('−', "cancelled", canvas.Warn)
	case transcript.Unfinished:
		return view.NewSign('…', "unfinished", canvas.Warn)
	}
	return view.Sign{Shape: ' '}
}

var flagWords = []struct {
	flag transcript.Flags
	word string
}{
	{transcript.Private, "private reasoning"}, {transcript.Encrypted, "encrypted"}, {transcript.Copied, "copied from an earlier context"},
	{transcript.Duplicate, "a duplicate"}, {transcript.Damaged, "damaged"}, {transcript.Giant, "a giant record"},
	{transcript.Compacted, "output dropped later by the harness"}, {transcript.ReadOnly, "read-only, says the harness"},
	{transcript.Sidechain, "of a sub-agent"}, {transcript.OutOfOrder, "out of order"}, {transcript.Anomalous, "has findings"},
	{transcript.Truncated, "output truncated by the harness"},
}

func flagList(f transcript.Flags) string {
	var out []string
	for _, w := range flagWords {
		if f&w.flag != 0 {
			out = append(out, w.word)
		}
	}
	return strings.Join(out, ", ")
}

// size is a number of bytes.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// short is a number of tokens in a few cells.
func short(n int64) string {
	switch {
	case n < 10_000:
		return view.Count(n)
	case n < 1000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.2fM", float64(n)/1e6)
}

// dollars is money; a tenth of a cent counts in a step.
func dollars(micro int64) string {
	if micro < 1_000_000 {
		return fmt.Sprintf("$%.4f", float64(micro)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// usageLine tells figures that are recorded, and leaves out the others.
func usageLine(u transcript.Usage, number func(int64) string) string {
	var out []string
	say := func(word string, n *int64) {
		if n != nil {
			out = append(out, word+" "+number(*n))
		}
	}
	say("in", u.Input)
	if u.CacheRead != nil && *u.CacheRead > 0 {
		out = append(out, "("+number(*u.CacheRead)+" cached)")
	}
	say("out", u.Output)
	if u.Reasoning != nil && *u.Reasoning > 0 {
		out = append(out, "("+number(*u.Reasoning)+" reasoning)")
	}
	if u.CostMicroUSD != nil {
		out = append(out, dollars(*u.CostMicroUSD))
	}
	return strings.Join(out, " ")
}
