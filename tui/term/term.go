// Package term is the console emulator: bytes of a guest's serial console in, a grid
// of cells out.
//
// It hides escape sequences, charsets, scrolling and history. It guarantees: whatever
// the bytes are, nothing panics, nothing blocks, the cursor stays inside, memory is
// bounded, and the outcome does not depend on how the bytes were cut into writes.
// Titles, hyperlinks, clipboard writes and every other string sequence are swallowed.
// Autowrap cannot be switched off: SeaBIOS does that on serial and never restores it
// (reference/terminal.md, finding 10).
//
// A Term has one owner at a time and no locks. A Clone shares its lines until one of
// the two writes them, so clones are cheap enough to be kept as seek points, and may
// be used by another owner.
package term

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"

	"refbox/tui/canvas"
)

const (
	// Scrollback is the number of lines that are kept above the screen.
	Scrollback = 2000
	// MaxSize bounds the width and the height.
	MaxSize = 1000

	maxSequence = 4096 // bytes of one escape sequence, string sequences included
	maxReplies  = 16   // per Write
)

// owner is the identity that lines compare with; a Clone gives both sides new ones, so
// that every line of before belongs to neither.
type owner struct{ _ byte }

type line struct {
	cells []canvas.Cell // as wide as the screen, or shorter in the scrollback
	used  int           // cells from here on are blank and of the default style
	owner *owner
}

type cursor struct {
	x, y    int
	pending bool // a rune was put in the last column; the next one wraps first
	style   canvas.Style
	origin  bool
	charset [2]bool // G0 and G1: is it the line drawing set
	shift   int     // the one in use
}

type screen struct {
	lines []*line
	saved cursor
}

// Term is a terminal's screen and history. Make one with New.
type Term struct {
	w, h       int
	own        *owner
	cur        cursor
	scr        *screen // main or alt
	main, alt  screen
	top, bot   int // the scroll region, both inside it
	tabs       []bool
	insert     bool
	newline    bool // LNM
	hidden     bool // the cursor
	last       rune // for REP
	hist       history
	gen        uint64
	parser     *ansi.Parser
	inSequence bool
	seq        []byte // what the parser has seen of the sequence it is in
	seqLen     int
	part       [utf8.UTFMax]byte // an incomplete rune at the end of a write
	partLen    int
	reply      func([]byte)
	replies    int
}

// New returns a blank screen of w × h cells, at least 1 × 1 and at most MaxSize each way.
func New(w, h int) *Term {
	t := &Term{own: new(owner)}
	t.w, t.h = clamp(w, 1, MaxSize), clamp(h, 1, MaxSize)
	t.reset()
	return t
}

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }

// reset is RIS: everything but the size, the history and the callback.
func (t *Term) reset() {
	t.main.lines, t.alt.lines = t.blankLines(t.main.lines), nil
	t.scr = &t.main
	t.main.saved, t.alt.saved, t.cur = cursor{}, cursor{}, cursor{}
	t.top, t.bot = 0, t.h-1
	t.insert, t.newline, t.hidden, t.last = false, false, false, 0
	t.resetTabs()
}

func (t *Term) resetTabs() {
	t.tabs = make([]bool, t.w)
	for i := range t.tabs {
		t.tabs[i] = i%8 == 0
	}
}

// blankLines returns h blank lines, of old ones where they are ours.
func (t *Term) blankLines(old []*line) []*line {
	lines := make([]*line, t.h)
	for i := range lines {
		if i < len(old) && old[i].owner == t.own && len(old[i].cells) == t.w {
			lines[i] = old[i]
			lines[i].clear()
			continue
		}
		lines[i] = t.newLine()
	}
	return lines
}

func (t *Term) newLine() *line { return &line{cells: make([]canvas.Cell, t.w), owner: t.own} }

func (l *line) clear() {
	clear(l.cells[:l.used])
	l.used = 0
}

// Size returns the width and height in cells.
func (t *Term) Size() (w, h int) { return t.w, t.h }

// Gen changes whenever the picture may have changed.
func (t *Term) Gen() uint64 { return t.gen }

// Cursor returns where the cursor is and whether the guest shows it.
func (t *Term) Cursor() (x, y int, visible bool) { return t.cur.x, t.cur.y, !t.hidden }

// OnReply sets what receives the answers to the guest's questions (cursor position,
// device attributes). It is called during Write and must not block. Without it, as in a
// replay, questions are dropped. Clones do not inherit it.
func (t *Term) OnReply(f func([]byte)) { t.reply = f }

// Clone returns an independent copy that shares the lines of both until written.
func (t *Term) Clone() *Term {
	c := *t
	c.own, t.own = new(owner), new(owner)
	c.main.lines = append([]*line(nil), t.main.lines...)
	c.alt.lines = append([]*line(nil), t.alt.lines...)
	c.scr = &c.main
	if t.scr == &t.alt {
		c.scr = &c.alt
	}
	c.tabs = append([]bool(nil), t.tabs...)
	c.hist = t.hist.clone()
	c.reply = nil
	c.seq = append([]byte(nil), t.seq...)
	c.parser = nil
	if c.inSequence {
		c.resume()
	}
	return &c
}

