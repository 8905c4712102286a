package viewtest

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"refbox/tui/canvas"
)

// looks are the ways in which every screen is held to its golden frame.
func looks() []struct {
	name string
	out  canvas.Output
} {
	return []struct {
		name string
		out  canvas.Output
	}{
		{"dark", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Dark()}},
		{"light", canvas.Output{Profile: canvas.ANSI256, Theme: canvas.Light()}},
		{"high-contrast", canvas.Output{Profile: canvas.TrueColor, Theme: canvas.HighContrast()}},
		{"no colour", canvas.Output{Profile: canvas.Mono, Theme: canvas.Dark()}},
		{"ascii", canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark(), ASCII: true}},
	}
}

var (
	sgr      = regexp.MustCompile("\x1b\\[[0-9;]*m")
	coloured = regexp.MustCompile("\x1b\\[[0-9;]*\\b([34][0-9]|9[0-7]|10[0-7])[;m]")
)

// Looks compares a screen of w × h with its golden frame: the plain text, below it a
// digest of each way to show it (dark, light, high contrast, without colour, ASCII).
// Whatever the way, the words are those of the plain frame; without colour no sequence
// sets one; ASCII is ASCII. flatten shows what was drawn.
func Looks(t testing.TB, name string, w, h int, flatten func(canvas.Output) string) {
	t.Helper()
	plain := flatten(canvas.Output{Profile: canvas.Plain, Theme: canvas.Dark()})
	Fits(t, plain, w, h)
	var below strings.Builder
	for _, l := range looks() {
		frame := flatten(l.out)
		Fits(t, frame, w, h)
		OnlySGR(t, name+", "+l.name, frame)
		words := sgr.ReplaceAllString(frame, "")
		switch {
		case l.out.ASCII:
			if i := strings.IndexFunc(words, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
				t.Errorf("%s: in ASCII there is %.10q", name, words[i:])
			}
		case trimmed(words) != trimmed(plain):
			t.Errorf("%s, %s: the words differ from the plain frame's:\n%s", name, l.name, words)
		}
		if l.out.Profile == canvas.Mono && coloured.MatchString(frame) {
			t.Errorf("%s: without colour there is %q", name, coloured.FindString(frame))
		}
		digest := sha256.Sum256([]byte(frame))
		fmt.Fprintf(&below, "\n%s %x", l.name, digest[:6])
	}
	Golden(t, name, plain+"\n"+below.String())
}

// trimmed is a frame without the blanks at its lines' ends, which a background may
// fill or not.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
