// Package oracle compares tui/term with charmbracelet/x/vt: same screens, and how much
// faster. It is a module of its own because x/vt in refbox's would break building for
// other systems (reference/terminal.md, finding 6).
//
// Run with: go test -bench . ./...
package oracle
