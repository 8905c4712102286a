// Package quiet keeps the terminal from being asked for its background colour.
//
// Bubble Tea asks every terminal, before main begins, and waits five seconds for
// one that does not answer: a serial line, a pipe into a recorder. The answer is
// not used here (the theme comes from the environment). Lip Gloss does not ask
// once it has been told, so it is told first.
//
// The package is a module of its own for its name alone: packages that don't
// depend on each other begin in the order of their paths, and "early" comes before
// "github.com".
package quiet

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
