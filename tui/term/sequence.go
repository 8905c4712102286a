package term

import (
	"strconv"

	"github.com/charmbracelet/x/ansi"

	"refbox/tui/canvas"
)

func (t *Term) handler() ansi.Handler {
	return ansi.Handler{Execute: t.control, HandleEsc: t.escape, HandleCsi: t.csi}
}

// control acts on a C0 control.
func (t *Term) control(b byte) {
	switch b {
	case '\b':
		t.cur.x, t.cur.pending = max(0, t.cur.x-1), false
	case '\t':
		t.cur.pending = false
		t.tab(1)
	case '\n', '\v', '\f':
		t.cur.pending = false
		t.index()
		if t.newline {
			t.cur.x = 0
		}
	case '\r':
		t.cur.x, t.cur.pending = 0, false
	case 0x0e:
		t.cur.shift = 1
	case 0x0f:
		t.cur.shift = 0
	}
}

func (t *Term) tab(n int) {
	for ; n > 0 && t.cur.x < t.w-1; n-- {
		for t.cur.x++; t.cur.x < t.w-1 && !t.tabs[t.cur.x]; t.cur.x++ {
		}
	}
}

func (t *Term) backTab(n int) {
	for ; n > 0 && t.cur.x > 0; n-- {
		for t.cur.x--; t.cur.x > 0 && !t.tabs[t.cur.x]; t.cur.x-- {
		}
	}
}

func (t *Term) escape(cmd ansi.Cmd) {
	switch cmd.Intermediate() {
	case 0:
	case '(', ')':
		t.cur.charset[cmd.Intermediate()-'('] = cmd.Final() == '0'
		return
	case '#':
		if cmd.Final() == '8' {
			t.align()
		}
		return
	default:
		return
	}
	switch cmd.Final() {
	case '7':
		t.scr.saved = t.cur
	case '8':
		t.restore()
	case 'D':
		t.cur.pending = false
		t.index()
	case 'E':
		t.cur.x, t.cur.pending = 0, false
		t.index()
	case 'M':
		t.cur.pending = false
		t.reverseIndex()
	case 'H':
		t.tabs[t.cur.x] = true
	case 'Z':
		t.answer("\x1b[?6c")
	case 'c':
		t.reset()
	}
}

// align is DECALN: the screen full of E.
func (t *Term) align() {
	t.top, t.bot = 0, t.h-1
	t.cur.x, t.cur.y, t.cur.pending = 0, 0, false
	for y := range t.h {
		l := t.writable(y)
		for x := range l.cells {
			l.cells[x] = canvas.Cell{R: 'E'}
		}
		l.used = t.w
	}
}

func (t *Term) restore() {
	t.cur = t.scr.saved
	t.cur.x, t.cur.y = min(t.cur.x, t.w-1), min(t.cur.y, t.h-1)
}

func (t *Term) answer(s string) {
	if t.reply != nil && t.replies < maxReplies {
		t.replies++
		t.reply([]byte(s))
	}
}

// moveTo sets the cursor; y counts from the region's top in origin mode.
func (t *Term) moveTo(x, y int) {
	lo, hi := 0, t.h-1
	if t.cur.origin {
		lo, hi = t.top, t.bot
	}
	t.cur.x, t.cur.y = clamp(x, 0, t.w-1), clamp(lo+y, lo, hi)
	t.cur.pending = false
}

// moveUp and moveDown stop at the region's edge if they start inside it.
func (t *Term) moveUp(n int) {
	stop := 0
	if t.cur.y >= t.top {
		stop = t.top
	}
	t.cur.y, t.cur.pending = max(stop, t.cur.y-n), false
}

func (t *Term) moveDown(n int) {
	stop := t.h - 1
	if t.cur.y <= t.bot {
		stop = t.bot
	}
	t.cur.y, t.cur.pending = min(stop, t.cur.y+n), false
}

