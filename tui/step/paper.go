package step

import (
	"strings"
	"unicode"

	"refbox/engine/text"
	"refbox/tui/canvas"
)

// row is one line of a page, ready to be drawn.
type row struct {
	cells []canvas.Cell
	// fold is the part (by its place in the step) whose rest is folded away behind
	// this row; -1 on every other row.
	fold int
}

// paper gathers rows of at most w cells.
type paper struct {
	w    int
	rows []row
	line []canvas.Cell // the one that is being written
}

// maxRows bounds a page; what is beyond is for the editor.
const maxRows = 40_000

func (p *paper) full() bool { return len(p.rows) >= maxRows }

// put appends sanitised text to the line; line breaks in it end lines, each
// wrapped with the given indent.
func (p *paper) put(s string, st canvas.Style, hang int) {
	for {
		line, rest, more := strings.Cut(s, "\n")
		p.line = ink(p.line, line, st)
		if !more {
			return
		}
		p.end(hang)
		s = rest
	}
}

// ink appends text as cells. Controls take no cell, so they are gone.
func ink(cells []canvas.Cell, s string, st canvas.Style) []canvas.Cell {
	for _, r := range s {
		switch text.RuneWidth(r) {
		case 0:
			if n := len(cells); r >= 0x300 && n > 0 {
				if cells[n-1].R == canvas.Cont && n > 1 {
					n--
				}
				cells[n-1].AddMark(r)
			}
		case 2:
			cells = append(cells, canvas.Cell{R: canvas.Visible(r), S: st}, canvas.Cell{R: canvas.Cont, S: st})
		default:
			cells = append(cells, canvas.Cell{R: canvas.Visible(r), S: st})
		}
	}
	return cells
}

// end ends the line that was put, even an empty one. What does not fit goes on
// in rows that begin with hang blanks.
func (p *paper) end(hang int) {
	line := p.line
	p.line = nil
	if hang >= p.w/2 {
		hang = 0
	}
	for first := true; !p.full(); first = false {
		room := p.w
		var head []canvas.Cell
		if !first {
			room -= hang
			head = make([]canvas.Cell, hang, hang+min(len(line), room))
		}
		if len(line) <= room {
			p.rows = append(p.rows, row{append(head, line...), -1})
			return
		}
		cut, next := breakAt(line, room)
		p.rows = append(p.rows, row{append(head, line[:cut]...), -1})
		line = line[next:]
	}
}

// breakAt says where a line ends that must be at most room cells, and where the
// next begins: behind a blank where there is one, never inside a wide rune.
func breakAt(line []canvas.Cell, room int) (cut, next int) {
	text := 0 // the first cell that shows something
	for text < room && line[text].R <= ' ' && line[text].R != canvas.Cont {
		text++
	}
	for i := room; i > text; i-- {
		if line[i].R == ' ' || line[i].R == 0 {
			cut, next = i, i
			for cut > 0 && line[cut-1].R == ' ' {
				cut--
			}
			for next < len(line) && line[next].R == ' ' {
				next++
			}
			return cut, next
		}
	}
	cut = room
	if line[cut].R == canvas.Cont && cut > 1 {
		cut--
	}
	return max(1, cut), max(1, cut)
}

// say is a whole line of text.
func (p *paper) say(s string, st canvas.Style) {
	p.put(s, st, 0)
	p.end(0)
}

// gap is an empty row, but never two.
func (p *paper) gap() {
	if n := len(p.rows); n > 0 && len(p.rows[n-1].cells) > 0 {
		p.rows = append(p.rows, row{fold: -1})
	}
}

// rule is a line across with a title.
func (p *paper) rule(title, note string) {
	p.gap()
	st := canvas.Fg(canvas.Border)
	var cells []canvas.Cell
	cells = ink(cells, "── ", st)
	cells = ink(cells, text.Truncate(title, max(4, p.w-8), text.Ellipsis), canvas.Fg(canvas.Dim).With(canvas.Bold))
	cells = ink(cells, " ", st)
	tail := ""
	if note != "" && len(cells)+text.Width(note)+4 <= p.w {
		tail = " " + note + " ─"
	}
	for len(cells) < p.w-text.Width(tail) {
		cells = ink(cells, "─", st)
	}
	cells = ink(cells, tail, canvas.Fg(canvas.Dim))
	p.rows = append(p.rows, row{cells[:min(len(cells), p.w)], -1})
}

// words is a row's text in lower case, for a search in it.
func (r row) words() string {
	var b strings.Builder
	for _, c := range r.cells {
		switch {
		case c.R == canvas.Cont:
		case c.R == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(unicode.ToLower(c.R))
		}
	}
	return b.String()
}

// mark restyles each place in a row that has the words, given in lower case; c is
// the row's window.
func (r row) mark(c canvas.Canvas, x, y int, words string) {
	if words == "" {
		return
	}
	want := []rune(words)
	var at []int // the cell of each rune
	var have []rune
	for i, cell := range r.cells {
		if cell.R != canvas.Cont {
			at = append(at, i)
			have = append(have, unicode.ToLower(max(cell.R, ' ')))
		}
	}
	for i := 0; i+len(want) <= len(have); i++ {
		same := true
		for j, w := range want {
			if have[i+j] != w {
				same = false
				break
			}
		}
		if same {
			last := at[i+len(want)-1]
			c.Restyle(canvas.Rect{X: x + at[i], Y: y, W: last - at[i] + 1, H: 1}, canvas.Style{Attr: canvas.Reverse | canvas.Bold})
			i += len(want) - 1
		}
	}
}