// resume brings a new parser to where the old one was inside a sequence. All that it
// has dispatched on the way are controls, which must not act twice.
func (t *Term) resume() {
	t.parser = newParser()
	for _, b := range t.seq {
		t.parser.Advance(b)
	}
	t.parser.SetHandler(t.handler())
}

func isString(s parser.State) bool {
	switch s {
	case parser.OscStringState, parser.SosStringState, parser.PmStringState, parser.ApcStringState,
		parser.DcsEntryState, parser.DcsIntermediateState, parser.DcsParamState, parser.DcsStringState:
		return true
	}
	return false
}

func newParser() *ansi.Parser {
	p := new(ansi.Parser)
	p.SetParamsSize(32)
	p.SetDataSize(1) // the contents of string sequences are not wanted
	return p
}

// Resize changes the size. Lines are cut or extended at the right without reflow; when
// the height shrinks, blank lines below the cursor go first, then the top ones, into
// the history.
func (t *Term) Resize(w, h int) {
	w, h = clamp(w, 1, MaxSize), clamp(h, 1, MaxSize)
	if w == t.w && h == t.h {
		return
	}
	t.gen++
	t.w, t.h = w, h
	drop := max(0, t.cur.y+1-h)
	if t.scr == &t.alt {
		t.alt.lines = t.fit(t.alt.lines, drop, false)
		t.main.lines = t.fit(t.main.lines, max(0, t.main.saved.y+1-h), true)
	} else {
		t.main.lines = t.fit(t.main.lines, drop, true)
		t.alt.lines = nil
	}
	t.cur.y -= drop
	t.cur.x = min(t.cur.x, w-1)
	t.cur.pending = false
	t.top, t.bot = 0, h-1
	tabs := t.tabs
	t.resetTabs()
	copy(t.tabs, tabs)
}

// fit brings lines to the size, dropping the first drop of them.
func (t *Term) fit(lines []*line, drop int, keep bool) []*line {
	for _, l := range lines[:min(drop, len(lines))] {
		if keep {
			t.hist.push(t, l)
		}
	}
	lines = lines[min(drop, len(lines)):]
	fitted := make([]*line, t.h)
	for i := range fitted {
		fitted[i] = t.newLine()
		if i >= len(lines) {
			continue
		}
		n := copy(fitted[i].cells, lines[i].cells[:lines[i].used])
		fitted[i].used = n
		if n < lines[i].used && lines[i].cells[n].R == canvas.Cont { // a wide rune was cut
			fitted[i].cells[n-1] = canvas.Cell{S: fitted[i].cells[n-1].S}
		}
	}
	return fitted
}

// Write feeds the console's bytes. It never fails and takes everything.
func (t *Term) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	t.gen++
	t.replies = 0
	for len(p) > 0 {
		if t.inSequence {
			p = p[t.sequence(p):]
			continue
		}
		if t.partLen > 0 {
			p = p[t.finishRune(p):]
			continue
		}
		switch c := p[0]; {
		case c >= 0x20 && c < 0x7f:
			p = p[t.printASCII(p):]
		case c == 0x1b:
			t.inSequence = true
		case c < 0x20 || c == 0x7f:
			t.control(c)
			p = p[1:]
		default:
			p = p[t.printRune(p):]
		}
	}
	return n, nil
}

// sequence feeds the parser until the sequence has ended and returns the bytes taken.
func (t *Term) sequence(p []byte) int {
	if t.parser == nil {
		t.resume()
	}
	i := 0
	for i < len(p) {
		b := p[i]
		if b >= 0x80 {
			if st := t.parser.State(); isString(st) {
				i++ // part of a string; the parser would take it for an 8-bit control
				t.seqLen++
				continue
			}
			t.endSequence() // a rune cancels the sequence
			return i
		}
		i++
		t.seqLen++
		if t.parser.Advance(b); t.parser.State() == parser.GroundState {
			t.endSequence()
			return i
		}
		if b == 0x1b && t.parser.State() == parser.EscapeState {
			t.seq, t.seqLen = t.seq[:0], 1 // a new sequence cancels what went before
		}
		t.seq = append(t.seq, b)
		if t.seqLen > maxSequence {
			t.endSequence()
			return i
		}
	}
	return i
}

func (t *Term) endSequence() {
	t.parser.Reset()
	t.inSequence = false
	t.seq, t.seqLen = t.seq[:0], 0
}

// finishRune takes the bytes that complete a rune cut by the end of the last write.
func (t *Term) finishRune(p []byte) int {
	taken := 0
	for taken < len(p) && !utf8.FullRune(t.part[:t.partLen]) {
		t.part[t.partLen] = p[taken]
		t.partLen++
		taken++
	}
	if !utf8.FullRune(t.part[:t.partLen]) {
		return taken
	}
	n := t.partLen
	t.partLen = 0
	r, size := utf8.DecodeRune(t.part[:n])
	if r == utf8.RuneError && size == 1 {
		// The byte that came last does not belong to the others: it is read again.
		for range n - 1 {
			t.print(utf8.RuneError)
		}
		return taken - 1
	}
	t.print(r)
	return taken
}

// printRune prints the rune at the start of p, or keeps its beginning for the next write.
func (t *Term) printRune(p []byte) int {
	if !utf8.FullRune(p) {
		t.partLen = copy(t.part[:], p)
		return len(p)
	}
	r, size := utf8.DecodeRune(p)
	t.print(r)
	return size
}
