package transcript

import (
	"fmt"
	"math"
	"strings"

	"refbox/engine/transcript/skim"
)

// cast reads terminal recordings of asciinema, versions 2 and 3. Frames are
// gathered into steps: a step ends where a line is entered, where nothing
// happens for a while, or when it has grown large.
type cast struct {
	*lines
	version int64
	header  bool
	clock   float64 // seconds, monotone
	raw     float64 // as recorded
	epoch   int64   // ms, noTime
	group   int     // the step that grows, -1
	size0   int64   // its size
	frames  int
	entered bool // it holds an entered line
	back    int
}

const (
	castIdle   = 2.0 // seconds of silence that end a step
	castBytes  = 64 << 10
	castFrames = 2000
)

func openCast(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	c := &cast{lines: l, epoch: noTime, group: -1}
	l.record = c.read
	x.setClock(Relative)
	x.describe(func(i *Info) { i.Harness = "asciinema" })
	return c, nil
}

func (c *cast) read(r *skim.Reader, s span) error {
	switch r.Kind() {
	case skim.Object:
		return c.head(r, s)
	case skim.Array:
		return c.frame(r, s)
	}
	if b := r.Kind(); b == skim.Bad && s.length > 0 {
		var first [1]byte
		if c.src.ReadAt(first[:], s.off); first[0] == '#' {
			return nil // a comment of version 3
		}
	}
	r.Skip()
	if r.AtEnd() {
		oddRecord(c.x, s, "a line that is no frame")
		return nil
	}
	return r.Err()
}

func (c *cast) head(r *skim.Reader, s span) error {
	facts := [][2]string{}
	version, stamp := int64(0), int64(noTime)
	for key := range r.Keys() {
		switch key {
		case "version":
			version, _ = r.Int()
		case "timestamp":
			if f, ok := r.Float(); ok && math.Abs(f) < 1e11 {
				stamp = int64(f * 1000)
			}
		case "width", "height", "duration", "idle_time_limit", "command", "title", "term":
			if r.Kind() == skim.Object {
				for k := range r.Keys() {
					if k != "theme" {
						facts = append(facts, [2]string{key + "." + k, short(r, 100)})
					}
				}
				continue
			}
			facts = append(facts, [2]string{key, short(r, 200)})
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the header"}
		}
		return r.Err()
	}
	if c.header {
		oddRecord(c.x, s, "a second header")
		return nil
	}
	c.header, c.version, c.epoch = true, version, stamp
	if stamp != noTime {
		c.x.setClock(Absolute)
	}
	c.x.describe(func(i *Info) { i.Version = fmt.Sprint(version) })
	for _, f := range facts {
		c.x.fact(f[0], f[1])
		if f[0] == "title" || f[0] == "command" {
			c.x.describe(func(i *Info) { i.Task = label(f[1]) })
		}
	}
	return nil
}

func (c *cast) frame(r *skim.Reader, s span) error {
	var at float64
	var code, data string
	var size int64
	timed, n := false, 0
	for i := range r.Items() {
		switch n = i + 1; i {
		case 0:
			at, timed = r.Float()
		case 1:
			code = r.Str(16)
		case 2:
			if r.Kind() == skim.String {
				data, size = r.Text(4096)
			} else {
				data = short(r, 100)
			}
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the frame"}
		}
		return r.Err()
	}
	if !timed || math.IsNaN(at) || math.IsInf(at, 0) || n < 3 || code == "" {
		oddRecord(c.x, s, "a list that is no frame")
		return nil
	}
	c.tick(at, s)
	switch code {
	case "o", "i":
		c.gather(code, data, size, s)
	case "m":
		c.alone(Marker, NoOutcome, s)
	case "r":
		c.alone(State, NoOutcome, s)
	case "x":
		o := Succeeded
		if data != "0" {
			o = Failed
		}
		c.alone(Lifecycle, o, s)
	default:
		oddRecord(c.x, s, "a frame of kind "+code)
		c.group = -1
	}
	return nil
}

// tick moves the clock: never back, whatever the record says.
func (c *cast) tick(at float64, s span) {
	if c.version == 3 {
		at = c.raw + at
	}
	at = max(min(at, 1e10), -1e10)
	if at < c.raw || at < 0 {
		if c.back++; c.back <= 20 {
			c.x.note(Disordered, "time-backwards", max(c.x.len()-1, -1), s.line, s.off, s.length, "%.3f s after %.3f s: shown at the instant before", at, c.raw)
		}
	}
	c.raw = at
	c.clock = max(c.clock, at)
}

func (c *cast) now(before float64) int64 {
	ms := int64(before * 1000)
	if c.epoch != noTime {
		ms += c.epoch
	}
	return ms
}

