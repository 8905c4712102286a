package term

import (
	"refbox/engine/text"
	"refbox/tui/canvas"
)

// writable returns line y for writing, a copy of its own if it is shared with a clone.
func (t *Term) writable(y int) *line {
	l := t.scr.lines[y]
	if l.owner != t.own {
		c := t.newLine()
		copy(c.cells, l.cells[:l.used])
		c.used = l.used
		t.scr.lines[y] = c
		return c
	}
	return l
}

// part blanks both halves of a wide rune that is cut between x-1 and x.
func (l *line) part(x int) {
	if x > 0 && x < l.used && l.cells[x].R == canvas.Cont {
		l.cells[x-1].R, l.cells[x-1].M = ' ', [2]uint16{}
		l.cells[x].R = ' '
	}
}

// printASCII prints the run of printable ASCII at the start of p and returns its length.
func (t *Term) printASCII(p []byte) int {
	n := 1
	for n < len(p) && p[n]-0x20 < 0x7f-0x20 {
		n++
	}
	p = p[:n]
	if t.insert || t.cur.charset[t.cur.shift] {
		for _, b := range p {
			t.print(rune(b))
		}
		return n
	}
	t.last = rune(p[n-1])
	cell := canvas.Cell{S: t.cur.style}
	for len(p) > 0 {
		if t.cur.pending {
			t.wrap()
		}
		x := t.cur.x
		k := min(t.w-x, len(p))
		l := t.writable(t.cur.y)
		l.part(x)
		l.part(x + k)
		cells := l.cells[x : x+k]
		for i, b := range p[:k] {
			cell.R = rune(b)
			cells[i] = cell
		}
		l.used = max(l.used, x+k)
		t.advance(k)
		p = p[k:]
	}
	return n
}

// advance moves the cursor over k cells just printed.
func (t *Term) advance(k int) {
	t.cur.x += k
	if t.cur.x >= t.w {
		t.cur.x = t.w - 1
		t.cur.pending = true
	}
}

func (t *Term) wrap() {
	t.cur.x, t.cur.pending = 0, false
	t.index()
}

// lineDrawing is the DEC special set from 0x60 to 0x7e.
var lineDrawing = [...]rune{
	'◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺',
	'⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}

func (t *Term) print(r rune) {
	if t.cur.charset[t.cur.shift] && r >= 0x60 && r <= 0x7e {
		r = lineDrawing[r-0x60]
	}
	r = canvas.Visible(r)
	w := text.RuneWidth(r)
	if w == 0 {
		t.mark(r)
		return
	}
	if w > t.w {
		r, w = '\ufffd', 1
	}
	t.last = r
	if t.cur.pending || t.cur.x+w > t.w {
		t.wrap()
	}
	l := t.writable(t.cur.y)
	x := t.cur.x
	if t.insert {
		t.insertBlanks(l, x, w)
	}
	l.part(x)
	l.part(x + w)
	l.cells[x] = canvas.Cell{R: r, S: t.cur.style}
	if w == 2 {
		l.cells[x+1] = canvas.Cell{R: canvas.Cont, S: t.cur.style}
	}
	l.used = max(l.used, x+w)
	t.advance(w)
}

// mark puts a combining mark on the rune before the cursor.
func (t *Term) mark(r rune) {
	x := t.cur.x - 1
	if t.cur.pending {
		x = t.cur.x
	}
	if x < 0 || x >= t.scr.lines[t.cur.y].used {
		return
	}
	l := t.writable(t.cur.y)
	if l.cells[x].R == canvas.Cont {
		x--
	}
	l.cells[x].AddMark(r)
}

// index moves down one line, scrolling at the region's end.
func (t *Term) index() {
	switch {
	case t.cur.y == t.bot:
		t.scrollUp(t.top, t.bot, 1)
	case t.cur.y < t.h-1:
		t.cur.y++
	}
}

func (t *Term) reverseIndex() {
	switch {
	case t.cur.y == t.top:
		t.scrollDown(t.top, t.bot, 1)
	case t.cur.y > 0:
		t.cur.y--
	}
}

// scrollUp moves lines top to bot up by n; what leaves at the screen's top is history.
func (t *Term) scrollUp(top, bot, n int) {
	lines := t.scr.lines
	for range min(n, bot-top+1) {
		l := lines[top]
		if top == 0 && t.scr == &t.main {
			t.hist.push(t, l)
		}
		copy(lines[top:bot], lines[top+1:bot+1])
		lines[bot] = t.recycle(l)
	}
}

func (t *Term) scrollDown(top, bot, n int) {
	lines := t.scr.lines
	for range min(n, bot-top+1) {
		l := lines[bot]
		copy(lines[top+1:bot+1], lines[top:bot])
		lines[top] = t.recycle(l)
	}
}

// recycle returns a line blank in the current background, l itself if it is ours.
func (t *Term) recycle(l *line) *line {
	if l.owner != t.own {
		l = t.newLine()
	} else {
		l.clear()
	}
	if t.cur.style.Bg != canvas.Default {
		t.erase(l, 0, t.w)
	}
	return l
}

// erase blanks cells from to to of l in the current background.
func (t *Term) erase(l *line, from, to int) {
	l.part(from)
	l.part(to)
	if bg := t.cur.style.Bg; bg != canvas.Default {
		for i := from; i < to; i++ {
			l.cells[i] = canvas.Cell{S: canvas.Style{Bg: bg}}
		}
		l.used = max(l.used, to)
		return
	}
	if from < l.used {
		clear(l.cells[from:min(to, l.used)])
		if to >= l.used {
			l.used = from
		}
	}
}

func (t *Term) eraseLines(from, to int) {
	for y := from; y < to; y++ {
		t.erase(t.writable(y), 0, t.w)
	}
}

// insertBlanks moves the cells of l from x on to the right by n.
func (t *Term) insertBlanks(l *line, x, n int) {
	n = min(n, t.w-x)
	l.part(x)
	l.part(t.w - n)
	if x < l.used {
		copy(l.cells[x+n:], l.cells[x:min(l.used, t.w-n)])
		l.used = min(l.used+n, t.w)
	}
	t.eraseMoved(l, x, x+n)
}

// deleteCells moves the cells of l after x+n to x.
func (t *Term) deleteCells(l *line, x, n int) {
	n = min(n, t.w-x)
	l.part(x)
	l.part(x + n)
	copy(l.cells[x:], l.cells[x+n:])
	t.eraseMoved(l, t.w-n, t.w)
	l.used = t.w
	for l.used > 0 && l.cells[l.used-1] == (canvas.Cell{}) {
		l.used--
	}
}

// eraseMoved blanks cells whose old contents now live elsewhere: no halves to mend.
func (t *Term) eraseMoved(l *line, from, to int) {
	for i := from; i < to; i++ {
		l.cells[i] = canvas.Cell{S: canvas.Style{Bg: t.cur.style.Bg}}
	}
	if t.cur.style.Bg != canvas.Default {
		l.used = max(l.used, to)
	}
}
