package canvas

import "unicode/utf8"

// Profile says what the terminal can show.
type Profile uint8

// Profiles, from nothing to everything.
const (
	Plain     Profile = iota // no escape sequence at all: TERM=dumb, pipes
	Mono                     // attributes but no colours: NO_COLOR
	ANSI16                   // the terminal's own sixteen colours
	ANSI256                  // the 256-colour palette
	TrueColor                // 24-bit colours
)

// Output is how a frame is written.
type Output struct {
	Profile Profile
	Theme   Theme
	ASCII   bool // printable ASCII only, for fonts, locales and readers that need it
	Paint   bool // paint the theme's background instead of the terminal's own, also where the theme does not ask for it
}

// Flatten returns the window as text: its rows joined by "\n", without blanks of the
// default style at their ends. One allocation, the string itself.
func (c Canvas) Flatten(o Output) string {
	o.Paint = o.Paint || o.Theme.paint
	out := c.g.out[:0]
	for y := range c.r.H {
		if y > 0 {
			out = append(out, '\n')
		}
		out = o.appendRow(out, c.row(y))
	}
	c.g.out = out
	return string(out)
}

func (o *Output) appendRow(out []byte, row []Cell) []byte {
	n := len(row)
	if !o.Paint || o.Profile < ANSI16 {
		for n > 0 && blank(&row[n-1]) {
			n--
		}
	}
	cur, styled := Style{}, o.Paint && o.Profile >= ANSI16
	if styled {
		out = o.appendSGR(out, cur)
	}
	for i := range row[:n] {
		cell := &row[i]
		if cell.R == Cont && i > 0 {
			continue
		}
		st := cell.S
		if o.Profile == Mono {
			st.Fg, st.Bg = Default, Default
		}
		if st != cur && o.Profile > Plain {
			cur = st
			out = o.appendSGR(out, cur)
			styled = true
		}
		switch r := cell.R; {
		case r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			out = append(out, ' ')
		case r < 0x7f && cell.M[0] == 0:
			out = append(out, byte(r))
		case o.ASCII:
			out = append(out, ascii(r))
			if i+1 < len(row) && row[i+1].R == Cont {
				out = append(out, ascii(r))
			}
		default:
			out = utf8.AppendRune(out, r)
			for _, m := range cell.M {
				if m != 0 {
					out = utf8.AppendRune(out, rune(m))
				}
			}
		}
	}
	if styled && (cur != Style{} || o.Paint) {
		out = append(out, "\x1b[m"...)
	}
	return out
}

func blank(c *Cell) bool { return c.R <= ' ' && c.R != Cont && c.S == Style{} }

// appendSGR appends one sequence that sets st from any state.
func (o *Output) appendSGR(out []byte, st Style) []byte {
	out = append(out, "\x1b["...)
	start := len(out)
	out = append(out, '0')
	for i, code := range [...]byte{'1', '2', '3', '4', '7', '9'} {
		if st.Attr&(1<<i) != 0 {
			out = append(out, ';', code)
		}
	}
	if o.Profile >= ANSI16 {
		bg := st.Bg
		if bg == Default && o.Paint {
			bg = background
		}
		fg := st.Fg
		if fg == Default && o.Paint {
			fg = Text
		}
		out = o.appendColor(out, fg, false)
		out = o.appendColor(out, bg, true)
	}
	if len(out) == start+1 {
		out = out[:start]
	}
	return append(out, 'm')
}

// appendColor appends ";" and the parameters of one colour, nothing for Default.
func (o *Output) appendColor(out []byte, c Color, bg bool) []byte {
	c = o.resolve(c)
	base := byte(30)
	if bg {
		base = 40
	}
	switch c & kindMask {
	case kindPalette:
		i := byte(c)
		switch {
		case i < 8:
			return appendNum(append(out, ';'), base+i)
		case i < 16:
			return appendNum(append(out, ';'), base+60+i-8)
		}
		out = appendNum(append(out, ';'), base+8)
		return appendNum(append(out, ";5;"...), i)
	case kindRGB:
		out = appendNum(append(out, ';'), base+8)
		out = appendNum(append(out, ";2;"...), byte(c>>16))
		out = appendNum(append(out, ';'), byte(c>>8))
		return appendNum(append(out, ';'), byte(c))
	}
	return out
}

func appendNum(out []byte, n byte) []byte {
	if n >= 100 {
		out = append(out, '0'+n/100)
	}
	if n >= 10 {
		out = append(out, '0'+n/10%10)
	}
	return append(out, '0'+n%10)
}