func (t *Term) csi(cmd ansi.Cmd, params ansi.Params) {
	// num returns parameter i; missing and 0 mean 1.
	num := func(i int) int {
		v, _, _ := params.Param(i, 1)
		return clamp(v, 1, 9999)
	}
	if cmd.Intermediate() != 0 {
		if cmd.Intermediate() == '!' && cmd.Final() == 'p' {
			t.softReset()
		}
		return
	}
	switch cmd.Prefix() {
	case 0:
	case '?':
		switch cmd.Final() {
		case 'h', 'l':
			params.ForEach(0, func(_, p int, _ bool) { t.privateMode(p, cmd.Final() == 'h') })
		case 'J':
			t.eraseDisplay(params)
		case 'K':
			t.eraseLine(params)
		}
		return
	case '>':
		if cmd.Final() == 'c' {
			t.answer("\x1b[>0;0;0c")
		}
		return
	default:
		return
	}
	switch cmd.Final() {
	case 'A':
		t.moveUp(num(0))
	case 'B', 'e':
		t.moveDown(num(0))
	case 'C', 'a':
		t.cur.x, t.cur.pending = min(t.w-1, t.cur.x+num(0)), false
	case 'D':
		t.cur.x, t.cur.pending = max(0, t.cur.x-num(0)), false
	case 'E':
		t.moveDown(num(0))
		t.cur.x = 0
	case 'F':
		t.moveUp(num(0))
		t.cur.x = 0
	case 'G', '`':
		t.cur.x, t.cur.pending = min(t.w, num(0))-1, false
	case 'H', 'f':
		t.moveTo(num(1)-1, num(0)-1)
	case 'I':
		t.cur.pending = false
		t.tab(min(num(0), t.w))
	case 'Z':
		t.cur.pending = false
		t.backTab(min(num(0), t.w))
	case 'd':
		t.moveTo(t.cur.x, num(0)-1)
	case 'J':
		t.eraseDisplay(params)
	case 'K':
		t.eraseLine(params)
	case 'X':
		t.erase(t.writable(t.cur.y), t.cur.x, min(t.w, t.cur.x+num(0)))
	case '@':
		t.insertBlanks(t.writable(t.cur.y), t.cur.x, num(0))
	case 'P':
		t.deleteCells(t.writable(t.cur.y), t.cur.x, num(0))
	case 'L':
		if t.cur.y >= t.top && t.cur.y <= t.bot {
			t.scrollDown(t.cur.y, t.bot, num(0))
		}
	case 'M':
		if t.cur.y >= t.top && t.cur.y <= t.bot {
			t.deleteLines(num(0))
		}
	case 'S':
		t.scrollUp(t.top, t.bot, num(0))
	case 'T':
		if len(params) <= 1 { // with more it starts mouse tracking
			t.scrollDown(t.top, t.bot, num(0))
		}
	case 'b':
		if t.last != 0 {
			for range min(num(0), t.w*t.h) {
				t.print(t.last)
			}
		}
	case 'g':
		switch v, _, _ := params.Param(0, 0); v {
		case 0:
			t.tabs[t.cur.x] = false
		case 3:
			clear(t.tabs)
		}
	case 'h', 'l':
		params.ForEach(0, func(_, p int, _ bool) {
			switch p {
			case 4:
				t.insert = cmd.Final() == 'h'
			case 20:
				t.newline = cmd.Final() == 'h'
			}
		})
	case 'm':
		t.sgr(params)
	case 'r':
		top, bot := num(0)-1, t.h-1
		if v, _, _ := params.Param(1, 0); v > 0 {
			bot = min(v, t.h) - 1
		}
		if top < bot {
			t.top, t.bot = top, bot
			t.moveTo(0, 0)
		}
	case 's':
		t.scr.saved = t.cur
	case 'u':
		t.restore()
	case 'n':
		switch v, _, _ := params.Param(0, 0); v {
		case 5:
			t.answer("\x1b[0n")
		case 6:
			y := t.cur.y
			if t.cur.origin {
				y -= t.top
			}
			t.answer("\x1b[" + strconv.Itoa(y+1) + ";" + strconv.Itoa(t.cur.x+1) + "R")
		}
	case 'c':
		t.answer("\x1b[?6c")
	}
}

// deleteLines is DL: unlike a scroll it leaves no history.
func (t *Term) deleteLines(n int) {
	lines := t.scr.lines
	for range min(n, t.bot-t.cur.y+1) {
		l := lines[t.cur.y]
		copy(lines[t.cur.y:t.bot], lines[t.cur.y+1:t.bot+1])
		lines[t.bot] = t.recycle(l)
	}
}

func (t *Term) softReset() {
	t.top, t.bot = 0, t.h-1
	t.insert, t.hidden = false, false
	t.cur.style, t.cur.origin, t.cur.charset, t.cur.shift = canvas.Style{}, false, [2]bool{}, 0
	t.scr.saved = cursor{}
}

