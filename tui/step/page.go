package step

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"refbox/engine/analysis"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// A part longer than this is folded, until it is opened.
const (
	foldBytes = 12 << 10
	foldLines = 160
	foldShown = 60      // lines of a folded part
	foldHead  = 6 << 10 // and its bytes
)

// maxDiff bounds the texts that are compared line by line.
const maxDiff = 64 << 10

// look is what a page depends on besides its step.
type look struct {
	width   int
	open    bool  // nothing is folded
	private bool  // reasoning is shown
	zero    int64 // the common clock's time when the record's is 0
	color   bool  // languages are coloured
}

// judged is what is known of an action.
type judged struct {
	analysis.Step
	ok          bool // it is an action
	alone       bool // judged by itself: what was done before is not known yet
	reference   analysis.Kind
	refersTo    string // who said so
	hasSubagent string
}

// page is a step in full.
type page struct {
	rows   []row
	folded int    // parts
	err    string // why it could not be read
}

// lay makes the page of a step.
func lay(f *transcript.Full, j judged, l look) page {
	p := &pager{paper: paper{w: max(8, l.width)}, look: l, f: f, j: j}
	p.head()
	// First what the call is for; arguments that another part shows come last.
	told := slices.ContainsFunc(f.Parts, func(part transcript.Part) bool { return tells(part.Role) })
	for _, turn := range []func(r transcript.Role) bool{
		func(r transcript.Role) bool { return r == transcript.PartDescription },
		func(r transcript.Role) bool {
			return r != transcript.PartDescription && !(told && r == transcript.PartInput)
		},
		func(r transcript.Role) bool { return told && r == transcript.PartInput },
	} {
		for i := 0; i < len(f.Parts) && !p.full(); i++ {
			if turn(f.Parts[i].Role) {
				i += p.part(i, told)
			}
		}
	}
	if p.full() {
		p.say("the rest is too long for the screen: open the step in $EDITOR", canvas.Fg(canvas.Warn))
	}
	return page{rows: p.rows, folded: p.folded}
}

// tells says that a part shows what a call's arguments say.
func tells(r transcript.Role) bool {
	switch r {
	case transcript.PartCommand, transcript.PartCode, transcript.PartPath, transcript.PartQuery, transcript.PartOld, transcript.PartNew, transcript.PartPatch:
		return true
	}
	return false
}

type pager struct {
	paper
	look
	f      *transcript.Full
	j      judged
	at     int // bytes of the action's text before the part
	folded int
}

// head says what is known of the step, before its parts.
func (p *pager) head() {
	dim := canvas.Fg(canvas.Dim)
	f := p.f
	var words []string
	if f.AtMS >= 0 {
		at := "at " + view.Clock(f.AtMS+p.zero)
		if p.zero != 0 {
			at += ", by its own clock " + view.Clock(f.AtMS)
		}
		words = append(words, at)
	}
	if !f.Time.IsZero() {
		words = append(words, f.Time.Format("2006-01-02 15:04:05")+" UTC")
	}
	if s := view.Span(f.DurationMS); s != "" {
		words = append(words, "took "+s)
	}
	if f.Model != "" {
		words = append(words, f.Model)
	}
	if f.WorkDir != "" {
		words = append(words, "in "+f.WorkDir)
	}
	p.put(strings.Join(words, "  "), dim, 2)
	if o := outcomeSign(f.Outcome); o.Word != "" {
		word := "  " + string(o.Shape) + " " + o.Word
		if f.Exit != nil {
			word += fmt.Sprintf(", exit %d", *f.Exit)
		}
		p.put(word, o.Style, 2)
	}
	p.end(2)
	p.judgement()
	if s := flagList(f.Flags); s != "" {
		p.say(s, canvas.Fg(canvas.Warn))
	}
	if f.Usage != nil {
		p.say("charged: "+usageLine(*f.Usage, view.Count[int64]), dim)
	}
	if p.j.hasSubagent != "" {
		p.say("▸ enter steps through "+p.j.hasSubagent, canvas.Fg(canvas.Key))
	}
}

