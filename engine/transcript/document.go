package transcript

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"refbox/engine/transcript/skim"
)

// document reads a file that is one JSON value, a stretch at a time: parse walks
// over it and calls pause after each thing that it has added to the index.
type document struct {
	x     *index
	st    *store
	name  string
	src   blob
	began fs.FileInfo
	parse func(r *skim.Reader)
	r     *skim.Reader
	next  func() (int64, bool)
	stop  func()
	yield func(int64) bool
	from  int64 // where the present stretch began
	quit  bool
	ended bool
}

func newDocument(x *index, st *store, name string) (*document, error) {
	src, err := st.open(name)
	if err != nil {
		return nil, err
	}
	info, err := src.Stat()
	if err != nil {
		src.Close()
		return nil, err
	}
	return &document{x: x, st: st, name: name, src: src, began: info}, nil
}

func (d *document) size() int64 { return d.began.Size() }

func (d *document) close() error {
	if d.stop != nil {
		d.stop()
	}
	return d.src.Close()
}

func (d *document) blob(uint32) (blob, func(), error) { return d.src, func() {}, nil }

// stale: a document does not grow, it is written anew.
func (d *document) stale() bool {
	info, err := d.st.stat(d.name)
	return err == nil && (info.Size() != d.began.Size() || !info.ModTime().Equal(d.began.ModTime()))
}

func (d *document) advance(budget int64) (done bool, err error) {
	if d.ended {
		return true, nil
	}
	if d.next == nil {
		d.r = skim.At(d.src, 0, d.size())
		d.next, d.stop = iter.Pull(iter.Seq[int64](func(yield func(int64) bool) {
			d.yield = yield
			d.parse(d.r)
		}))
	}
	for read := int64(0); read < budget; {
		n, more := d.next()
		if !more {
			d.end()
			return true, nil
		}
		read += n
		d.x.progress(d.r.Offset(), 0)
	}
	return false, nil
}

// pause lets the reader's caller have its turn, now and then. When it returns
// false the parser must end.
func (d *document) pause() bool {
	if d.quit {
		return false
	}
	n := d.r.Offset() - d.from
	if n < stride/4 {
		return d.r.Err() == nil
	}
	d.from = d.r.Offset()
	if !d.yield(max(n, 1)) {
		d.quit = true
		return false
	}
	return d.r.Err() == nil
}

func (d *document) end() {
	d.ended = true
	d.x.progress(d.r.Offset(), 1)
	if err := d.r.Err(); err != nil {
		d.broken(err)
	} else if !d.r.AtEnd() {
		d.x.note(Skipped, "trailing", -1, 0, d.r.Offset(), d.size()-d.r.Offset(), "%d bytes behind the document are left out", d.size()-d.r.Offset())
	}
	if d.r.Lone > 0 {
		d.x.note(Repaired, "lone-surrogate", -1, 0, 0, 0, "%d halves of character pairs, shown as replacement characters", d.r.Lone)
	}
}

func (d *document) broken(err error) {
	f := Finding{Severity: Break, Trouble: Skipped, Code: "damaged", Step: -1, Offset: d.r.Offset(), Length: max(0, d.size()-d.r.Offset())}
	f.Text = fmt.Sprintf("not readable from here: %v; what came before is shown", err)
	if skim.Truncated(err) {
		f.Trouble, f.Code = Incomplete, "truncated"
		f.Text = fmt.Sprintf("truncated at byte %d: what is whole before is shown", d.r.Offset())
	}
	d.x.find(f)
}

// locate finds bytes behind an offset; -1 when they are not there.
func locate(src io.ReaderAt, from, size int64, what string) int64 {
	buf := make([]byte, 256<<10)
	for at := from; at < size; {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if i := bytes.Index(buf[:n], []byte(what)); i >= 0 {
			return at + int64(i)
		}
		if n < len(what) || err != nil {
			return -1
		}
		at += int64(n - len(what) + 1)
	}
	return -1
}

// valueSpan passes a value and returns where it lies.
func valueSpan(r *skim.Reader) (off, length int64) {
	r.Kind()
	off = r.Offset()
	r.Skip()
	return off, r.Offset() - off
}

// short reads a value as a short text: a string, a number, a word.
func short(r *skim.Reader, limit int) string {
	switch r.Kind() {
	case skim.String:
		return r.Str(limit)
	case skim.Null:
		r.Skip()
		return ""
	}
	raw, n := r.Raw(limit)
	s := strings.Join(strings.Fields(string(raw)), " ")
	if int64(len(raw)) < n {
		s += "…"
	}
	return s
}

// fact adds a value to what the transcript says of itself.
func (x *index) fact(name, value string) {
	if value == "" {
		return
	}
	x.describe(func(i *Info) {
		if len(i.Extra) < 200 {
			i.Extra = append(i.Extra, Fact{label(name), label(value)})
		}
	})
}

// facts adds an object's values, by their names, dotted.
func (x *index) facts(r *skim.Reader, prefix string, depth int) {
	for key := range r.Keys() {
		name := prefix + key
		if r.Kind() == skim.Object && depth > 0 {
			x.facts(r, name+".", depth-1)
			continue
		}
		x.fact(name, short(r, 200))
	}
}

// composite is a record of several files, read one after the other. A file's
// number in the index is its part's place here.
type composite struct {
	x     *index
	parts []importer
	at    int
}

// part adds a file.
func (c *composite) part(name string, open func() (importer, error)) error {
	if len(c.parts) > 0 {
		c.x.file(name)
	}
	imp, err := open()
	if err != nil {
		return err
	}
	c.parts = append(c.parts, imp)
	return nil
}

func (c *composite) advance(budget int64) (bool, error) {
	for ; c.at < len(c.parts); c.at++ {
		c.x.mu.Lock()
		c.x.current = uint32(c.at)
		c.x.mu.Unlock()
		done, err := c.parts[c.at].advance(budget)
		if !done || err != nil {
			return false, err
		}
		if c.at == len(c.parts)-1 {
			break // the last one may grow
		}
	}
	return true, nil
}

func (c *composite) of(file uint32) importer { return c.parts[min(int(file), len(c.parts)-1)] }

func (c *composite) full(e entry, limit int) (Full, error) { return c.of(e.file).full(e, limit) }

func (c *composite) blob(file uint32) (blob, func(), error) { return c.of(file).blob(file) }

func (c *composite) size() (n int64) {
	for _, p := range c.parts {
		n += p.size()
	}
	return n
}

func (c *composite) stale() bool {
	for _, p := range c.parts {
		if r, ok := p.(refresher); ok && r.stale() {
			return true
		}
	}
	return false
}

func (c *composite) tail() []Finding {
	if t, ok := c.parts[len(c.parts)-1].(interface{ tail() []Finding }); ok {
		return t.tail()
	}
	return nil
}

func (c *composite) close() error {
	var err error
	for _, p := range c.parts {
		if e := p.close(); e != nil {
			err = e
		}
	}
	return err
}
