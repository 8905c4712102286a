package step

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"refbox/engine/analysis"
	"refbox/engine/text"
	"refbox/engine/transcript"
)

// record is an opened transcript and what is read of it beside the screen: the
// rest of it, what its actions were, the pages and titles that are looked at.
type record struct {
	tr     *transcript.Transcript
	grew   grows  // nil for one that does not grow
	ring   func() // wakes the screen
	refs   references
	done   sync.WaitGroup
	within context.Context // of what runs beside
	stop   context.CancelFunc
	wake   chan struct{} // the clerk has something to do

	judging sync.Mutex // guards judge
	judge   *analysis.Judge

	mu     sync.Mutex
	moved  chan struct{} // closed when more was read, or judged
	kinds  []kindByte    // of the steps that have been judged
	judged bool          // none is left for now
	titles map[titleKey]string
	alone  map[int]analysis.Kind // of steps that are looked at before their turn
	pages  map[pageKey]page
	want   job
	fault  string
	closed bool
}

// references are the kinds that somebody else's analysis gave, by the action's
// place in the record.
type references struct {
	kinds map[int]analysis.Kind
	who   string
}

// kindByte is a verdict in a byte.
type kindByte uint8

const changedBit kindByte = 1 << 7

var kindOrder = [...]analysis.Kind{"", analysis.Discovery, analysis.Mutation, analysis.Lifecycle, analysis.Validation}

func packKind(k analysis.Kind, changed bool) kindByte {
	for i, o := range kindOrder {
		if o == k {
			if changed {
				return kindByte(i) | changedBit
			}
			return kindByte(i)
		}
	}
	return 0
}

func (k kindByte) kind() analysis.Kind { return kindOrder[(k&^changedBit)%kindByte(len(kindOrder))] }

type titleKey struct {
	step    int
	outcome transcript.Outcome
}

type pageKey struct {
	step    int
	outcome transcript.Outcome
	flags   transcript.Flags
	alone   bool
	subs    string
	look
}

// job is what the screen shows now.
type job struct {
	page   pageKey
	paged  bool // a page is wanted
	titles []transcript.Head
	ready  chan struct{}
}

const (
	keptPages  = 24
	keptTitles = 8192
	// judgedAtOnce is how many actions are judged between two looks at whether
	// somebody waits for the judge: some milliseconds' work.
	judgedAtOnce = 16
	// settle is how long a growing file may go on before it is read again.
	settle = 50 * time.Millisecond
)

// newRecord starts the work beside the screen; close ends it.
func newRecord(ctx context.Context, tr *transcript.Transcript, refs references, grew grows, ring func()) *record {
	ctx, stop := context.WithCancel(ctx)
	r := &record{
		tr: tr, refs: refs, grew: grew, ring: ring, within: ctx, stop: stop, wake: make(chan struct{}, 1), moved: make(chan struct{}),
		judge: analysis.NewJudge(tr), titles: map[titleKey]string{}, alone: map[int]analysis.Kind{}, pages: map[pageKey]page{},
	}
	r.run(func() { r.read(ctx) })
	r.run(func() { r.clerk(ctx) })
	return r
}

func (r *record) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.done.Wait()
	return r.tr.Close()
}

// enter holds the record open until done.Done; false when it is closed.
func (r *record) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.done.Add(1)
	}
	return !r.closed
}

// run starts a goroutine that close waits for. A panic ends it alone, and is told.
func (r *record) run(f func()) {
	r.done.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				r.mu.Lock()
				r.fault = text.Line(fmt.Sprintf("internal fault beside the screen: %v", v))
				r.mu.Unlock()
				r.ring()
			}
		}()
		f()
	})
}

// read reads the record to its end, judges its actions, and goes on when it
// grows.
func (r *record) read(ctx context.Context) {
	var grew <-chan struct{}
	if r.grew != nil {
		grew = r.grew(ctx, r.run)
	}
	for fresh := true; ; {
		for ctx.Err() == nil {
			changed, err := r.tr.Refresh()
			fresh = fresh || changed
			if err != nil || !changed && r.tr.Complete() {
				break
			}
			r.judgeSome()
			r.news()
		}
		for fresh && ctx.Err() == nil && !r.judgeSome() {
			r.news()
		}
		if fresh {
			r.news()
			r.ring()
		}
		fresh = false
		select {
		case <-ctx.Done():
			return
		case _, open := <-grew:
			if !open {
				grew = nil
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle): // one reading for a burst of writes
		}
	}
}

// news tells those who wait for more.
func (r *record) news() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moved
}

// judgeSome judges a few actions more, and says whether none is left.
func (r *record) judgeSome() (done bool) {
	r.judging.Lock()
	before := r.judge.Len()
	done = r.judge.Advance(judgedAtOnce)
	n := r.judge.Len()
	// A verdict may be found anew when a result came; such steps are among the last.
	from := max(0, min(before, n)-4096)
	if n < before {
		from = 0
	}
	fresh := make([]kindByte, 0, n-from)
	for i := from; i < n; i++ {
		fresh = append(fresh, packKind(r.judge.Kind(i)))
	}
	r.judging.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if from > len(r.kinds) {
		from = len(r.kinds)
	}
	r.kinds = append(r.kinds[:from], fresh...)
	r.judged = done && r.tr.Complete()
	return done
}