// gather adds a frame to the step that grows, or begins one.
func (c *cast) gather(code, data string, size int64, s span) {
	if c.group >= 0 {
		e, ok := c.x.at(c.group)
		end := e.at + int64(max(e.dur, 0))
		idle := float64(c.now(c.clock)-end) / 1000
		full := c.size0+size > castBytes || c.frames >= castFrames
		if !ok || full || idle > castIdle || c.entered && code == "i" {
			c.group = -1
		}
	}
	if c.group < 0 {
		e := step(Output, Environment, s.off, s.length)
		e.at, e.dur, e.pos = c.now(c.clock), 0, int32(s.line-1)
		if s.giant {
			e.flags |= Giant
		}
		c.group, c.size0, c.frames, c.entered = c.x.add(e), 0, 0, false
	}
	c.size0 += size
	c.frames++
	if code == "i" && strings.ContainsAny(data, "\r\n") {
		c.entered = true
	}
	now := c.now(c.clock)
	c.x.change(c.group, func(e *entry) {
		e.length = s.off + s.length - e.off
		e.dur = span32(now - e.at)
	})
}

func (c *cast) alone(kind Kind, o Outcome, s span) {
	c.group = -1
	e := step(kind, Environment, s.off, s.length)
	e.at, e.pos, e.outcome = c.now(c.clock), int32(s.line-1), o
	c.x.add(e)
}

func (c *cast) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(c.src, e.off, e.length)
	if e.kind == Unknown {
		return rawRecord(c.src, e, limit)
	}
	castBodies(r, b, e.kind)
	return f, nil
}

// castBodies takes the frames of a step: output together, and the keys apart.
func castBodies(r *skim.Reader, b *bodies, kind Kind) {
	var out, keys strings.Builder
	var outSize, keySize int64
	for r.Kind() != skim.End {
		if r.Kind() != skim.Array {
			break
		}
		code := ""
		for i := range r.Items() {
			switch i {
			case 1:
				code = r.Str(16)
			case 2:
				if r.Kind() != skim.String {
					b.say(PartMessage, "", short(r, 200))
					continue
				}
				s, n := r.Text(b.limit)
				switch {
				case kind != Output:
					b.add(PartMessage, castWords[code], s, n)
				case code == "i":
					keySize += n
					keys.WriteString(head(s, max(0, b.limit-keys.Len())))
				case code == "o":
					outSize += n
					out.WriteString(head(s, max(0, b.limit-out.Len())))
				}
			}
		}
	}
	if keySize > 0 {
		b.add(PartInput, "keys", keys.String(), keySize)
	}
	if outSize > 0 {
		b.add(PartOutput, "terminal", out.String(), outSize)
	}
}

var castWords = map[string]string{"m": "marker", "r": "size", "x": "exit status"}

// castV1 reads terminal recordings of version 1: one object, frames in stdout.
type castV1 struct {
	*document
	clock float64
}

func openCastV1(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	c := &castV1{document: d}
	d.parse = c.read
	x.setClock(Relative)
	x.describe(func(i *Info) { i.Harness, i.Version = "asciinema", "1" })
	return c, nil
}

func (c *castV1) read(r *skim.Reader) {
	var e entry
	var size int64
	open := false
	flush := func() {
		if open {
			c.x.add(e)
		}
		open = false
	}
	for key := range r.Keys() {
		switch key {
		case "width", "height", "duration", "command", "title":
			c.x.fact(key, short(r, 200))
		case "stdout":
			for n := range r.Items() {
				off := r.Offset()
				var delay float64
				var bytes int64
				for i := range r.Items() {
					switch i {
					case 0:
						delay, _ = r.Float()
					case 1:
						_, bytes = r.Text(1)
					}
				}
				if r.Err() != nil {
					break
				}
				if !(delay >= 0 && delay < 1e9) {
					c.x.note(Disordered, "time-backwards", -1, 0, off, 0, "a delay of %g s: taken as none", delay)
					delay = 0
				}
				c.clock += delay
				if open && (delay > castIdle || size+bytes > castBytes) {
					flush()
				}
				if !open {
					e = step(Output, Environment, off, 0)
					e.at, e.dur, e.pos, size, open = int64(c.clock*1000), 0, int32(min(n, 1<<30)), 0, true
				}
				size += bytes
				e.length = r.Offset() - e.off
				e.dur = span32(int64(c.clock*1000) - e.at)
				if !c.pause() {
					break
				}
			}
			flush()
		}
	}
}

func (c *castV1) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	raw := make([]byte, e.length+2)
	n, _ := c.src.ReadAt(raw[1:e.length+1], e.off)
	raw[0], raw[n+1] = '[', ']'
	r := skim.Bytes(raw[:n+2], e.off-1)
	var out strings.Builder
	var size int64
	for range r.Items() {
		for i := range r.Items() {
			if i == 1 {
				s, n := r.Text(limit)
				size += n
				out.WriteString(head(s, max(0, limit-out.Len())))
			}
		}
	}
	b.add(PartOutput, "terminal", out.String(), size)
	return f, nil
}
