// Package transcript opens what an agent's harness recorded, whatever harness
// it was, and gives it as one list of steps.
//
// It hides the formats (each found by what is in the file, never by its name),
// where records lie, how calls find their results, which of several usage
// figures count, and what is damaged.
//
// Guarantees: nothing is written into what is opened. Reading is lazy: a step
// is a few dozen bytes in memory, its record stays on disk and is found again
// by its offset. What has been read can be stepped while the rest is read. Bad
// input never fails a transcript of which something could be read: what is
// wrong is in Integrity, with its place. Strings come sanitised (engine/text),
// raw bytes on request; encrypted content is named and measured, never handed
// out; private reasoning is marked. Unknown is nil or negative, never zero.
// Methods may be called from any goroutine.
package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"refbox/engine/text"
)

// ErrFormat is what Open's error Is when nothing that is known was found.
var ErrFormat = errors.New("not a transcript of a known format")

// BodyLimit is the bytes of each body that Full decodes.
const BodyLimit = 256 << 10

// firstFrame is the time that Open spends on reading ahead.
const firstFrame = 60 * time.Millisecond

// stride is what is read between two looks at the clock and the context.
const stride = 1 << 20

// importer reads one format. advance and restart are called by one goroutine at
// a time; full by several, also meanwhile.
type importer interface {
	// advance reads on for about budget bytes. done: there is nothing more now.
	advance(budget int64) (done bool, err error)
	// full decodes a step's bodies, limit bytes of each.
	full(e entry, limit int) (Full, error)
	// blob opens a file of the index for reading; release it when done.
	blob(file uint32) (b blob, release func(), err error)
	// size is all that there is to read, in bytes.
	size() int64
	close() error
}

// refresher is an importer whose files can grow.
type refresher interface {
	// stale says that what was read is no longer what the file holds: it must be
	// read anew.
	stale() bool
}

// Transcript is an opened record.
type Transcript struct {
	path string
	name string // in st
	st   *store
	own  bool // st is closed with it

	load sync.Mutex // who reads on

	mu   sync.RWMutex // what follows
	x    *index
	imp  importer
	done bool
	bad  error // that stopped the reading
	memo map[int]string
}

// Open opens a record: a file or a folder. Of a large one the beginning is read;
// Load or Refresh read on. The error Is ErrFormat when it is of no known format.
func Open(path string) (*Transcript, error) {
	st, name, err := openStore(path)
	if err != nil {
		return nil, fmt.Errorf("opening the transcript: %w", err)
	}
	t, err := open(st, name, path)
	if err != nil {
		st.close()
		return nil, err
	}
	t.own = true
	return t, nil
}

// OpenFS opens a record in a tree, such as an archive's.
func OpenFS(tree fs.FS, name string) (*Transcript, error) {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, fmt.Errorf("opening the transcript: %w", err)
	}
	dir, in := name, "."
	if !info.IsDir() {
		dir, in = path.Split(name)
		dir = path.Clean(dir)
	}
	if dir != "." {
		if tree, err = fs.Sub(tree, dir); err != nil {
			return nil, fmt.Errorf("opening the transcript: %w", err)
		}
	}
	return open(&store{fsys: tree}, in, name)
}

// OpenBlob opens a record from an open file, which the transcript closes with
// itself; files beside it are not found.
func OpenBlob(name string, b interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}) (*Transcript, error) {
	t, err := open(&store{fsys: single{name: "record", blob: b}, also: b}, "record", name)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	t.own = true
	return t, nil
}

func open(st *store, name, shown string) (*Transcript, error) {
	t := &Transcript{path: text.Line(shown), name: name, st: st}
	if err := t.start(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.path, err)
	}
	return t, nil
}

// start finds the format and reads the beginning.
func (t *Transcript) start() error {
	x, imp, err := detect(t.st, t.name)
	if err != nil {
		return err
	}
	t.x, t.imp = x, imp
	t.load.Lock()
	defer t.load.Unlock()
	for begin := time.Now(); ; {
		done := t.advance()
		if done || time.Since(begin) > firstFrame {
			return nil
		}
	}
}

// advance reads on a stride. Who calls it holds load.
func (t *Transcript) advance() (done bool) {
	done, err := t.imp.advance(stride)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.bad = err
		t.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "reading-stopped", Step: -1, Offset: t.x.readSoFar(), Text: err.Error()})
		done = true
	}
	t.done = done
	return done
}

// Load reads the record to its end, or until ctx ends.
func (t *Transcript) Load(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.load.Lock()
		done := t.done || t.advance()
		t.load.Unlock()
		if done {
			return nil
		}
	}
}

