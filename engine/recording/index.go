package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

const (
	firstStep = 4 << 20 // bytes of the log that Open reads: some 20,000 events
	nextStep  = 1 << 20 // bytes that are read while others wait
	tailSize  = 256 << 10
	readAhead = 64 << 10
)

// Class sorts events for stepping.
type Class uint8

// Classes of events.
const (
	ClassNoise     Class = iota // evaluations that started or failed, health, canary, usage
	ClassOther                  // everything else worth a row
	ClassMilestone              // passed, revoked, durable, the match's end
	ClassAction                 // an agent's action started
)

func classOf(b event.Body) Class {
	switch b := b.(type) {
	case event.MilestoneEvaluationStarted, event.MilestoneFailed, event.HealthObserved, event.CanarySample, event.UsageCharged,
		event.AgentActionFinished:
		return ClassNoise
	case event.ResourcesChanged:
		if b.Reason == "healthy tick" {
			return ClassNoise
		}
	case event.MilestonePassed, event.MilestoneRevoked, event.DurableDeploymentCompleted, event.MatchFinished:
		return ClassMilestone
	case event.AgentActionStarted:
		return ClassAction
	}
	return ClassOther
}

// index is what is known of the log's lines.
type index struct {
	closed  bool
	size    int64  // consumed: the end of the last whole line
	total   int64  // of the file when it was last looked at
	tail    uint64 // clock of the file's last whole line
	tailEnd int64  // where that line was looked for
	stuck   int64  // size of the file when nothing more could be taken from it
	last    []byte // the end of what was consumed, to see that it is still there
	lines   int    // consumed, broken ones too
	openEnd bool   // the last line was taken without its newline

	offsets []int64
	clocks  []uint64 // raised where the log's clock goes back, so that they can be searched
	classes []Class
	broken  []brokenAt

	decoder  event.Decoder
	findings tally
	sequence uint64 // that the next event should have
	clock    uint64
	previous uint64 // clock of the last event, which may be less
	head     *world.World
	shown    *world.World // a copy of head for callers, nil when head changed
}

// brokenAt says that lines that are no events come before an event.
type brokenAt struct{ event, lines int }

func (r *Recording) reset() {
	r.index = index{head: world.New(), findings: newTally()}
	r.seeker = seeker{}
	r.seeker.start()
	r.testimony = nil
}

// Len is the number of events read so far.
func (r *Recording) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.offsets)
}

// Complete says that Len counts all whole lines of the log.
func (r *Recording) Complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.complete()
}

func (r *Recording) complete() bool { return r.size >= r.tailEnd }

// Progress is how much of the log has been read, in [0,1].
func (r *Recording) Progress() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.complete() {
		return 1
	}
	return float64(r.size) / float64(r.tailEnd)
}

// Head is the clock of the log's last event, also while Len does not count it yet.
func (r *Recording) Head() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.clocks); n > 0 && r.complete() {
		return r.clocks[n-1]
	}
	return max(r.tail, r.clock)
}

// MS is the clock of event i, never less than that of event i-1.
func (r *Recording) MS(i int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < 0 || i >= len(r.clocks) {
		return 0
	}
	return r.clocks[i]
}

// IndexAt is the number of events at or before a clock: World(IndexAt(ms)) is the
// world at it.
func (r *Recording) IndexAt(ms uint64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sort.Search(len(r.clocks), func(i int) bool { return r.clocks[i] > ms })
}

