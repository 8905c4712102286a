package sim

import (
	"io"
	"strings"
)

// Stdin is the process's standard input; empty when it was given none.
func (p *Process) Stdin() io.Reader {
	if p.stdin == nil {
		return strings.NewReader("")
	}
	return p.stdin
}
