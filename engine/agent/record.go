package agent

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"time"

	"refbox/engine/internal/echo"
	"refbox/engine/text"
)

// Bounds of a session's cast; what comes after is counted, not kept.
const (
	castExecBytes  = 1 << 20  // each way of an exec session
	castShellBytes = 16 << 20 // each way of an interactive one
	announcedLimit = 1000     // announced actions per session
)

// record is what is kept of one session while it runs.
type record struct {
	mu      sync.Mutex
	g       *Gateway
	act     *action
	session uint64
	cast    Cast // nil: none
	pty     bool
	watch   *sftpWatch // of an SFTP session

	out     excerpt
	left    [2]int     // bytes that the cast still takes: output, input
	dropped [2]uint64  // bytes that it did not
	carry   [3][]byte  // a torn rune at a stream's end: output, input, stderr
	crlf    byte       // last byte of a session without a terminal
	keys    echo.Input // of a session with a terminal

	eye     text.Detector // on the output
	hostile string        // what it found first

	shell     *announcer // of an interactive session
	inner     *action    // the announced command that runs
	announced int
}

// output takes a chunk of what the guest printed; stream is 0 or 2 (stderr).
func (r *record) output(stream int, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.add(p)
	if r.hostile == "" && r.watch == nil {
		r.hostile = r.eye.Scan(p)
	}
	if r.shell != nil {
		r.shell.scan(p, r.announce)
	}
	r.event(CastOutput, stream, p)
	if r.pty {
		r.typed(r.keys.Printed(p))
	}
}

// input takes a chunk of what the client sent, before the guest gets it. What is
// typed into a terminal is kept by package echo's rule: only lines that the
// terminal showed. Without a terminal standard input is data, and kept as it is.
func (r *record) input(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch != nil {
		r.watch.write(p)
		return
	}
	if r.pty {
		r.typed(r.keys.Typed(p))
		return
	}
	r.event(CastInput, 1, p)
}

// typed keeps what was typed into the terminal, at the moment when that is decided.
func (r *record) typed(lines []echo.Line) {
	for _, l := range lines {
		if l.Shown {
			r.event(CastInput, 1, []byte(l.Text+"\r"))
		} else if r.spend(64) {
			r.mark("a typed line is left out: the terminal did not show it")
		}
	}
}

// event hands a chunk to the cast, within its bounds and at rune edges.
func (r *record) event(code byte, stream int, p []byte) {
	if r.cast == nil {
		return
	}
	way := 0
	if code == CastInput {
		way = 1
	}
	if r.left[way] < len(p) {
		r.dropped[way] += uint64(len(p))
		r.left[way] = 0
		return
	}
	r.left[way] -= len(p)
	data := wholeRunes(&r.carry[stream], p)
	if !r.pty && code == CastOutput {
		data = r.withCR(data)
	}
	if len(data) > 0 {
		r.cast.Event(code, data)
	}
}

// withCR lets a terminal show lines that were never meant for one.
func (r *record) withCR(p []byte) []byte {
	out := make([]byte, 0, len(p)+bytes.Count(p, []byte{'\n'}))
	for _, c := range p {
		if c == '\n' && r.crlf != '\r' {
			out = append(out, '\r')
		}
		out = append(out, c)
		r.crlf = c
	}
	return out
}

// wholeRunes is carry and p up to the last rune's end; what is torn off there is the
// next carry.
func wholeRunes(carry *[]byte, p []byte) []byte {
	data := append(*carry, p...)
	n := len(data) - text.Torn(data)
	*carry = append([]byte(nil), data[n:]...)
	return data[:n]
}

func (r *record) mark(text string) {
	if r.cast != nil {
		r.cast.Event(CastMarker, []byte(text))
	}
}

// spend takes what a small event costs from the room for input.
func (r *record) spend(cost int) bool {
	if r.left[1] < cost {
		return false
	}
	r.left[1] -= cost
	return true
}

// resize notes a new size of the terminal.
func (r *record) resize(cols, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cast == nil || !r.spend(16) {
		return
	}
	r.cast.Event(CastResize, fmt.Appendf(nil, "%dx%d", cols, rows))
}

// announce takes a mark of the guest's shell. r.mu is held.
func (r *record) announce(a announcement) {
	r.endInner(a.exit, "")
	if !a.start {
		return
	}
	r.announced++
	switch {
	case r.announced > announcedLimit:
		return
	case r.announced == announcedLimit:
		r.act.note("further announced commands are not listed")
	}
	r.inner = r.g.begin(ChannelAnnounced, r.act.machine, a.line, r.session)
}

func (r *record) endInner(exit *int, detail string) {
	if r.inner == nil {
		return
	}
	r.inner.finish(exit, "", 0, detail)
	r.inner = nil
}

// close ends the record and tells the action's end.
func (r *record) close(exit *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endInner(nil, "the session ended")
	r.typed(r.keys.End())
	if r.cast != nil {
		for stream, code := range []byte{CastOutput, CastInput, CastOutput} {
			if len(r.carry[stream]) > 0 {
				r.cast.Event(code, r.carry[stream])
			}
		}
		for way, name := range []string{"output", "input"} {
			if r.dropped[way] > 0 {
				r.mark(fmt.Sprintf("%d bytes of %s are left out", r.dropped[way], name))
			}
		}
		if exit != nil {
			r.cast.Event(CastExit, strconv.AppendInt(nil, int64(*exit), 10))
		}
		if err := r.cast.Close(); err != nil {
			r.act.note("the session's recording is incomplete: " + err.Error())
		}
		r.cast = nil
	}
	output := r.out.String()
	if r.watch != nil {
		output, r.hostile = r.watch.String(), r.watch.hostile
	}
	r.act.hostile = r.hostile
	r.act.finish(exit, output, r.out.total, "")
}

// action is one numbered action of the seat.
type action struct {
	g       *Gateway
	number  uint64
	machine string
	start   time.Time
	ended   sync.Once
	hostile string // in its output; set before its finish
	mu      sync.Mutex
	detail  string
}

// note adds to the detail that the finish carries; the first words count most.
func (a *action) note(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.detail == "" {
		a.detail = why
	} else if len(a.detail) < 1024 {
		a.detail += "; " + why
	}
}

// end tells, once, that the action is over.
func (a *action) end() {
	a.ended.Do(func() { a.g.cfg.Observer.ActionEnded(a.number, a.machine) })
}

func (a *action) finish(exit *int, output string, bytes uint64, detail string) {
	if detail != "" {
		a.note(detail)
	}
	a.mu.Lock()
	detail = a.detail
	a.mu.Unlock()
	took := time.Since(a.start)
	a.end()
	a.g.cfg.Observer.ActionFinished(Finish{
		Number: a.number, Machine: a.machine, Exit: exit, Took: took,
		Output: output, Bytes: bytes, Detail: line(detail), Hostile: a.hostile,
	})
}