func (t *Term) eraseDisplay(params ansi.Params) {
	switch v, _, _ := params.Param(0, 0); v {
	case 0:
		t.erase(t.writable(t.cur.y), t.cur.x, t.w)
		t.eraseLines(t.cur.y+1, t.h)
	case 1:
		t.eraseLines(0, t.cur.y)
		t.erase(t.writable(t.cur.y), 0, t.cur.x+1)
	case 2:
		t.eraseLines(0, t.h)
	case 3:
		t.hist = history{}
	}
}

func (t *Term) eraseLine(params ansi.Params) {
	l := t.writable(t.cur.y)
	switch v, _, _ := params.Param(0, 0); v {
	case 0:
		t.erase(l, t.cur.x, t.w)
	case 1:
		t.erase(l, 0, t.cur.x+1)
	case 2:
		t.erase(l, 0, t.w)
	}
}

func (t *Term) privateMode(p int, on bool) {
	switch p {
	case 6:
		t.cur.origin = on
		t.moveTo(0, 0)
	case 25:
		t.hidden = !on
	case 47, 1047:
		t.useAlt(on)
	case 1048:
		if on {
			t.scr.saved = t.cur
		} else {
			t.restore()
		}
	case 1049:
		if on {
			t.main.saved = t.cur
			t.useAlt(true)
		} else if t.scr == &t.alt {
			t.useAlt(false)
			t.restore()
		}
	}
}

// useAlt switches screens; the alternate one is always blank at first.
func (t *Term) useAlt(on bool) {
	if on == (t.scr == &t.alt) {
		return
	}
	if on {
		t.alt.lines = t.blankLines(nil)
		t.scr = &t.alt
		return
	}
	t.scr = &t.main
	t.alt.lines = nil
}

func (t *Term) sgr(params ansi.Params) {
	st := &t.cur.style
	if len(params) == 0 {
		*st = canvas.Style{}
		return
	}
	for i := 0; i < len(params); i++ {
		v, more, _ := params.Param(i, 0)
		switch {
		case v == 0:
			*st = canvas.Style{}
		case v <= 9 && attrs[v] != 0:
			if v == 4 && more {
				i++
				if u, _, _ := params.Param(i, 1); u == 0 {
					st.Attr &^= canvas.Underline
					continue
				}
			}
			st.Attr |= attrs[v]
		case v == 21:
			st.Attr |= canvas.Underline
		case v == 22:
			st.Attr &^= canvas.Bold | canvas.Faint
		case v >= 23 && v <= 29 && attrs[v-20] != 0:
			st.Attr &^= attrs[v-20]
		case v >= 30 && v <= 37:
			st.Fg = canvas.Palette(uint8(v - 30))
		case v == 39:
			st.Fg = canvas.Default
		case v >= 40 && v <= 47:
			st.Bg = canvas.Palette(uint8(v - 40))
		case v == 49:
			st.Bg = canvas.Default
		case v >= 90 && v <= 97:
			st.Fg = canvas.Palette(uint8(v - 82))
		case v >= 100 && v <= 107:
			st.Bg = canvas.Palette(uint8(v - 92))
		case v == 38 || v == 48 || v == 58:
			c, n := extended(params[i:], more)
			i += n
			if v == 38 && n > 0 {
				st.Fg = c
			} else if v == 48 && n > 0 {
				st.Bg = c
			}
		}
	}
}

// attrs maps SGR 1 to 9; blinking, concealed and 6 have no attribute here. What a
// guest conceals is shown: a referee wants to see it.
var attrs = [10]canvas.Attr{
	1: canvas.Bold, 2: canvas.Faint, 3: canvas.Italic, 4: canvas.Underline, 7: canvas.Reverse, 9: canvas.Strike,
}

// extended reads what follows 38 or 48, with semicolons or colons, and returns the
// colour and the number of parameters taken after the first.
func extended(p ansi.Params, colons bool) (canvas.Color, int) {
	get := func(i int) uint8 {
		v, _, _ := p.Param(i, 0)
		return uint8(clamp(v, 0, 255))
	}
	n := 0 // parameters after the first that belong to it
	if colons {
		for n+1 < len(p) && p[n].HasMore() {
			n++
		}
	}
	switch kind, _, _ := p.Param(1, 0); kind {
	case 5:
		if len(p) < 3 {
			return 0, len(p) - 1
		}
		return canvas.Palette(get(2)), max(n, 2)
	case 2:
		at := 2
		if colons && n >= 5 { // with a colour space before the three
			at = 3
		}
		if len(p) < at+3 {
			return 0, len(p) - 1
		}
		return canvas.RGB(get(at), get(at+1), get(at+2)), max(n, at+2)
	}
	return 0, n
}
