package register

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/view"
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

// follower reads the register's files again when they change, and derives what is
// assumed. Whoever started it closes it.
type follower struct {
	*view.Follower[*reading]
	src Source

	mu   sync.Mutex
	want register.WhatIf

	base    *register.Explainer // that was read last
	trouble string              // since
}

func newFollower(src Source) *follower {
	f := &follower{src: src}
	f.Follower = view.NewFollower(view.Followed[*reading]{Paths: func() []string { return src.Files }, Read: f.read})
	return f
}

// assume asks for a reading with w; it comes by the feed.
func (f *follower) assume(w register.WhatIf) {
	f.mu.Lock()
	f.want = w
	f.mu.Unlock()
	f.Again()
}

func (f *follower) assumed() register.WhatIf {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want
}

// read reads the files again if they changed, and supposes what is assumed; what cannot
// be read leaves the last good reading, with the reason.
func (f *follower) read(changed bool) (*reading, error) {
	if changed {
		e, err := f.src.Load()
		if err != nil {
			f.trouble = "the last good one is shown: " + whatIsWrong(err)
		} else {
			f.base, f.trouble = e, ""
		}
	}
	return f.suppose(f.base, f.trouble), nil
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
