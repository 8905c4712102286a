package guest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// idleBudget is how many bytes a second a guest may send unasked before it is
// read more slowly, so that a flood costs its own seat and not the host.
const idleBudget = 4 << 20

var errLongLine = errors.New("line too long")

// lineReader cuts a stream into lines of a bounded length.
type lineReader struct {
	r    *bufio.Reader
	max  int
	buf  []byte
	skip bool // inside a line that was too long
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line without its newline, and how many bytes were read
// for it. A line over the limit is dropped as it arrives and reported once, as
// soon as it is over. The line is valid until the next call.
func (l *lineReader) next() ([]byte, int, error) {
	if cap(l.buf) > 256<<10 {
		l.buf = nil // one long reply should not stay for good
	}
	l.buf = l.buf[:0]
	read := 0
	for {
		part, err := l.r.ReadSlice('\n')
		read += len(part)
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, read, err
		}
		if l.skip {
			l.skip = !whole
			return nil, read, nil
		}
		if len(l.buf)+len(part) > l.max {
			l.skip = !whole
			return nil, read, errLongLine
		}
		l.buf = append(l.buf, part...)
		if whole {
			return bytes.TrimRight(l.buf, "\r\n"), read, nil
		}
	}
}

// pacer slows the reading of what nobody asked for.
type pacer struct {
	since time.Time
	spent int
}

// spend accounts for n unasked bytes, waits when they are over the budget, and
// tells whether to go on.
func (p *pacer) spend(n int, done <-chan struct{}) bool {
	now := time.Now()
	if now.Sub(p.since) >= time.Second {
		p.since, p.spent = now, 0
	}
	p.spent += n
	if p.spent <= idleBudget {
		return true
	}
	t := time.NewTimer(time.Second - now.Sub(p.since))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