// Step returns the nearest index after i (dir > 0) or before it (dir < 0) whose
// event is of one of the classes, of any but noise when none is given; -1 when
// there is none.
func (r *Recording) Step(i, dir int, classes ...Class) int {
	want := [ClassAction + 1]bool{ClassOther: true, ClassMilestone: true, ClassAction: true}
	if len(classes) > 0 {
		want = [ClassAction + 1]bool{}
		for _, c := range classes {
			want[c] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if dir > 0 {
		for i = max(i, -1) + 1; i < len(r.classes); i++ {
			if want[r.classes[i]] {
				return i
			}
		}
		return -1
	}
	for i = min(i, len(r.classes)) - 1; i >= 0; i-- {
		if want[r.classes[i]] {
			return i
		}
	}
	return -1
}

// Line is where event i is in the log: its line, from 1, and its byte offset.
func (r *Recording) Line(i int) (line int, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < 0 || i >= len(r.offsets) {
		return 0, 0
	}
	line = i + 1
	for _, b := range r.broken[:sort.Search(len(r.broken), func(k int) bool { return r.broken[k].event > i })] {
		line += b.lines
	}
	return line, r.offsets[i]
}

// Refresh reads what the files have more: at most a step's worth, so that nobody
// waits for long. Changed says that something new was read; call it until it is
// false to have all.
func (r *Recording) Refresh() (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, err = r.refresh(nextStep)
	if changed {
		r.readings++
	}
	return changed, err
}

// Load reads the log to its end.
func (r *Recording) Load(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed, err := r.Refresh()
		if err != nil || !changed {
			return err
		}
	}
}

func (r *Recording) refresh(step int64) (changed bool, err error) {
	if r.closed {
		return false, fs.ErrClosed
	}
	if changed, err = r.reopen(); err != nil || r.file == nil {
		return changed, err
	}
	info, err := r.file.Stat()
	if err != nil {
		return changed, err
	}
	wasLive := r.live
	r.live = held(r.file)
	changed = changed || wasLive != r.live
	if r.total = info.Size(); r.total < r.size || !r.unchanged() {
		r.restart()
		r.readFiles()
		changed = true
	}
	if r.total == r.size {
		if wasLive != r.live {
			r.readFiles()
		}
		r.tailEnd = r.size
		return changed, nil
	}
	if r.total == r.stuck && wasLive == r.live {
		return changed, nil // the same unfinished line as before
	}
	r.findTail()
	n, err := r.consume(step)
	if n > 0 {
		r.shown = nil
		changed = true
	} else {
		r.stuck = r.total
	}
	if r.complete() {
		r.readFiles()
	}
	return changed, err
}

// reopen opens the log when it was not there, or when another file has its place.
func (r *Recording) reopen() (changed bool, err error) {
	if r.src.moved() {
		src, err := openDir(r.src.dir)
		if err != nil {
			return false, nil // it comes and goes; the next look will tell
		}
		r.src.close()
		r.src = src
		if r.file != nil {
			r.file.Close()
			r.file = nil
			r.restart()
			changed = true
		}
		r.manifest, r.match, r.matchRaw = nil, nil, nil
	}
	info, err := r.src.stat(r.log)
	if errors.Is(err, fs.ErrNotExist) {
		if r.file == nil && r.manifest == nil && r.match == nil {
			r.readFiles()
		}
		return changed, nil
	}
	if err != nil {
		return changed, r.logError(err)
	}
	if r.file != nil {
		open, err := r.file.Stat()
		if err == nil && r.src.same(open, info) {
			return changed, nil
		}
		r.file.Close()
		r.file = nil
		r.restart()
		changed = true
	}
	if r.file, err = r.src.open(r.log); err != nil {
		r.file = nil
		return changed, r.logError(err)
	}
	r.readFiles()
	return true, nil
}

// logError says which log is not read, and what helps.
func (r *Recording) logError(err error) error {
	remedy := "put the log itself in its place"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "ask its owner for the right to read it"
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("read the log %s: %w; %s", text.Line(filepath.Join(r.src.dir, r.log)), err, remedy)
}

func (r *Recording) restart() {
	r.restarts++
	total := r.total
	r.reset()
	r.total = total
}

// unchanged says that the end of what was consumed is still what it was: a log
// that was cut and written anew may have grown longer than it was.
func (r *Recording) unchanged() bool {
	if len(r.last) == 0 {
		return true
	}
	now := make([]byte, len(r.last))
	if _, err := r.file.ReadAt(now, r.size-int64(len(now))); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return bytes.Equal(now, r.last)
}

// findTail looks for the last whole line, so that the end of the clock is known
// before everything is read.
func (r *Recording) findTail() {
	if r.total-r.size < nextStep {
		r.tailEnd = r.total
		return
	}
	buf := make([]byte, tailSize)
	n, _ := r.file.ReadAt(buf, r.total-tailSize)
	buf = buf[:n]
	r.tailEnd = r.total
	end := bytes.LastIndexByte(buf, '\n')
	for end > 0 {
		start := bytes.LastIndexByte(buf[:end], '\n')
		if e, err := event.Decode(buf[start+1 : end]); err == nil && start >= 0 {
			r.tail = e.ElapsedMS
			return
		}
		end = start
	}
}

// consume reads whole lines, about step bytes of them, and returns how many.
func (r *Recording) consume(step int64) (int, error) {
	start, before := r.size, r.lines
	br := bufio.NewReaderSize(io.NewSectionReader(r.file, r.size, r.total-r.size), readAhead)
	for r.size-start < step {
		line, n, err := event.ReadLine(br)
		if errors.Is(err, event.ErrTooLong) {
			if r.size+int64(n) < r.total || r.ended(n) {
				r.broke(n, err)
				continue
			}
			r.tailEnd = r.size
			break
		}
		if errors.Is(err, io.EOF) {
			// Without a newline it counts when it is whole and nobody writes.
			if n > 0 && !r.live {
				if e, err := r.decoder.Decode(line); err == nil {
					r.take(e, n)
					r.openEnd = true
				}
			}
			r.tailEnd = r.size
			break
		}
		if err != nil {
			return r.lines - before, fmt.Errorf("read %s at byte %d: %w", r.path, r.size, err)
		}
		if e, err := r.decoder.Decode(line); err == nil {
			r.checkSchema(line)
			r.take(e, n)
		} else if at := r.salvage(line); at > 0 {
			r.cut(at, err)
			if e, err = r.decoder.Decode(line[at:]); err == nil {
				r.take(e, n-at)
			}
		} else if len(bytes.TrimSpace(line)) > 0 {
			r.broke(n, err)
		} else if r.openEnd {
			r.size += int64(n) // the newline of the line that was taken without it
		} else {
			r.skip(n)
		}
		r.openEnd = false
	}
	r.last = make([]byte, min(r.size, 64))
	if _, err := r.file.ReadAt(r.last, r.size-int64(len(r.last))); err != nil && !errors.Is(err, io.EOF) {
		return r.lines - before, fmt.Errorf("read %s at byte %d: %w", r.path, r.size, err)
	}
	return r.lines - before, nil
}

// ended says that a line of n bytes that reaches the end of the file has its
// newline.
func (r *Recording) ended(n int) bool {
	var b [1]byte
	_, err := r.file.ReadAt(b[:], r.size+int64(n)-1)
	return err == nil && b[0] == '\n'
}

func (r *Recording) broke(n int, err error) {
	r.findings.add(Finding{Severity: Note, Code: "broken_line", File: r.log, Line: r.lines + 1, Offset: r.size,
		Text: fmt.Sprintf("line %d (byte %d) is not an event and is skipped: %s", r.lines+1, r.size, text.Line(err.Error()))})
	r.skip(n)
}

func (r *Recording) salvage(line []byte) int {
	return salvage(line, func(b []byte) bool { _, err := r.decoder.Decode(b); return err == nil })
}

// cut passes over the beginning of a line that holds an event further on.
func (r *Recording) cut(n int, err error) {
	r.findings.add(Finding{Severity: Note, Code: "broken_line", File: r.log, Line: r.lines + 1, Offset: r.size,
		Text: fmt.Sprintf("line %d (byte %d) was cut, and another was written on: %d bytes are skipped: %s", r.lines+1, r.size, n, text.Line(err.Error()))})
	r.size += int64(n)
}

// skip passes over a line that is no event.
func (r *Recording) skip(n int) {
	if k := len(r.broken) - 1; k >= 0 && r.broken[k].event == len(r.offsets) {
		r.broken[k].lines++
	} else {
		r.broken = append(r.broken, brokenAt{len(r.offsets), 1})
	}
	r.size += int64(n)
	r.lines++
}

func (r *Recording) take(e event.Event, n int) {
	i := len(r.offsets)
	r.check(i, e)
	r.offsets = append(r.offsets, r.size)
	r.clock = max(r.clock, e.ElapsedMS)
	r.clocks = append(r.clocks, r.clock)
	r.classes = append(r.classes, classOf(e.Body))
	r.size += int64(n)
	r.lines++
	world.Apply(r.head, e)
	r.mark(r.head, i+1, r.size)
}

// eachLine reads the lines of the events from to to (excluded), until yield returns
// false; a line is valid until then. What lies between events, however much, is
// passed over: memory holds one line.
func (r *Recording) eachLine(from, to int, yield func(line []byte) bool) error {
	if from >= to {
		return nil
	}
	if r.file == nil {
		return fs.ErrClosed
	}
	end := r.size
	if to < len(r.offsets) {
		end = r.offsets[to]
	}
	if r.reader == nil {
		r.reader = bufio.NewReaderSize(nil, readAhead)
	}
	at := int64(-1) // where the reader stands
	for i := from; i < to; i++ {
		if gap := r.offsets[i] - at; at < 0 || gap > readAhead {
			at = r.offsets[i]
			r.reader.Reset(io.NewSectionReader(r.file, at, end-at))
		} else if gap > 0 {
			n, _ := r.reader.Discard(int(gap)) // the line that follows shows what is missing
			at += int64(n)
		}
		line, n, err := event.ReadLine(r.reader)
		if err != nil && (!errors.Is(err, io.EOF) || n == 0) {
			return fmt.Errorf("read %s at byte %d: %w", r.path, at, err)
		}
		at += int64(n)
		if !yield(line) {
			return nil
		}
	}
	return nil
}

func firstLine(b []byte) []byte {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		return b[:n+1]
	}
	return b
}
