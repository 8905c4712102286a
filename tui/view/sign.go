package view

import "refbox/tui/canvas"

// Sign is how a state is shown on every screen: a shape and a word, which also
// tell without colours, and a style. The zero Sign shows nothing.
type Sign struct {
	Shape rune
	Word  string
	Style canvas.Style
}

// NewSign is a sign in a colour of the theme.
func NewSign(shape rune, word string, color canvas.Color) Sign {
	return Sign{Shape: shape, Word: word, Style: canvas.Fg(color)}
}
