package canvas

import "strings"

// ProfileOf returns what the terminal that the environment describes can show; getenv
// is os.Getenv or a session's own. NO_COLOR takes the colours and keeps the attributes;
// a terminal of unknown type gets no sequences. It never asks the terminal.
func ProfileOf(getenv func(string) string) Profile {
	term := getenv("TERM")
	colorTerm := strings.ToLower(getenv("COLORTERM"))
	switch {
	case term == "" || term == "dumb":
		return Plain
	case getenv("NO_COLOR") != "" || strings.HasPrefix(term, "vt1"):
		return Mono
	case strings.Contains(colorTerm, "truecolor") || strings.Contains(colorTerm, "24bit") || strings.HasSuffix(term, "-direct"):
		return TrueColor
	case term == "linux" || term == "ansi" || term == "cons25":
		return ANSI16
	}
	return ANSI256
}
