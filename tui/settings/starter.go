package settings

import (
	"fmt"
	"strings"

	"refbox/tui/keymap"
)

const starter = `# refbox's configuration. Everything here is optional; a line that begins with #
# shows the default. The environment wins: REFBOX_THEME, REFBOX_ASCII, REFBOX_MOUSE,
# REFBOX_SCREEN_READER; and NO_COLOR is obeyed. refbox config shows what is in force.

# Colours: auto (as the terminal says, else dark), dark, light, high-contrast, or one of
# your own: the name of NAME.toml in the folder "themes" beside this file, or a path. A
# theme of your own gives colours to roles; those left out are dark's:
#   [colors]
#   ok  = "#00ff87"
#   bad = "#ff5f87 9"      # and 9 of the sixteen on a terminal that has no more
# theme = "auto"

# Plain letters instead of signs and lines, for fonts and terminals that lack them. On
# by itself when the locale is not UTF-8.
# ascii = false

# The mouse: wheel and click. While it is on, the terminal selects text only with shift.
# mouse = false

# Lines of what changes, instead of a screen: for screen readers and braille displays.
# screen_reader = false

# Keys: an action, and the key or keys that do it in place of the default ones. Keys are
# called w, W, space, enter, esc, tab, shift-tab, ctrl-x, alt-x, F5, PgDn, up, left. A key
# does one thing: one that another action has is refused.
[keys]
`

// Starter is a configuration file that sets nothing: every setting, commented.
func Starter() string {
	var b strings.Builder
	b.WriteString(starter)
	for _, x := range keymap.Default().Bindings() {
		keys := make([]string, len(x.Keys))
		for i, k := range x.Keys {
			keys[i] = fmt.Sprintf("%q", keymap.Name(k))
		}
		fmt.Fprintf(&b, "# %s = [%s]  # %s\n", x.Action, strings.Join(keys, ", "), x.Long)
	}
	return b.String()
}