func (p *pager) judgement() {
	j := &p.j
	dim := canvas.Fg(canvas.Dim)
	if j.ok && j.Kind != "" {
		s := signOf(p.f.Head, j.Kind)
		p.put(string(s.Shape)+" "+s.Word, s.Style.With(canvas.Bold), 2)
		for _, k := range j.Also {
			p.put(", also "+string(k), dim, 2)
		}
		switch {
		case j.Changed:
			p.put("  changed something that lasts", canvas.Fg(canvas.Text), 2)
		case j.Kind == analysis.Mutation || j.Kind == analysis.Lifecycle:
			p.put("  changed nothing that lasts", dim, 2)
		}
		if j.Degraded {
			p.put("  read in part: the text is cut or broken", canvas.Fg(canvas.Warn), 2)
		}
		if j.alone {
			p.put("  judged alone: what came before is still being read", dim, 2)
		}
	}
	if j.reference != "" {
		st := dim
		if j.ok && j.Kind != j.reference {
			st = canvas.Fg(canvas.Warn)
		}
		p.put("  "+j.refersTo+": "+text.Line(string(j.reference)), st, 2)
	}
	if len(p.line) > 0 {
		p.end(2)
	}
	const most = 8
	for i, e := range j.Effects {
		if i == most {
			p.say(fmt.Sprintf("  and %s more", text.Count(len(j.Effects)-most, "effect")), dim)
			break
		}
		st := canvas.Fg(canvas.Text)
		more := ""
		switch {
		case e.Undone:
			more, st = ", taken back", dim
		case e.Scratch:
			more, st = ", scratch", dim
		case !e.Changes():
			st = dim
		}
		if e.Via != "" {
			more += ", by the script " + text.Line(e.Via)
		}
		p.put("  "+strings.ReplaceAll(string(e.Sort), "_", " ")+" ", st, 4)
		p.put(text.Line(e.Target), st.With(canvas.Bold), 4)
		p.put("  by "+text.Line(e.By)+more, dim, 4)
		p.end(4)
	}
}

// part writes part i and says how many of the next it has written with it. told:
// the arguments are in other parts, too.
func (p *pager) part(i int, told bool) (also int) {
	part := p.f.Parts[i]
	raw := part.Text.Raw()
	title := part.Role.String()
	if part.Role == transcript.PartInput {
		title = "arguments"
	}
	switch part.Role {
	case transcript.PartReasoning:
		if !p.private {
			p.rule("reasoning", size(part.Text.Size()))
			p.say("private: hidden until it is asked for", canvas.Fg(canvas.Dim))
			return 0
		}
		title = "private reasoning"
	case transcript.PartSealed, transcript.PartMedia:
		p.rule(title, size(part.Text.Size()))
		p.say(part.Label+" is named, never shown", canvas.Fg(canvas.Dim))
		return 0
	case transcript.PartPath, transcript.PartQuery, transcript.PartDescription:
		if !strings.Contains(strings.TrimSpace(raw), "\n") && len(raw) < 1000 {
			if i == 0 || !brief(p.f.Parts[i-1].Role) {
				p.gap()
			}
			p.pair(title, raw)
			return 0
		}
	case transcript.PartMessage:
		if part.Label != "" && len(raw) < 200 && !strings.Contains(strings.TrimSpace(raw), "\n") {
			if i == 0 || p.f.Parts[i-1].Role != part.Role {
				p.gap()
			}
			p.pair(part.Label, raw)
			return 0
		}
	case transcript.PartOld:
		if i+1 < len(p.f.Parts) && p.f.Parts[i+1].Role == transcript.PartNew {
			if next := p.f.Parts[i+1].Text; !part.Text.Cut() && !next.Cut() && len(raw) <= maxDiff && next.Size() <= maxDiff {
				p.difference(i, raw, next.Raw())
				return 1
			}
		}
	}
	if part.Label != "" && part.Label != title {
		title += " · " + part.Label
	}
	note := ""
	if part.Text.Size() > 1000 {
		note = size(part.Text.Size())
	}
	p.rule(title, note)
	if told && part.Role == transcript.PartInput && !p.open {
		p.fold(i, "as they were given: enter opens")
		return 0
	}
	shown, hidden := p.folding(raw, part.Text)
	p.body(part, shown)
	if part.Role == transcript.PartCommand || part.Role == transcript.PartCode {
		p.at += len(raw) + 1
	}
	if hidden != "" {
		p.fold(i, hidden)
	}
	return 0
}

// pair is a short part on a line of its own, beside its name.
func (p *pager) pair(name, value string) {
	p.put(text.Pad(name, 12), canvas.Fg(canvas.Dim), 12)
	p.put(text.Line(strings.TrimSpace(value)), canvas.Fg(canvas.Title), 12)
	p.end(12)
}

func brief(r transcript.Role) bool {
	return r == transcript.PartPath || r == transcript.PartQuery || r == transcript.PartDescription
}

// folding cuts a body that is long, and says what is behind.
func (p *pager) folding(raw string, t transcript.Text) (shown, hidden string) {
	whole := strings.Count(raw, "\n") + 1
	if p.open || len(raw) <= foldBytes && whole <= foldLines {
		if t.Cut() {
			return raw, fmt.Sprintf("%s more of %s: open the step in $EDITOR", size(t.Size()-int64(len(raw))), size(t.Size()))
		}
		return raw, ""
	}
	shown = raw[:min(len(raw), foldHead)]
	if i := nthLine(shown, foldShown); i >= 0 {
		shown = shown[:i]
	}
	shown = strings.TrimSuffix(strings.ToValidUTF8(shown, ""), "\n")
	hidden = fmt.Sprintf("%s in all", size(t.Size()))
	if lines := whole - strings.Count(shown, "\n") - 1; lines > 0 && !t.Cut() {
		hidden = view.Plural(lines, "line") + " more, " + hidden
	}
	return shown, hidden + ": enter opens"
}

