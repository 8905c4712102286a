package export

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"refbox/engine/analysis"
	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// Size of a cast whose record has none.
const (
	castWidth  = 120
	castHeight = 34
)

// stepMS is the time of a step where the record has no clock.
const stepMS = 1000

// Cast writes an asciicast, version 3 or 2, of a transcript: what was typed when it
// began, what came back when it ended, changes and milestones as markers. What
// would drive more of a viewer's terminal than its screen is dropped; what was
// typed at a recorded terminal is left out. It returns how many frames it wrote.
func Cast(ctx context.Context, w io.Writer, s Source, v3 bool) (frames int, err error) {
	if err := s.T.Load(ctx); err != nil {
		return 0, err
	}
	c := &caster{s: &s, w: w, v3: v3, recorded: strings.HasPrefix(s.T.Info().Format, "asciicast")}
	c.clock, _ = s.T.Clock()
	if err := c.head(); err != nil {
		return 0, err
	}
	j := analysis.NewJudge(s.T)
	err = s.each(ctx, func(h transcript.Head) bool {
		return s.wantsStep(h) && !silent(h) && !h.Has(transcript.Copied)
	}, func(f *transcript.Full) error {
		for j.Len() <= f.Index && !j.Advance(100) {
		}
		at := max(f.AtMS, 0)
		if c.clock == transcript.NoClock {
			at = int64(c.n) * stepMS
			c.n++
		}
		if err := c.until(at); err != nil {
			return err
		}
		c.step(f, at, j)
		return c.err
	})
	if err == nil {
		err = c.until(math.MaxInt64)
	}
	return c.frames, err
}

type frame struct {
	at   int64
	code string
	data string
}

// ending is when a call's output is shown. The output itself is read then: calls
// that run at once may be any number, and each may have a megabyte.
type ending struct {
	at   int64
	step int
}

// endings is a heap, the earliest first, the earlier step of equal ones.
type endings []ending

