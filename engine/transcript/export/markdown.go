package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"refbox/engine/analysis"
	"refbox/engine/internal/plainjson"
	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// maxShown is the bytes of one body in Markdown: the form is for reading.
const maxShown = 32 << 10

// Markdown writes the transcript for reading: what it is, then each step with its
// kind, outcome and bodies. Everything is sanitised; no body can end its block. It
// returns how many steps it wrote.
func Markdown(ctx context.Context, w io.Writer, s Source) (steps int, err error) {
	m := &markdown{s: &s, w: w}
	if err := s.T.Load(ctx); err != nil {
		return 0, err
	}
	m.head()
	j := analysis.NewJudge(s.T)
	left := 0
	err = s.each(ctx, func(h transcript.Head) bool {
		if s.wantsStep(h) && silent(h) {
			left++
			return false
		}
		return s.wantsStep(h)
	}, func(f *transcript.Full) error {
		for j.Len() <= f.Index && !j.Advance(100) {
		}
		steps++
		m.step(f, j)
		return m.err
	})
	if err != nil {
		return steps, err
	}
	m.line("")
	m.line("---")
	m.line("")
	note := "Private reasoning and encrypted content are left out."
	if left > 0 {
		note += fmt.Sprintf(" Not shown: %s of reasoning, settings and unknown kinds.", text.Count(left, "record"))
	}
	m.line(note + " " + capital(s.Redact.String()) + ".")
	return steps, m.err
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

type markdown struct {
	s   *Source
	w   io.Writer
	err error
}

func (m *markdown) line(s string) {
	if m.err == nil {
		_, m.err = io.WriteString(m.w, s+"\n")
	}
}

// inline is one line in which no character means anything to Markdown or HTML.
func (m *markdown) inline(s string) string {
	return escapes.Replace(m.s.Redact.Text(text.Line(s)))
}

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "#", `\#`, "!", `\!`, "~", `\~`)

// block is a body in a fence that is longer than any in it.
func (m *markdown) block(language, body string) {
	if len(body) > maxShown {
		body = strings.ToValidUTF8(body[:maxShown], "") + fmt.Sprintf("\n… %d bytes more", len(body)-maxShown)
	}
	body = strings.TrimRight(text.Block(body), "\n")
	if body == "" {
		return
	}
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	m.line("")
	m.line(fence + language)
	m.line(body)
	m.line(fence)
}