func (p *pager) fold(i int, words string) {
	p.folded++
	p.put("⋯ "+words, canvas.Fg(canvas.Key), 2)
	p.end(2)
	if n := len(p.rows); n > 0 {
		p.rows[n-1].fold = i
	}
}

func (p *pager) body(part transcript.Part, raw string) {
	plain := canvas.Fg(canvas.Text)
	switch part.Role {
	case transcript.PartMessage:
		if looksLikeJSON(raw) {
			p.json(raw)
			return
		}
		p.message(raw, p.color)
	case transcript.PartReasoning:
		p.put(text.Block(raw), canvas.Fg(canvas.Dim).With(canvas.Italic), 0)
		p.end(0)
	case transcript.PartCommand:
		p.program(raw, "bash")
	case transcript.PartCode:
		grammar := grammarOf(part.Label)
		if part.Label == "" {
			grammar = "python"
		}
		p.program(raw, grammar)
	case transcript.PartInput, transcript.PartData:
		if looksLikeJSON(raw) {
			p.json(raw)
			return
		}
		p.output(raw, plain)
	case transcript.PartOld, transcript.PartNew:
		path, _ := p.f.Part(transcript.PartPath)
		p.code(raw, p.language(grammarOfFile(path.Raw())), nil)
	case transcript.PartPatch:
		p.patch(raw)
	case transcript.PartError:
		p.output(raw, canvas.Fg(canvas.Bad))
	case transcript.PartOutput:
		if looksLikeJSON(raw) {
			p.json(raw)
			return
		}
		p.output(raw, plain)
	default:
		p.put(text.Block(raw), plain, 0)
		p.end(0)
	}
}

func (p *pager) language(grammar string) string {
	if !p.color {
		return ""
	}
	return grammar
}

// program writes a command with the places that show its effects.
func (p *pager) program(raw, grammar string) {
	var marks []span
	if p.j.ok && p.at <= len(p.j.Text()) && strings.HasPrefix(p.j.Text()[p.at:], raw) {
		for _, e := range p.j.Effects {
			from, to := e.Span.Start-p.at, e.Span.End-p.at
			if to <= 0 || from >= len(raw) || e.Sort.Kind() == analysis.Discovery || e.Undone || e.Scratch {
				continue
			}
			st := signOf(p.f.Head, e.Sort.Kind()).Style
			st.Attr = canvas.Underline | canvas.Bold
			marks = append(marks, span{from, to, st})
		}
	}
	p.code(raw, p.language(grammar), marks)
}

// difference writes what an edit took out and put in.
func (p *pager) difference(i int, before, after string) {
	d := udiff.Unified("before", "after", ended(before), ended(after))
	lines := strings.SplitAfterN(d, "\n", 3)
	if len(lines) == 3 {
		d = lines[2] // without the names
	}
	p.rule("edit", "")
	if d == "" {
		p.say("the same text", canvas.Fg(canvas.Dim))
		return
	}
	shown, hidden := p.folding(d, transcript.NewText(d))
	p.patch(shown)
	if hidden != "" {
		p.fold(i, hidden)
	}
}

// ended is a text whose last line has an end.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// looksLikeJSON says that a text begins and goes on as a JSON object or list.
func looksLikeJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	if len(s) < 2 || s[0] != '{' && s[0] != '[' {
		return false
	}
	rest := strings.TrimLeft(s[1:], " \t\r\n")
	if rest == "" {
		return false
	}
	if s[0] == '{' {
		return rest[0] == '"' || rest[0] == '}'
	}
	return strings.IndexByte(`"{[]`, rest[0]) >= 0
}

// plain is a step as text, for an editor or a copy; safe to show.
func plain(f *transcript.Full, private bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d  %s", f.Index, f.Kind)
	if f.Tool != "" {
		b.WriteString("  " + f.Tool)
	}
	if f.AtMS >= 0 {
		b.WriteString("  at " + view.Clock(f.AtMS))
	}
	if f.DurationMS >= 0 {
		b.WriteString("  took " + view.Span(f.DurationMS))
	}
	if f.Outcome != transcript.NoOutcome {
		b.WriteString("  " + f.Outcome.String())
	}
	b.WriteString("\n")
	for _, part := range f.Parts {
		name := part.Role.String()
		if part.Label != "" {
			name += " · " + part.Label
		}
		fmt.Fprintf(&b, "\n── %s ──\n", name)
		switch {
		case part.Role == transcript.PartReasoning && !private:
			fmt.Fprintf(&b, "private, %s\n", size(part.Text.Size()))
		case part.Role == transcript.PartSealed, part.Role == transcript.PartMedia:
			fmt.Fprintf(&b, "%s, never shown\n", size(part.Text.Size()))
		default:
			b.WriteString(ended(part.Text.String()))
			if part.Text.Cut() {
				fmt.Fprintf(&b, "… %s in all\n", size(part.Text.Size()))
			}
		}
	}
	return b.String()
}
