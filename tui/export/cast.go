// Package export makes a film of a recording: an asciicast of its replay, drawn
// by the code that draws the live screen.
//
// Guarantees: the same recording and size give the same bytes; times never go
// back; a frame is written only when something on the screen changed, and at most
// ten a second; what is written holds printable text, moves of the cursor and the
// canvas's own colours, whatever the recording holds.
package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"refbox/engine/event"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
	"refbox/tui/canvas"
)

// Sizes of a screen that a film can have, in cells.
const (
	MinWidth, MaxWidth   = 40, 400
	MinHeight, MaxHeight = 12, 150
)

const (
	frameMS    = 100 // between two frames
	clockMS    = 1000
	maxQuietMS = 60_000  // how long the clock alone is filmed; then comes what happens next
	maxFilmed  = 64      // seats whose consoles are looked at for changes
	maxMS      = 1 << 42 // 139 years: a clock beyond it is broken, and is not filmed
)

// Format is how a cast is written.
type Format struct {
	Width, Height int // of the screen, in cells
	V3            bool
}

// Filmed is what a cast holds.
type Filmed struct {
	Frames, Markers int
	MS              uint64 // its length
}

// Cast writes the replay of a recording that has ended and is read to its end: its
// first screen from the start to the end on the heat's clock, with a marker for
// each milestone. It owns rec from then on.
func Cast(ctx context.Context, w io.Writer, rec *recording.Recording, f Format) (Filmed, error) {
	still := tui.NewStill(ctx, rec, canvas.Output{Theme: canvas.Dark(), Profile: canvas.ANSI256}, f.Width, f.Height, "a replay of "+rec.Name())
	defer still.Close()
	c := &camera{rec: rec, still: still, out: bufio.NewWriterSize(w, 64<<10), v3: f.V3, rows: make([]string, f.Height)}
	defer c.openConsoles()()
	c.header(f)
	if err := c.film(ctx); err != nil {
		return c.done, err
	}
	return c.done, c.out.Flush()
}

type camera struct {
	rec      *recording.Recording
	still    *tui.Still
	consoles []console
	events   int // that have been filmed

	out    *bufio.Writer
	v3     bool
	rows   []string // on the screen
	lastMS uint64   // of the last line written
	line   []byte
	done   Filmed
}

// console is a machine's record and how many of its frames have been filmed.
type console struct {
	cast *recording.Cast
	next int
}

// openConsoles opens what was recorded of the consoles, and returns what closes it.
func (c *camera) openConsoles() func() {
	seats := c.rec.World(c.rec.Len()).Seats()
	for _, s := range seats[:min(len(seats), maxFilmed)] {
		for _, m := range c.rec.Machines(s.ID) {
			if cast, err := c.rec.Console(s.ID, m); err == nil {
				c.consoles = append(c.consoles, console{cast: cast})
			}
		}
	}
	return func() {
		for _, k := range c.consoles {
			k.cast.Close()
		}
	}
}

// film draws at the start, whenever something happens, and each second of a short
// time in which nothing does.
func (c *camera) film(ctx context.Context) error {
	at, changed := uint64(0), uint64(0)
	if err := c.draw(at); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		next, more := c.next()
		if !more {
			break
		}
		to := max(next, at+frameMS)
		if tick := at - at%clockMS + clockMS; tick >= at+frameMS && tick < to && tick-changed <= maxQuietMS {
			to = tick
		} else {
			changed = to
		}
		at = to
		if err := c.draw(at); err != nil {
			return err
		}
	}
	c.done.MS = at
	return c.put(at, "o", "\x1b[?25h")
}

// next is when the next thing happens that has not been filmed.
func (c *camera) next() (ms uint64, more bool) {
	if c.events < c.rec.Len() {
		ms, more = c.rec.MS(c.events), true
	}
	for _, k := range c.consoles {
		if k.next >= k.cast.Len() {
			continue
		}
		frames, err := k.cast.Frames(k.next, k.next+1)
		if err == nil && len(frames) == 1 && (!more || frames[0].MS < ms) {
			ms, more = frames[0].MS, true
		}
	}
	// Consoles that go on after the heat do so in nobody's sight.
	if head := c.rec.Head(); more && ms > min(head, maxMS) {
		return 0, false
	}
	return ms, more
}

