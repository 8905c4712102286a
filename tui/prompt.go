package tui

import (
	"strings"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
)

// prompt is the line at the bottom that takes text.
type prompt struct {
	label string
	input textinput.Model
	done  func(m *model, value string) tea.Cmd
	typed func(value string) // called with every change; may be nil
	hint  string             // shown while nothing is typed
}

// dialog asks one question. Its command, which may be empty, is for copying: no
// border breaks it, so that a terminal selects it whole however long it is.
type dialog struct {
	title   string
	lines   []string
	command string
	answers []answer
}

// askToRace asks before machines are started, saying what starts.
func (m *model) askToRace(starts string, race func(m *model) tea.Cmd) {
	m.dialog = &dialog{title: "Race a heat?", lines: []string{starts}, answers: []answer{
		{"enter", "race it", race},
		{"esc", "stay", nil},
	}}
}

type answer struct {
	key, word string
	do        func(m *model) tea.Cmd
}

func (m *model) answer(k tea.KeyMsg) tea.Cmd {
	d := m.dialog
	for _, a := range d.answers {
		if k.String() == a.key {
			m.dialog = nil
			if a.do == nil {
				return nil
			}
			return a.do(m)
		}
	}
	if k.String() == "ctrl+c" { // a second time: no more questions
		m.choice = Choice{EndHeat: true, Interrupted: true}
		return tea.Quit
	}
	return nil
}

// ask opens the prompt line.
func (m *model) ask(label string, typed func(string), done func(m *model, value string) tea.Cmd) {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 500
	in.Focus()
	m.prompt = &prompt{label: label, input: in, done: done, typed: typed}
}

func (m *model) promptKey(k tea.KeyMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc", "ctrl+c", "ctrl+g":
		m.prompt = nil
		if p.typed != nil {
			p.typed("")
		}
		return nil
	case "enter":
		m.prompt = nil
		return p.done(m, text.Line(p.input.Value()))
	}
	// The library's blinking cursor is not used: nothing may tick while nothing moves.
	p.input, _ = p.input.Update(k)
	if p.typed != nil {
		p.typed(text.Line(p.input.Value()))
	}
	return nil
}

func (p *prompt) draw(c canvas.Canvas) {
	w, _ := c.Size()
	x := c.Put(1, 0, p.label, canvas.Fg(canvas.Key).With(canvas.Bold))
	value := []rune(p.input.Value())
	pos := min(p.input.Position(), len(value))
	before, after := string(value[:pos]), string(value[pos:])
	for text.Width(before) > w-x-4 && before != "" {
		_, before, _ = strings.Cut(before, string([]rune(before)[0]))
	}
	x = c.Put(x, 0, before, canvas.Fg(canvas.Text))
	at, rest := " ", ""
	if after != "" {
		at, rest = string([]rune(after)[0]), string([]rune(after)[1:])
	}
	x = c.Put(x, 0, at, canvas.Fg(canvas.Text).With(canvas.Reverse|canvas.Underline))
	if len(value) == 0 {
		c.PutFit(x+1, 0, max(0, w-2-x), p.hint, canvas.Fg(canvas.Dim))
	}
	c.PutFit(x, 0, max(0, w-1-x), rest, canvas.Fg(canvas.Text))
}

func (m *model) drawDialog(c canvas.Canvas) {
	w, h := c.Size()
	d := m.dialog
	width := min(w-4, 72)
	var lines []string
	for _, l := range d.lines {
		lines = append(lines, text.Wrap(l, width-4)...)
	}
	var command []string // below the box, when it is too long for a row of it
	if wide := text.Width(d.command); wide > width-4 {
		command = cells(d.command, w)
	} else if wide > 0 {
		lines = append(lines, d.command)
	}
	// The answers always have their rows; the text gives way, and of the command what
	// the screen cannot hold (copying gives it whole).
	if room := h - 3 - len(d.answers); len(command) > room {
		command = append(command[:max(0, room-1)], text.Truncate(text.Ellipsis, w, ""))
	}
	if room := max(0, h-len(command)-len(d.answers)-3); len(lines) > room {
		if short := d.command != "" && len(command) == 0; short && room > 0 {
			lines = append(lines[:room-1], d.command)
		} else {
			lines = lines[:room]
		}
	}
	height := min(h, len(lines)+len(d.answers)+4)
	r := canvas.Rect{X: (w - width) / 2, Y: max(0, (h-height-len(command))/2), W: width, H: height}
	if len(command) > 0 {
		rows := canvas.Rect{X: 0, Y: min(r.Y+r.H, h-len(command)), W: w, H: len(command)}
		r.Y = max(0, rows.Y-r.H)
		rows.Y = max(rows.Y, r.Y+r.H)
		c.Fill(rows, ' ', canvas.Style{})
		for i, l := range command {
			c.Put(0, rows.Y+i, l, canvas.Fg(canvas.Title).With(canvas.Bold))
		}
	}
	c.Fill(r, ' ', canvas.Style{})
	in := c.Frame(r, canvas.Double, d.title, "", canvas.Fg(canvas.Focus), canvas.Fg(canvas.Title).With(canvas.Bold))
	y := in.Y
	for _, l := range lines {
		c.Put(in.X+1, y, l, canvas.Fg(canvas.Text))
		y++
	}
	y++
	for _, a := range d.answers {
		x := c.Put(in.X+1, y, keymap.Name(a.key), canvas.Fg(canvas.Key).With(canvas.Bold))
		c.PutFit(max(x+2, in.X+8), y, in.W-8, a.word, canvas.Fg(canvas.Text))
		y++
	}
}

// cells breaks s at the screen's edge, where a terminal joins what it selects:
// never at a word.
func cells(s string, w int) []string {
	var rows []string
	row, used := "", 0
	for _, r := range s {
		n := text.Width(string(r))
		if used+n > w && row != "" {
			rows, row, used = append(rows, row), "", 0
		}
		row, used = row+string(r), used+n
	}
	if row != "" {
		rows = append(rows, row)
	}
	return rows
}
