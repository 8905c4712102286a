package register

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"refbox/engine/register"
	"refbox/engine/text"
)

const (
	slowPoll = 2 * time.Second
	// An editor writes a file in several steps; what comes within this time is
	// read once.
	settling = 40 * time.Millisecond
)

// reading is the register as it was last understood. It never changes; a newer
// one takes its place.
type reading struct {
	base *register.Explainer // as the file is
	now  *register.Explainer // with what is assumed; base when nothing is
	// changes are what the assumption changes; nil when nothing is assumed.
	changes *register.Changes
	assumed register.WhatIf
	// trouble is why the file could not be read since; "" when what is shown is
	// what the file says.
	trouble string
	// gone are assumptions that the register has no more.
	gone []string

	rows []finding
	gaps map[string]int   // of each store, by its id
	of   map[string][]int // its rows
}

// follower owns the register's files: it reads them again when they change,
// and derives what is assumed. Whoever started it closes it.
type follower struct {
	src  Source
	feed chan struct{}
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}

	mu      sync.Mutex
	want    register.WhatIf
	newest  *reading // nil when taken
	started bool

	seen string // the files' signs at the last reading; of the goroutine
}

func newFollower(src Source) *follower {
	return &follower{src: src, feed: make(chan struct{}, 1), done: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// start begins to follow from what was read first.
func (f *follower) start(first *reading) {
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.started = stop, true
	go func() {
		defer close(f.done)
		defer close(f.feed)
		last := first
		defer func() {
			if r := recover(); r != nil {
				broken := *last
				broken.trouble = text.Line(fmt.Sprintf("internal fault, the file is not followed any more: %v", r))
				f.publish(&broken)
			}
		}()
		f.run(ctx, &last)
	}()
}

func (f *follower) close() {
	if f.started {
		f.stop()
		<-f.done
		f.started = false
	}
}

// take returns a reading that is newer than the last one taken, or nil.
func (f *follower) take() *reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.newest
	f.newest = nil
	return r
}

// assume asks for a reading with w; it comes by the feed.
func (f *follower) assume(w register.WhatIf) {
	f.mu.Lock()
	f.want = w
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *follower) assumed() register.WhatIf {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want
}

func (f *follower) publish(r *reading) {
	f.mu.Lock()
	f.newest = r
	f.mu.Unlock()
	select {
	case f.feed <- struct{}{}:
	default:
	}
}

func (f *follower) run(ctx context.Context, last **reading) {
	var notices chan fsnotify.Event
	var failures chan error
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		notices, failures = w.Events, w.Errors
	}
	watch := func() {
		for _, file := range f.src.Files {
			if w != nil {
				_ = w.Add(filepath.Dir(file)) // the poll is behind it
			}
		}
	}
	watch()
	poll := time.NewTicker(slowPoll)
	defer poll.Stop()
	settled := time.NewTimer(0) // what changed before the watch began
	defer settled.Stop()
	noticed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			*last = f.suppose((*last).base, (*last).trouble)
			f.publish(*last)
			continue
		case e := <-notices:
			if f.about(e.Name) {
				noticed = true
				settled.Reset(settling)
			}
			continue
		case <-failures: // too many notices: the poll makes up for it
			continue
		case <-settled.C:
		case <-poll.C:
			watch() // the folder may have been made anew
		}
		if signs := f.signs(); noticed || signs != f.seen {
			f.seen, noticed = signs, false
			*last = f.read(*last)
			f.publish(*last)
		}
	}
}

// signs tell whether a file may have changed, without reading it.
func (f *follower) signs() string {
	var b strings.Builder
	for _, file := range f.src.Files {
		if st, err := os.Stat(file); err == nil {
			fmt.Fprintf(&b, "%d %d %v\n", st.Size(), st.ModTime().UnixNano(), st.Mode())
		} else {
			b.WriteString("none\n")
		}
	}
	return b.String()
}

func (f *follower) about(name string) bool {
	return slices.ContainsFunc(f.src.Files, func(file string) bool { return filepath.Clean(file) == filepath.Clean(name) })
}

// read reads the files again; what cannot be read leaves the last good reading,
// with the reason.
func (f *follower) read(last *reading) *reading {
	e, err := f.src.Load()
	if err != nil {
		next := *last
		next.trouble = "the last good one is shown: " + whatIsWrong(err)
		return &next
	}
	return f.suppose(e, "")
}

// suppose derives what is assumed now of a register.
func (f *follower) suppose(base *register.Explainer, trouble string) *reading {
	asked := f.assumed()
	w, gone := keep(base, asked)
	if len(gone) > 0 {
		f.mu.Lock()
		if reflect.DeepEqual(f.want, asked) {
			f.want = w
		}
		f.mu.Unlock()
	}
	r := &reading{base: base, now: base, trouble: trouble, gone: gone}
	if size(w) > 0 {
		// What the register has was kept, so nothing is refused.
		if now, err := base.Assuming(w); err == nil {
			r.now, r.assumed = now, w
			r.changes = register.Diff(base.Document(), now.Document())
		}
	}
	r.index()
	return r
}

func size(w register.WhatIf) int { return len(w.Running) + len(w.Lost) + len(w.Cut) }

// keep splits an assumption into what the register has and what is gone.
func keep(e *register.Explainer, w register.WhatIf) (kept register.WhatIf, gone []string) {
	if size(w) == 0 {
		return w, nil
	}
	doc := e.Document()
	have := map[string]bool{}
	for i := range doc.Stores {
		for j := range doc.Stores[i].Copies {
			have["c"+doc.Stores[i].Copies[j].ID] = true
		}
	}
	for _, n := range e.Estate().Nodes {
		have["n"+n.ID] = true
	}
	for i := range doc.Paths {
		have["p"+doc.Paths[i].ID] = true
	}
	split := func(kind string, ids []string) (out []string) {
		for _, id := range ids {
			if have[kind+id] {
				out = append(out, id)
			} else {
				gone = append(gone, id)
			}
		}
		return out
	}
	kept = register.WhatIf{Running: split("c", w.Running), Lost: split("n", w.Lost), Cut: split("p", w.Cut)}
	return kept, gone
}

// whatIsWrong is an error on one line: the first problem, with its place.
func whatIsWrong(err error) string {
	var bad *register.Invalid
	var gone *os.PathError
	switch {
	case errors.As(err, &bad) && len(bad.Problems) > 0:
		first, more := bad.Problems[0], ""
		first.File = filepath.Base(first.File)
		if n := len(bad.Problems) - 1 + bad.More; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return text.Line(first.String()) + more
	case errors.As(err, &gone):
		return text.Line(filepath.Base(gone.Path) + ": " + gone.Err.Error())
	}
	return text.Line(err.Error())
}
