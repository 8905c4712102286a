package sim

import (
	"bytes"
	"sync"
)

// tty is a terminal's line discipline: it echoes, edits a line, and hands whole
// lines on.
type tty struct {
	mu   sync.Mutex
	out  func([]byte) // to the terminal
	echo bool
	line []byte
	esc  int // bytes of an escape sequence seen
	cr   bool
	held []byte // typed while nobody read

	// Set by who reads the terminal; called without mu held.
	onLine      func(line []byte) // with its newline, or without after Ctrl-D
	onEOF       func()
	onInterrupt func()
}

const maxLine = 4096

// input takes what was typed.
func (t *tty) input(p []byte) {
	for _, c := range p {
		if call := t.key(c); call != nil {
			call()
		}
	}
}

// key takes one byte and returns what it sets off.
func (t *tty) key(c byte) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.onLine == nil && c != 0x03 {
		if len(t.held) < maxLine {
			t.held = append(t.held, c)
		}
		return nil
	}
	wasCR := t.cr
	t.cr = false
	switch {
	case t.esc > 0: // a cursor key, which this line editor does not have
		if t.esc++; t.esc > 2 && c >= 0x40 || t.esc == 2 && c != '[' && c != 'O' || t.esc > 16 {
			t.esc = 0
		}
		return nil
	case c == 0x1b:
		t.esc = 1
		return nil
	case c == '\n' && wasCR:
		return nil
	case c == '\r' || c == '\n':
		t.cr = c == '\r'
		t.out([]byte("\r\n"))
		line := append(bytes.Clone(t.line), '\n')
		t.line = t.line[:0]
		if t.onLine != nil {
			f := t.onLine
			return func() { f(line) }
		}
	case c == 0x7f || c == 0x08:
		if n := len(t.line); n > 0 {
			for n--; n > 0 && t.line[n]&0xc0 == 0x80; n-- {
			}
			t.line = t.line[:n]
			if t.echo {
				t.out([]byte("\b \b"))
			}
		}
	case c == 0x15: // Ctrl-U
		if t.echo {
			t.out(bytes.Repeat([]byte("\b \b"), len(t.line)))
		}
		t.line = t.line[:0]
	case c == 0x03: // Ctrl-C
		t.line = t.line[:0]
		t.out([]byte("^C\r\n"))
		return t.onInterrupt
	case c == 0x04: // Ctrl-D
		if len(t.line) == 0 {
			return t.onEOF
		}
		line := bytes.Clone(t.line)
		t.line = t.line[:0]
		if t.onLine != nil {
			f := t.onLine
			return func() { f(line) }
		}
	case c >= 0x20 || c == '\t':
		if len(t.line) < maxLine {
			t.line = append(t.line, c)
			if t.echo {
				t.out([]byte{c})
			}
		}
	}
	return nil
}

// setEcho says whether what is typed is shown.
func (t *tty) setEcho(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.echo = on
}

// read says who reads from now on, and hands on what was typed before; nil
// onLine is nobody.
func (t *tty) read(onLine func([]byte), onEOF, onInterrupt func()) {
	t.mu.Lock()
	t.onLine, t.onEOF, t.onInterrupt = onLine, onEOF, onInterrupt
	var held []byte
	if onLine != nil {
		held, t.held = t.held, nil
	}
	t.mu.Unlock()
	t.input(held)
}

// terminalWriter ends lines as a terminal wants it.
// Writers are compared, so it goes by pointer.
type terminalWriter struct{ out func([]byte) error }

func (w *terminalWriter) Write(p []byte) (int, error) {
	return len(p), w.out(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
}
