package recording

import (
	"fmt"
	"os"
	"sync"
	"time"

	"refbox/engine/event"
	"refbox/engine/text"
)

const (
	castDelay   = 40 * time.Millisecond // how long output may wait in memory
	castFrameMS = 15                    // output this close together is one frame
	castBuffer  = 32 << 10
	maxCast     = 64 << 20 // size of one record
)

// CastWriter records a terminal as asciicast v2 on the heat's clock. It is
// bounded: beyond 64 MiB the record says so once and the rest is dropped. Write
// never fails, and waits for the disk only when much comes at once.
type CastWriter struct {
	mu      sync.Mutex
	file    *os.File
	clock   func() uint64
	wake    chan<- struct{}
	frame   []byte // output that is not yet a line
	frameMS uint64
	lastMS  uint64
	buf     []byte // lines that are not yet in the file
	size    int
	limit   int
	full    bool
	err     error
	closed  bool
}

func newCastWriter(f *os.File, clock func() uint64, wake chan<- struct{}, title string, width, height int, started time.Time) *CastWriter {
	c := &CastWriter{file: f, clock: clock, wake: wake, limit: maxCast}
	c.buf = fmt.Appendf(c.buf, `{"version":2,"width":%d,"height":%d,"timestamp":%d,"title":`, width, height, started.Unix())
	c.buf = append(event.AppendString(c.buf, title), "}\n"...)
	c.Flush()
	return c
}

// Write records output.
func (c *CastWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.full || len(p) == 0 {
		return len(p), nil
	}
	now := max(c.clock(), c.lastMS)
	if len(c.frame) > 0 && (now-c.frameMS > castFrameMS || len(c.frame) > castBuffer/4) {
		c.endFrame(false)
		c.frameMS = now // of what it could not end: half a character
	}
	first := len(c.frame) == 0 && len(c.buf) == 0
	if len(c.frame) == 0 {
		c.frameMS = now
	}
	c.frame = append(c.frame, p...)
	c.lastMS = now
	if len(c.buf)+len(c.frame) > castBuffer {
		c.endFrame(false)
		c.writeOut()
	} else if first {
		c.rouse()
	}
	return len(p), nil
}

// Resize records a new size of the terminal.
func (c *CastWriter) Resize(width, height int) {
	c.entry('r', fmt.Appendf(nil, "%dx%d", width, height))
}

// Input records what was typed, or came on standard input. P is not cut inside
// a character.
func (c *CastWriter) Input(p []byte) { c.entry('i', p) }

// Marker records a remark of ours.
func (c *CastWriter) Marker(text string) { c.entry('m', []byte(text)) }

// entry records something beside the output.
func (c *CastWriter) entry(kind byte, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.full || len(data) == 0 {
		return
	}
	idle := len(c.frame) == 0 && len(c.buf) == 0
	c.endFrame(false)
	c.lastMS = max(c.clock(), c.lastMS)
	c.line(c.lastMS, kind, data)
	if len(c.buf) > castBuffer {
		c.writeOut()
	} else if idle {
		c.rouse()
	}
}

// rouse has what was recorded put into the file soon.
func (c *CastWriter) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush puts what was recorded into the file.
func (c *CastWriter) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.endFrame(false)
		c.writeOut()
	}
}

// Close flushes and closes the record. Idempotent. The error is the first that
// the record met.
func (c *CastWriter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.err
	}
	c.endFrame(true)
	c.writeOut()
	c.closed = true
	if err := c.file.Close(); c.err == nil {
		c.err = err
	}
	return c.err
}

// ended tells whether the record was closed.
func (c *CastWriter) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// endFrame makes a line of the pending output. A character that is cut in two
// waits for its rest, unless this is the end.
func (c *CastWriter) endFrame(last bool) {
	if len(c.frame) == 0 {
		return
	}
	n := len(c.frame)
	if !last {
		n -= text.Torn(c.frame)
	}
	if n == 0 {
		return
	}
	c.line(c.frameMS, 'o', c.frame[:n])
	c.frame = append(c.frame[:0], c.frame[n:]...)
	c.frameMS = c.lastMS
}

func (c *CastWriter) line(ms uint64, kind byte, data []byte) {
	if c.full {
		return
	}
	if c.size+len(c.buf)+len(data) > c.limit {
		c.full = true
		kind, data = 'o', []byte("\r\n[refbox: the record of this terminal ends here, at 64 MiB]\r\n")
	}
	c.buf = fmt.Appendf(c.buf, `[%d.%03d, "%c", `, ms/1000, ms%1000, kind)
	c.buf = append(event.AppendString(c.buf, string(data)), "]\n"...)
}

func (c *CastWriter) writeOut() {
	if len(c.buf) == 0 || c.err != nil {
		c.buf = c.buf[:0]
		return
	}
	n, err := c.file.Write(c.buf)
	if err != nil {
		// A cut line would make the next one unreadable.
		c.err = err
		if n > 0 {
			_ = c.file.Truncate(int64(c.size))
		}
		return
	}
	c.size += n
	c.buf = c.buf[:0]
}
