package transcript

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"refbox/engine/transcript/skim"
)

// span is where a record lies.
type span struct {
	off, length int64
	line        int // from 1
	giant       bool
	file        uint32 // in the index; 0: the one that is read
}

// giant is the size from which a line is walked over, not held.
const giant = 4 << 20

// maxRepairs bounds the places in a damaged line where a record is looked for.
const maxRepairs = 64

// lines reads JSON lines, also damaged ones and those that still grow. It calls
// record for each; record must change nothing unless the reader has come to its
// end without an error.
type lines struct {
	x      *index
	st     *store
	name   string
	src    blob
	off    int64 // of the first byte not consumed
	line   int   // lines consumed
	buf    []byte
	r      skim.Reader
	record func(r *skim.Reader, s span) error
	torn   *Finding // an unfinished last line
	torn2  int64    // how far an unfinished giant was searched for its end
	began  os.FileInfo
	// atEnd is called when everything that there is now was read; may be nil.
	atEnd func()
}

func newLines(x *index, st *store, name string) (*lines, error) {
	src, err := st.open(name)
	if err != nil {
		return nil, err
	}
	info, err := src.Stat()
	if err != nil {
		src.Close()
		return nil, err
	}
	x.lined = true
	return &lines{x: x, st: st, name: name, src: src, began: info}, nil
}

func (l *lines) size() int64  { return sizeOf(l.src) }
func (l *lines) close() error { return l.src.Close() }

func (l *lines) blob(uint32) (blob, func(), error) { return l.src, func() {}, nil }

func (l *lines) tail() []Finding {
	l.x.mu.RLock()
	defer l.x.mu.RUnlock()
	if l.torn == nil {
		return nil
	}
	return []Finding{*l.torn}
}

// stale: the file was cut, or another one has its name now.
func (l *lines) stale() bool {
	info, err := l.st.stat(l.name)
	if err != nil {
		return false // moved away: what was opened can still be read
	}
	l.x.mu.RLock()
	defer l.x.mu.RUnlock()
	return info.Size() < l.off || !os.SameFile(info, l.began) && os.SameFile(l.began, l.began)
}

func (l *lines) advance(budget int64) (done bool, err error) {
	size := l.size()
	if l.buf == nil {
		l.buf = make([]byte, min(max(size-l.off, 64<<10), stride))
	}
	records := 0
	for read := int64(0); read < budget && l.off < size; {
		n, err := l.src.ReadAt(l.buf[:min(int64(len(l.buf)), size-l.off)], l.off)
		if n == 0 {
			if err != nil && err != io.EOF {
				return true, err
			}
			break
		}
		chunk := l.buf[:n]
		used := 0
		for {
			i := bytes.IndexByte(chunk[used:], '\n')
			if i < 0 {
				break
			}
			l.consume(chunk[used:used+i], span{off: l.off + int64(used), length: int64(i), line: l.line + 1})
			l.line++
			records++
			used += i + 1
		}
		l.forward(int64(used), records)
		read += int64(used)
		records = 0
		if used > 0 {
			continue
		}
		if l.off+int64(n) >= size {
			return true, l.last(chunk, size)
		}
		if int64(len(l.buf)) < giant {
			l.buf = make([]byte, min(giant, size-l.off))
			continue
		}
		walked, whole := l.walk(size)
		if !whole {
			return true, nil
		}
		read += walked
	}
	if l.off >= size {
		l.setTorn(nil)
		if l.atEnd != nil {
			l.atEnd()
		}
		return true, nil
	}
	return false, nil
}

func (l *lines) forward(n int64, records int) {
	l.x.mu.Lock()
	l.off += n
	l.x.read = l.off
	l.x.records += records
	l.x.mu.Unlock()
}

func (l *lines) setTorn(f *Finding) {
	l.x.mu.Lock()
	l.torn = f
	l.x.mu.Unlock()
}

// last looks at a last line without a line break: whole, it counts; torn, it
// waits to be completed.
func (l *lines) last(b []byte, size int64) error {
	l.r.Reset(b, l.off)
	s := span{off: l.off, length: int64(len(b)), line: l.line + 1}
	if l.r.Kind() == skim.End || l.whole(b) {
		if l.r.Kind() != skim.End {
			l.consume(b, s)
			l.line++
			l.forward(int64(len(b)), 1)
		} else {
			l.forward(int64(len(b)), 0)
		}
		l.setTorn(nil)
	} else {
		l.setTornLine(s)
	}
	if l.atEnd != nil {
		l.atEnd()
	}
	return nil
}

func (l *lines) setTornLine(s span) {
	l.setTorn(&Finding{Trouble: Incomplete, Code: "torn-tail", Line: s.line, Offset: s.off, Length: s.length, Step: -1,
		Text: fmt.Sprintf("the last line stops after %d bytes: unfinished, or still being written", s.length)})
}