// verdict is a step's kind as far as it is known: by its turn, or alone.
func (r *record) verdict(i int) (kind analysis.Kind, changed, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < len(r.kinds) {
		return r.kinds[i].kind(), r.kinds[i]&changedBit != 0, false
	}
	return r.alone[i], false, true
}

// passed is the number of steps that have been judged in their turn.
func (r *record) passed() (n int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kinds), r.judged
}

// title is a step's title once it has been read.
func (r *record) title(h transcript.Head) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.titles[titleKey{h.Index, h.Outcome}]
	return t, ok
}

// page is a page once it has been made, coloured or not.
func (r *record) page(k pageKey) (p page, ok, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.color = true
	if p, ok = r.pages[k]; ok {
		return p, true, true
	}
	k.color = false
	p, ok = r.pages[k]
	return p, ok, false
}

// request asks for what is missing; ready is closed when it is there, or was
// given up for a later request.
func (r *record) request(j job) (ready <-chan struct{}) {
	j.ready = make(chan struct{})
	r.mu.Lock()
	if r.want.ready != nil {
		close(r.want.ready)
	}
	r.want = j
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return j.ready
}

// clerk makes the pages and titles that are wanted.
func (r *record) clerk(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		j := r.want
		r.want = job{}
		r.mu.Unlock()
		if j.ready == nil {
			continue
		}
		r.serve(ctx, j)
		close(j.ready)
		r.ring()
	}
}

// overtaken says that the screen has moved on.
func (r *record) overtaken(ctx context.Context) bool {
	return ctx.Err() != nil || len(r.wake) > 0
}

func (r *record) serve(ctx context.Context, j job) {
	var f *transcript.Full
	var known judged
	if _, have, final := r.page(j.page); j.paged && !final {
		limit := transcript.BodyLimit
		if j.page.open {
			limit = openLimit
		}
		var err error
		if f, err = r.tr.FullLimit(j.page.step, limit); err != nil {
			r.keep(j.page, page{err: text.Line(err.Error())}, true)
		} else {
			known = r.know(f, j.page)
			if !have {
				l := j.page.look
				l.color = false
				r.keep(j.page, lay(f, known, l), false)
			}
		}
	}
	for _, h := range j.titles {
		if r.overtaken(ctx) {
			return
		}
		r.entitle(h)
	}
	if f != nil && !r.overtaken(ctx) {
		l := j.page.look
		l.color = true
		r.keep(j.page, lay(f, known, l), true)
	}
}

// openLimit is what is read of each body of a step that is opened; more is for
// the editor.
const openLimit = 1 << 20

func (r *record) keep(k pageKey, p page, final bool) {
	k.color = final
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pages) >= keptPages {
		clear(r.pages)
	}
	if k.open { // large: one at a time
		maps.DeleteFunc(r.pages, func(o pageKey, _ page) bool { return o.open && o.step != k.step })
	}
	r.pages[k] = p
}

// know is what the judge says of a step, by its turn or alone.
func (r *record) know(f *transcript.Full, k pageKey) judged {
	j := judged{alone: k.alone, hasSubagent: k.subs, reference: analysis.Kind(f.ReferenceKind), refersTo: "the reference"}
	if j.reference == "" && f.Pos >= 0 && f.Kind == transcript.ToolCall {
		j.reference, j.refersTo = r.refs.kinds[f.Pos], r.refs.who
	}
	if analysis.Acts(f.Head) {
		r.judging.Lock()
		j.Step, j.ok = r.judge.Step(k.step)
		r.judging.Unlock()
	}
	return j
}

// entitle reads a step's title, and what it is where its turn is yet to come.
func (r *record) entitle(h transcript.Head) {
	title := r.tr.Step(h.Index).Title
	var kind analysis.Kind
	ahead := false
	if n, _ := r.passed(); h.Index >= n && analysis.Acts(h) {
		r.judging.Lock()
		if s, ok := r.judge.Step(h.Index); ok {
			kind, ahead = s.Kind, true
		}
		r.judging.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.titles) >= keptTitles {
		clear(r.titles)
		clear(r.alone)
	}
	r.titles[titleKey{h.Index, h.Outcome}] = title
	if ahead {
		r.alone[h.Index] = kind
	}
}

// grows starts watching a record, and tells of its growth; what it starts runs
// with run, and ends with ctx.
type grows func(ctx context.Context, run func(func())) <-chan struct{}

// lookEvery is how often a record is looked at where the system tells nothing of
// its growth: there may be too many watchers already.
const lookEvery = 500 * time.Millisecond

// onDisk tells when something in the folder of a file is written, or in a folder.
func onDisk(path string) grows {
	return func(ctx context.Context, run func(func())) <-chan struct{} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		dir := path
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			dir = filepath.Dir(path)
		}
		out := make(chan struct{}, 1)
		tell := func() {
			select {
			case out <- struct{}{}:
			default:
			}
		}
		w, err := fsnotify.NewWatcher()
		if err == nil {
			if err = w.Add(dir); err != nil {
				w.Close()
			}
		}
		run(func() {
			if err != nil {
				often(ctx, tell)
				return
			}
			defer w.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-w.Errors: // an overflow: there was something
				case e := <-w.Events:
					if e.Op == fsnotify.Chmod {
						continue
					}
				}
				tell()
			}
		})
		return out
	}
}

func often(ctx context.Context, tell func()) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			tell()
		}
	}
}
