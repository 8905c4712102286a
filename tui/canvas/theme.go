package canvas

// background is the colour behind everything when Output.Paint is set.
const background = roleEnd

// Theme gives every role a colour, in a form for each profile. The zero Theme shows
// roles in the terminal's own colours.
type Theme struct {
	name  string
	paint bool // its background is part of it
	roles *[roleCount + 1]roleColor
}

type roleColor struct {
	rgb  Color // for TrueColor
	p    uint8 // palette entry for ANSI256
	ansi int8  // 0 to 15 for ANSI16, -1 for the terminal's own
}

// Name is "dark", "light", "high-contrast", or that of a theme of one's own.
func (t Theme) Name() string { return t.name }

// resolve turns c into Default, a palette entry or RGB that the profile can show.
func (o *Output) resolve(c Color) Color {
	if c&kindMask == kindRole {
		i := int(c - kindRole)
		if o.Theme.roles == nil || i > roleCount {
			return Default
		}
		rc := o.Theme.roles[i]
		switch {
		case o.Profile == TrueColor:
			return rc.rgb
		case o.Profile == ANSI256:
			return Palette(rc.p)
		case rc.ansi < 0:
			return Default
		}
		return Palette(uint8(rc.ansi))
	}
	switch {
	case c&kindMask == kindRGB && o.Profile == ANSI256:
		return Palette(nearest256(c))
	case c&kindMask == kindRGB && o.Profile == ANSI16:
		return Palette(nearest16(c))
	case c&kindMask == kindPalette && c&0xff > 15 && o.Profile == ANSI16:
		return Palette(nearest16(paletteRGB(uint8(c))))
	}
	return c
}

// paletteRGB returns entry i of the usual 256-colour palette.
func paletteRGB(i uint8) Color {
	switch {
	case i < 16:
		return sixteen[i]
	case i < 232:
		level := func(n uint8) uint8 {
			if n == 0 {
				return 0
			}
			return 55 + 40*n
		}
		i -= 16
		return RGB(level(i/36), level(i/6%6), level(i%6))
	}
	g := 8 + 10*(i-232)
	return RGB(g, g, g)
}

// sixteen are xterm's defaults; a terminal's own differ, so they only serve distances.
var sixteen = [16]Color{
	RGB(0, 0, 0), RGB(205, 0, 0), RGB(0, 205, 0), RGB(205, 205, 0),
	RGB(0, 0, 238), RGB(205, 0, 205), RGB(0, 205, 205), RGB(229, 229, 229),
	RGB(127, 127, 127), RGB(255, 0, 0), RGB(0, 255, 0), RGB(255, 255, 0),
	RGB(92, 92, 255), RGB(255, 0, 255), RGB(0, 255, 255), RGB(255, 255, 255),
}

func nearest16(c Color) uint8 { return nearest(c, 0, 15) }

// nearest256 leaves out the first sixteen, which every terminal colours as it likes.
func nearest256(c Color) uint8 {
	channel := func(v uint8) (n, level int) {
		switch {
		case v < 48:
			return 0, 0
		case v < 115:
			return 1, 95
		}
		n = (int(v) - 35) / 40
		return n, 55 + 40*n
	}
	r, rl := channel(uint8(c >> 16))
	g, gl := channel(uint8(c >> 8))
	b, bl := channel(uint8(c))
	cube := uint8(16 + 36*r + 6*g + b)
	grey := (int(uint8(c>>16)) + int(uint8(c>>8)) + int(uint8(c))) / 3
	gi := uint8(232 + max(0, min(23, (grey-3)/10)))
	if distance(c, paletteRGB(gi)) < distance(c, RGB(uint8(rl), uint8(gl), uint8(bl))) {
		return gi
	}
	return cube
}

func nearest(c Color, from, to int) uint8 {
	best, at := 1<<30, from
	for i := from; i <= to; i++ {
		if d := distance(c, paletteRGB(uint8(i))); d < best {
			best, at = d, i
		}
	}
	return uint8(at)
}

func distance(a, b Color) int {
	dr := int(uint8(a>>16)) - int(uint8(b>>16))
	dg := int(uint8(a>>8)) - int(uint8(b>>8))
	db := int(uint8(a)) - int(uint8(b))
	return 2*dr*dr + 4*dg*dg + 3*db*db
}

// RGB returns what a palette entry or a 24-bit colour looks like; false for the
// terminal's own colour and for a role, which only a theme resolves.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	switch c & kindMask {
	case kindPalette:
		c = paletteRGB(uint8(c))
	case kindRGB:
	default:
		return 0, 0, 0, false
	}
	return uint8(c >> 16), uint8(c >> 8), uint8(c), true
}