func (l *lines) whole(b []byte) bool {
	r := skim.Bytes(b, 0)
	k := r.Kind()
	if k != skim.Object && k != skim.Array { // a number may still get digits
		return false
	}
	r.Skip()
	return r.AtEnd()
}

// walk passes a line that is too long to hold.
func (l *lines) walk(size int64) (n int64, whole bool) {
	at := max(l.off, l.torn2)
	end := int64(-1)
	for at < size {
		n, err := l.src.ReadAt(l.buf[:min(int64(len(l.buf)), size-at)], at)
		if i := bytes.IndexByte(l.buf[:n], '\n'); i >= 0 {
			end = at + int64(i)
			break
		}
		at += int64(n)
		if n == 0 || err != nil {
			break
		}
	}
	s := span{off: l.off, length: end - l.off, line: l.line + 1, giant: true}
	if end < 0 {
		s.length = at - l.off
		r := skim.At(l.src, s.off, at)
		if r.Skip(); !r.AtEnd() {
			l.torn2 = at
			l.setTornLine(s)
			return 0, false
		}
		l.giant(s)
		l.line++
		l.forward(s.length, 1)
		return s.length, true
	}
	l.giant(s)
	l.line++
	l.forward(s.length+1, 1)
	return s.length + 1, true
}

func (l *lines) giant(s span) {
	l.x.note(Bounded, "giant-line", l.x.len(), s.line, s.off, s.length, "a line of %d bytes: its bodies are shown cut", s.length)
	r := skim.At(l.src, s.off, s.off+s.length)
	if err := l.record(r, s); err != nil {
		l.lost(s, err)
	}
}

// consume reads one line.
func (l *lines) consume(b []byte, s span) {
	if len(b) > 0 && bytes.IndexByte(b, 0) >= 0 {
		b, s = l.hole(b, s)
	}
	l.r.Reset(b, s.off)
	if l.r.Kind() == skim.End {
		return
	}
	err := l.record(&l.r, s)
	if err == nil {
		return
	}
	l.repair(b, s, err)
}

// hole reports the NUL bytes that a crash or a full disk left, and returns what
// is behind them.
func (l *lines) hole(b []byte, s span) ([]byte, span) {
	first := bytes.IndexByte(b, 0)
	last := bytes.LastIndexByte(b, 0)
	if first > 0 || last-first > 0 && bytes.Trim(b[first:last], "\x00") != nil && len(bytes.Trim(b[first:last], "\x00")) > 0 {
		return b, s // NULs inside of a record: damage like another
	}
	n := int64(last - first + 1)
	l.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "hole", Line: s.line, Offset: s.off, Length: n, Step: -1,
		Text: fmt.Sprintf("%d NUL bytes where a record was", n)})
	s.off += n
	s.length -= n
	return b[n:], s
}

// repair looks in a damaged line for a whole record at its end: a record that
// was cut is followed by the next one on the same line.
func (l *lines) repair(b []byte, s span, err error) {
	from := 1
	for range maxRepairs {
		i := bytes.Index(b[min(from, len(b)):], []byte(`{"`))
		if i < 0 {
			break
		}
		from += i
		l.r.Reset(b[from:], s.off+int64(from))
		if l.r.Skip(); l.r.AtEnd() {
			l.lost(span{off: s.off, length: int64(from), line: s.line}, err)
			rest := span{off: s.off + int64(from), length: s.length - int64(from), line: s.line}
			l.r.Reset(b[from:], rest.off)
			if l.record(&l.r, rest) == nil {
				l.x.note(Repaired, "joined-line", l.x.len()-1, s.line, rest.off, rest.length,
					"a whole record behind the damaged one on the same line")
			}
			return
		}
		from++
	}
	l.lost(s, err)
}

// lost keeps a damaged record as a step, so that it can be looked at.
func (l *lines) lost(s span, err error) {
	e := step(Unknown, NoActor, s.off, s.length)
	e.flags |= Damaged
	e.pos = int32(s.line - 1)
	i := l.x.add(e)
	l.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "damaged-record", Line: s.line, Offset: s.off, Length: s.length, Step: i,
		Text: "not readable: " + err.Error()})
}

// oddRecord keeps a record whose shape the importer does not know.
func oddRecord(x *index, s span, what string) {
	e := step(Unknown, NoActor, s.off, s.length)
	e.pos = int32(s.line - 1)
	f := Finding{Trouble: Unfamiliar, Code: "unknown-record", Line: s.line, Offset: s.off, Length: s.length, Text: what}
	if s.file > 0 {
		e.file = s.file
		f.File = x.fileName(s.file)
	}
	f.Step = x.add(e)
	x.find(f)
}