// draw films the screen at an instant, and marks the milestones up to it.
func (c *camera) draw(at uint64) error {
	rows := strings.Split(c.still.At(at), "\n")
	var b strings.Builder
	if c.done.Frames == 0 {
		b.WriteString("\x1b[?25l\x1b[2J")
	}
	for y := range c.rows {
		row := ""
		if y < len(rows) {
			row = rows[y]
		}
		if row != c.rows[y] {
			// Erased first: at the right edge erasing would take the last cell.
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", y+1, row)
			c.rows[y] = row
		}
	}
	if b.Len() > 0 {
		c.done.Frames++
		if err := c.put(at, "o", b.String()); err != nil {
			return err
		}
	}
	for i := range c.consoles {
		c.consoles[i].next = c.consoles[i].cast.IndexAt(at)
	}
	until := c.rec.IndexAt(at)
	for i := c.rec.Step(c.events-1, 1, recording.ClassMilestone); i >= 0 && i < until; i = c.rec.Step(i, 1, recording.ClassMilestone) {
		e, err := c.rec.Event(i)
		if err != nil {
			return err
		}
		c.done.Markers++
		if err := c.put(at, "m", label(e)); err != nil {
			return err
		}
	}
	c.events = max(c.events, until)
	return nil
}

// label names a milestone of the film.
func label(e event.Event) string {
	s := e.Kind()
	switch b := e.Body.(type) {
	case event.MilestonePassed:
		s = fmt.Sprintf("%s passed %s, %s", b.Territory, b.Milestone, text.Count(b.Points, "point"))
	case event.MilestoneRevoked:
		s = fmt.Sprintf("%s lost %s", b.Territory, b.Milestone)
	case event.DurableDeploymentCompleted:
		s = b.Territory + " durable"
	case event.MatchFinished:
		s = "the heat ended, nobody won"
		if b.Winner != nil {
			s = *b.Winner + " won"
		} else if len(b.DeadHeat) > 0 {
			s = "dead heat of " + strings.Join(b.DeadHeat, " and ")
		}
	}
	return text.Truncate(text.Line(playback.Format(e.ElapsedMS)+" "+s), 120, text.Ellipsis)
}

func (c *camera) header(f Format) {
	b := c.line[:0]
	if f.V3 {
		b = fmt.Appendf(b, `{"version":3,"term":{"cols":%d,"rows":%d,"type":"xterm-256color"}`, f.Width, f.Height)
	} else {
		b = fmt.Appendf(b, `{"version":2,"width":%d,"height":%d`, f.Width, f.Height)
	}
	if at, exact := c.rec.Started(); exact && at.Unix() > 0 {
		b = fmt.Appendf(b, `,"timestamp":%d`, at.Unix())
	}
	b = append(b, `,"title":`...)
	b = event.AppendString(b, text.Truncate("refbox: "+c.rec.Name(), 200, text.Ellipsis))
	if !f.V3 {
		b = append(b, `,"env":{"TERM":"xterm-256color"}`...)
	}
	c.line = append(b, "}\n"...)
	c.out.Write(c.line) //nolint:errcheck // a buffer keeps its error until Flush
}

// put writes one line. Version 2 counts from the start, version 3 from the line
// before.
func (c *camera) put(ms uint64, code, data string) error {
	at := ms
	if c.v3 {
		at -= c.lastMS
	}
	c.lastMS = ms
	c.line = fmt.Appendf(c.line[:0], `[%d.%03d,"%s",`, at/1000, at%1000, code)
	c.line = append(event.AppendString(c.line, data), "]\n"...)
	_, err := c.out.Write(c.line)
	return err
}