func (e endings) Len() int { return len(e) }
func (e endings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].step, e[j].step)) < 0
}
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)   { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type caster struct {
	s        *Source
	w        io.Writer
	v3       bool
	recorded bool // at a terminal, not told by a harness
	clock    transcript.Clock
	err      error
	n        int     // steps without a clock so far
	due      endings // of the calls that have not ended yet
	last     int64
	frames   int
}

func (c *caster) head() error {
	info := c.s.T.Info()
	width, height := castWidth, castHeight
	for _, f := range info.Extra {
		n := 0
		if _, err := fmt.Sscan(f.Value, &n); err != nil || n < 1 || n > 1000 {
			continue
		}
		switch f.Name {
		case "width", "term.cols":
			width = n
		case "height", "term.rows":
			height = n
		}
	}
	title := cmp.Or(c.s.Session, info.Session, info.Task, info.Format)
	if c.clock == transcript.NoClock || c.clock == transcript.Synthetic {
		title += " (the record has no times)"
	}
	head := map[string]any{"version": 2, "width": width, "height": height, "title": c.s.Redact.Text(text.Line(title))}
	if c.v3 {
		head = map[string]any{"version": 3, "term": map[string]any{"cols": width, "rows": height}, "title": head["title"]}
	}
	if _, zero := c.s.T.Clock(); !zero.IsZero() && c.clock == transcript.Absolute {
		head["timestamp"] = zero.Unix()
	}
	return c.line(head)
}

func (c *caster) line(v any) error {
	b, err := plainjson.Compact(v)
	if err == nil {
		_, err = c.w.Write(append(b, '\n'))
	}
	return err
}

// until writes the outputs that came before a time.
func (c *caster) until(at int64) error {
	for c.err == nil && len(c.due) > 0 && c.due[0].at <= at {
		next := heap.Pop(&c.due).(ending)
		f, err := c.s.T.FullLimit(next.step, BodyLimit)
		if err != nil {
			return err
		}
		c.output(f, next.at)
	}
	return c.err
}

// emit writes a frame; time never runs back.
func (c *caster) emit(f frame) {
	if c.err != nil || f.data == "" {
		return
	}
	at := max(f.at, c.last)
	shown := at
	if c.v3 {
		shown = at - c.last
	}
	c.last = at
	c.frames++
	c.err = c.line([]any{json.RawMessage(fmt.Sprintf("%d.%03d", shown/1000, shown%1000)), f.code, f.data})
}

// output writes what came back from a call.
func (c *caster) output(f *transcript.Full, at int64) {
	if out := c.s.words(f, transcript.PartOutput, transcript.PartError, transcript.PartMedia); out != "" {
		c.emit(frame{at, "o", strings.TrimRight(lines(replayable(out)), "\r\n") + "\x1b[0m\r\n"})
	}
}

func (c *caster) step(f *transcript.Full, at int64, j *analysis.Judge) {
	s := c.s
	kind, changed := j.Kind(f.Index)
	switch {
	case f.Kind == transcript.Marker && f.Outcome != transcript.Failed, changed:
		label := s.Redact.Text(f.Title)
		if changed {
			label = string(kind) + ": " + label
		}
		c.emit(frame{at, "m", text.Line(label)})
	}
	switch f.Kind {
	case transcript.ToolCall:
		typed := s.words(f, transcript.PartCommand, transcript.PartCode)
		prompt := "$ "
		if typed == "" {
			typed, prompt = s.Redact.Text(strings.TrimSpace(f.Tool+" "+f.Title)), "▸ "
		}
		c.emit(frame{at, "o", "\x1b[1m" + prompt + lines(replayable(typed)) + "\x1b[0m\r\n"})
		if f.DurationMS > 0 {
			heap.Push(&c.due, ending{at + f.DurationMS, f.Index})
		} else {
			c.output(f, at)
		}
	case transcript.Output:
		out := replayable(s.words(f, transcript.PartOutput, transcript.PartError))
		if !c.recorded {
			out = lines(out)
		}
		c.emit(frame{at, "o", out})
	case transcript.Message:
		words := text.Block(s.words(f, transcript.PartMessage))
		if words != "" {
			c.emit(frame{at, "o", "\x1b[2m" + lines(prefixed("# ", words)) + "\x1b[0m\r\n"})
		}
	}
}

// lines ends each line as a terminal needs it.
func lines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// replayable keeps of a terminal's stream what draws on its screen: text, movement,
// erasing, colours, the cursor's and the alternate screen's modes. Titles, the
// clipboard, links, questions to the terminal and strings of any kind are dropped.
func replayable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f }) {
		return s
	}
	var b strings.Builder
	p := ansi.NewParser()
	p.SetParamsSize(32)
	p.SetDataSize(64)
	var state byte
	s = strings.ToValidUTF8(s, "\uFFFD")
	for len(s) > 0 {
		seq, width, n, next := ansi.DecodeSequence(s, state, p)
		if n == 0 {
			break
		}
		state, s = next, s[n:]
		switch {
		case width > 0:
			b.WriteString(seq)
		case len(seq) == 1 && strings.ContainsAny(seq, "\n\r\t\b"):
			b.WriteString(seq)
		case strings.HasPrefix(seq, "\x1b[") && draws(ansi.Cmd(p.Command()), p):
			b.WriteString(seq)
		case seq == "\x1b7", seq == "\x1b8", seq == "\x1bM", seq == "\x1bD", seq == "\x1bE":
			b.WriteString(seq)
		}
	}
	return b.String()
}

// draws says that a control sequence does nothing but draw.
func draws(cmd ansi.Cmd, p *ansi.Parser) bool {
	if cmd.Intermediate() != 0 {
		return false
	}
	switch cmd.Prefix() {
	case 0:
		return strings.ContainsRune("ABCDEFGHIJKLMPSTXZ@`adefmrsu", rune(cmd.Final()))
	case '?':
		if cmd.Final() != 'h' && cmd.Final() != 'l' {
			return false
		}
		mode, ok := p.Param(0, 0)
		return ok && (mode == 7 || mode == 25 || mode == 1049 || mode == 47 || mode == 1047 || mode == 1048)
	}
	return false
}