// Refresh looks whether the record has grown or was replaced, and reads what is
// new, a few megabytes at most: Load reads the rest. A record that was cut or
// replaced starts anew and says so in Integrity; a whole one is not given up for
// a torn one, which is a copy in the making.
func (t *Transcript) Refresh() (changed bool, err error) {
	t.load.Lock()
	defer t.load.Unlock()
	t.mu.RLock()
	imp, x, bad := t.imp, t.x, t.bad
	t.mu.RUnlock()
	if r, ok := imp.(refresher); ok && r.stale() {
		return t.replace()
	}
	if bad != nil {
		return false, nil
	}
	before, read := x.len(), x.readSoFar()
	for range 8 {
		if t.advance() {
			break
		}
	}
	return x.len() != before || x.readSoFar() != read, nil
}

// replace reads a record anew that is not the one that was read.
func (t *Transcript) replace() (bool, error) {
	x, imp, err := detect(t.st, t.name)
	if err != nil {
		return false, fmt.Errorf("%s: reading anew: %w", t.path, err)
	}
	var done bool
	for begin := time.Now(); !done && time.Since(begin) < 4*firstFrame; {
		if done, err = imp.advance(stride); err != nil {
			done = true
		}
	}
	if x.torn() && !t.x.torn() && x.len() <= t.x.len() {
		imp.close()
		return false, nil
	}
	x.find(Finding{Trouble: Disordered, Code: "restarted", Step: -1, Text: "the record was cut or replaced while it was open: read anew"})
	t.mu.Lock()
	old := t.imp
	t.x, t.imp, t.done, t.bad, t.memo = x, imp, done, err, nil
	t.mu.Unlock()
	return true, old.close()
}

// Close releases the files.
func (t *Transcript) Close() error {
	t.load.Lock()
	defer t.load.Unlock()
	err := t.imp.close()
	if t.own {
		err = errors.Join(err, t.st.close())
	}
	return err
}

func (t *Transcript) now() (*index, importer) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.x, t.imp
}

// Len is the number of steps read so far.
func (t *Transcript) Len() int { x, _ := t.now(); return x.len() }

// Complete says that Len counts all steps that there are now.
func (t *Transcript) Complete() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.done
}

// Path is the path that was opened, sanitised.
func (t *Transcript) Path() string { return t.path }

// Head returns step i without its bodies, and reads nothing. The zero Head for
// an i that is not there.
func (t *Transcript) Head(i int) Head {
	x, _ := t.now()
	e, ok := x.at(i)
	if !ok {
		return Head{Index: i}
	}
	return x.head(i, e)
}

// Heads calls yield for the steps from i on, until it returns false.
func (t *Transcript) Heads(i int, yield func(h Head) bool) {
	x, _ := t.now()
	x.each(i, func(i int, e entry) bool { return yield(x.head(i, e)) })
}

// Next is the number of the first step after i (before i when dir is negative)
// that a head is wanted of; -1 when there is none.
func (t *Transcript) Next(i, dir int, want func(h Head) bool) int {
	x, _ := t.now()
	if dir >= 0 {
		found := -1
		x.each(i+1, func(i int, e entry) bool {
			if want(x.head(i, e)) {
				found = i
			}
			return found < 0
		})
		return found
	}
	for i--; i >= 0; i-- {
		if e, ok := x.at(i); ok && want(x.head(i, e)) {
			return i
		}
	}
	return -1
}

// Info is what the transcript says of itself, as far as it was read.
func (t *Transcript) Info() Info {
	x, _ := t.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	i := x.info
	i.Extra = append([]Fact(nil), i.Extra...)
	return i
}

// Clock says what the times are, and the time of AtMS 0: zero unless times of
// day are recorded.
func (t *Transcript) Clock() (Clock, time.Time) {
	x, _ := t.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.zero == noTime || x.clock != Absolute && x.clock != Naive {
		return x.clock, time.Time{}
	}
	return x.clock, time.UnixMilli(x.zero).UTC()
}

// Agents are the main agent, at 0, and every sub-agent or sample found so far.
func (t *Transcript) Agents() []AgentInfo {
	x, _ := t.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	return append([]AgentInfo(nil), x.agents...)
}

// OpenAgent opens the record of a sub-agent that has one of its own.
func (t *Transcript) OpenAgent(i int) (*Transcript, error) {
	agents := t.Agents()
	if i < 0 || i >= len(agents) || agents[i].File == "" {
		return nil, fmt.Errorf("%s: agent %d has no record of its own", t.path, i)
	}
	return open(&store{fsys: t.st.fsys}, agents[i].File, t.path+" ▸ "+agents[i].File)
}
