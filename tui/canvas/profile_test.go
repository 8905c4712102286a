package canvas

import "testing"

func TestProfileOf(t *testing.T) {
	for _, tc := range []struct {
		term, colorTerm, noColor string
		want                     Profile
	}{
		{"", "", "", Plain},
		{"dumb", "truecolor", "", Plain},
		{"xterm-256color", "", "", ANSI256},
		{"screen", "", "", ANSI256},
		{"tmux-256color", "truecolor", "", TrueColor},
		{"xterm-256color", "truecolor", "1", Mono},
		{"linux", "", "", ANSI16},
		{"vt100", "", "", Mono},
	} {
		env := map[string]string{"TERM": tc.term, "COLORTERM": tc.colorTerm, "NO_COLOR": tc.noColor}
		if got := ProfileOf(func(k string) string { return env[k] }); got != tc.want {
			t.Errorf("%+v: profile %d", tc, got)
		}
	}
}