func (m *markdown) head() {
	info := m.s.T.Info()
	m.line("# " + m.inline(cmp.Or(m.s.Session, info.Session, info.Task, info.Format)))
	m.line("")
	clock, zero := m.s.T.Clock()
	began := ""
	if !zero.IsZero() {
		began = zero.UTC().Format("2006-01-02 15:04:05")
	}
	t := m.s.T.Totals()
	tokens, cost := "", ""
	if t.Input != nil || t.Output != nil {
		tokens = fmt.Sprintf("%s in, %s out (%s)", number(t.Input), number(t.Output), t.Method)
	}
	if t.CostMicroUSD != nil {
		cost = fmt.Sprintf("$%.4f (%s)", float64(*t.CostMicroUSD)/1e6, t.CostMethod)
	}
	if len(m.s.Agents) > 0 {
		tokens, cost = "", "" // those are everybody's
	}
	for _, f := range [][2]string{{"format", strings.TrimSpace(info.Format + " " + info.Version)}, {"harness", cmp.Or(m.s.Agent, info.Harness)},
		{"model", cmp.Or(m.s.Model, info.Model)}, {"territory", cmp.Or(m.s.Territory, info.Territory)}, {"task", info.Task}, {"began", began},
		{"clock", clock.String()}, {"tokens", tokens}, {"cost", cost}, {"outcome", info.Outcome}, {"result", info.Result}} {
		if f[1] != "" {
			m.line("- **" + f[0] + "**: " + m.inline(text.Truncate(f[1], 2000, text.Ellipsis)))
		}
	}
	if e := m.s.Evaluation; e != nil {
		o := e.Outcome
		line := fmt.Sprintf("%s, %s", o.Status, text.Count(o.Reward, "point"))
		if o.Durable {
			line += ", durable at " + playback.Format(*o.DurableAtMS)
		}
		m.line("- **the referee**: " + m.inline(line))
	}
	if r := m.s.T.Integrity(); len(r.Findings) > 0 {
		m.line(fmt.Sprintf("- **findings in the record**: %d, such as %s", len(r.Findings), m.inline(r.Findings[0].Text)))
	}
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func (m *markdown) step(f *transcript.Full, j *analysis.Judge) {
	at := ""
	if f.AtMS >= 0 {
		at = playback.Format(uint64(f.AtMS))
	}
	kind, changed := j.Kind(f.Index)
	what := f.Kind.String()
	if f.Kind == transcript.ToolCall {
		what = f.Tool
	}
	took := ""
	if d, ok := f.Duration(); ok && f.Kind == transcript.ToolCall {
		took = fmt.Sprintf("%.1f s", d.Seconds())
	}
	mark := string(kind)
	if changed {
		mark += " (changed something)"
	}
	agent := ""
	if agents := m.s.T.Agents(); f.Agent > 0 && f.Agent < len(agents) && len(m.s.Agents) != 1 {
		agent = cmp.Or(agents[f.Agent].Name, agents[f.Agent].ID)
	}
	copied := ""
	if f.Has(transcript.Copied) {
		copied = "copied"
	}
	var facts []string
	for _, s := range []string{fmt.Sprint(f.Index), at, f.Actor.String(), agent, what, mark, f.Outcome.String(), took, copied} {
		if s != "" {
			facts = append(facts, m.inline(s))
		}
	}
	m.line("")
	m.line("## " + strings.Join(facts, " · "))
	if f.Kind == transcript.ToolCall {
		if t, ok := f.Part(transcript.PartDescription); ok {
			m.line("")
			m.line(m.inline(t.Raw()))
		}
	}
	edit := false
	for _, p := range f.Parts {
		raw := ""
		if p.Role != transcript.PartInput && p.Role != transcript.PartReasoning { // each secret counts once
			raw = m.s.clean(p.Text.Raw())
		}
		switch p.Role {
		case transcript.PartMessage:
			m.quote(raw)
		case transcript.PartDescription:
			if f.Kind != transcript.ToolCall {
				m.line("")
				m.line(m.inline(raw))
			}
		case transcript.PartCommand:
			m.block("sh", raw)
		case transcript.PartCode:
			m.block(language(p.Label), raw)
		case transcript.PartPath, transcript.PartQuery:
			m.line("")
			m.line(p.Role.String() + ": " + m.inline(p.Text.Raw()))
		case transcript.PartOld:
			edit = true
			m.block("diff", prefixed("- ", raw))
		case transcript.PartNew:
			if edit {
				m.block("diff", prefixed("+ ", raw))
			} else {
				m.block("", raw)
			}
		case transcript.PartPatch:
			m.block("diff", raw)
		case transcript.PartInput:
			if f.Class == transcript.Other || f.Class == transcript.Search || f.Class == transcript.Delegate || f.Class == transcript.Browse || f.Class == transcript.Plan {
				m.block("json", m.input(p.Text.Raw()))
			}
		case transcript.PartOutput, transcript.PartError:
			m.block("", raw)
		case transcript.PartMedia, transcript.PartSealed:
			m.line("")
			m.line(fmt.Sprintf("(%s, %d bytes, left out)", m.inline(p.Label), p.Text.Size()))
		}
	}
}

// input is a call's arguments without secrets, also under keys that name one.
func (m *markdown) input(raw string) string {
	v, err := m.s.decoded([]byte(raw))
	if err != nil {
		return m.s.clean(raw)
	}
	out, err := plainjson.Indented(v)
	if err != nil {
		return ""
	}
	return string(out)
}

func language(label string) string {
	for _, r := range label {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
			return ""
		}
	}
	return label
}

func prefixed(sign, s string) string {
	return sign + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+sign)
}

// quote shows words as a quotation. Their own Markdown stays text: a message must
// not be able to draw headings or load pictures.
func (m *markdown) quote(s string) {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + fmt.Sprintf("\n… %d bytes more", len(s)-maxShown)
	}
	m.line("")
	for line := range strings.SplitSeq(strings.TrimRight(text.Block(s), "\n"), "\n") {
		line = escapes.Replace(line)
		if start := strings.TrimLeft(line, " \t"); start != "" && strings.IndexByte("=-+", start[0]) >= 0 {
			line = line[:len(line)-len(start)] + `\` + start // would underline a heading, or begin a list
		}
		m.line("> " + line + "  ")
	}
}
