package keymap

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
)

// shown are the keys whose name is not that which Bubble Tea gives them with "-" for
// "+".
var shown = map[string]string{
	" ": "space", "left": "←", "right": "→", "up": "↑", "down": "↓", "pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End",
	"f1": "F1", "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5", "f6": "F6", "f7": "F7", "f8": "F8", "f9": "F9", "f10": "F10", "f11": "F11", "f12": "F12",
}

// Name is a key as a person reads it.
func Name(key string) string {
	if key == "+" || key == "-" || key == "alt+-" {
		return strings.Replace(key, "alt+", "alt-", 1)
	}
	parts := strings.Split(key, "+")
	last := parts[len(parts)-1]
	if name, ok := shown[last]; ok {
		parts[len(parts)-1] = name
	}
	return strings.Join(parts, "-")
}

// known are the keys that have a name of more than one letter.
var known = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{"ctrl+5": true} // what a keyboard says that sends ctrl-] for it
	for k := tea.KeyType(-100); k < 200; k++ {
		if name := k.String(); name != "" && k != tea.KeyRunes {
			out[name] = true
		}
	}
	return out
})

// Parse is a key by the name that Bubble Tea or Name gives it, as Bubble Tea names it.
func Parse(name string) (key string, ok bool) {
	if utf8.RuneCountInString(name) == 1 {
		r, _ := utf8.DecodeRuneInString(name)
		return parseShown(name), unicode.IsPrint(r)
	}
	key = name
	for _, modifier := range []string{"alt", "ctrl", "shift"} {
		key = strings.ReplaceAll(key, modifier+"-", modifier+"+")
	}
	at := strings.LastIndexByte(key, '+') + 1
	if at == len(key) && at > 1 && key[at-2] == '+' { // alt++
		at--
	}
	head, last := key[:at], parseShown(key[at:])
	key = head + last
	switch {
	case strings.HasPrefix(key, "alt+") && utf8.RuneCountInString(key) == len("alt+")+1:
		return key, true
	case known()[key], known()[strings.TrimPrefix(key, "alt+")]:
		return key, true
	}
	return "", false
}

func parseShown(last string) string {
	for key, name := range shown {
		if strings.EqualFold(name, last) {
			return key
		}
	}
	return last
}
