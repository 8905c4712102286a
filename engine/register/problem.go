package register

import (
	"fmt"
	"strings"
)

// maxProblems is how many problems of one file are told.
const maxProblems = 50

// Problem is one thing that is wrong with a register's file.
type Problem struct {
	File    string `json:"file"`
	Path    string `json:"path"`   // in the document, stores[0].copies[1].lagSec; "" is all of it
	Line    int    `json:"line"`   // from 1; 0 where it is not known
	Column  int    `json:"column"` // from 1
	Message string `json:"message"`
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// Invalid is a register that cannot be derived: it has at least one problem.
type Invalid struct {
	Problems []Problem
	More     int // problems beyond those told
}

func (e *Invalid) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// problems collects, up to maxProblems.
type problems struct {
	list []Problem
	more int
}

func (p *problems) full() bool { return len(p.list) >= maxProblems && p.more >= maxProblems }

func (p *problems) add(x Problem) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, x)
}

// err is the problems as an error, or nil when there are none.
func (p *problems) err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	for i := range p.list {
		if p.list[i].File == "" {
			p.list[i].File = file
		}
	}
	return &Invalid{p.list, p.more}
}
