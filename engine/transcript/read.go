package transcript

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sort"

	"refbox/engine/text"
)

// titleLimit is what is decoded of a body for its title.
const titleLimit = 2 << 10

// titlesKept bounds the titles that are remembered.
const titlesKept = 4096

// Step returns step i as a list shows it.
func (t *Transcript) Step(i int) Step {
	x, imp := t.now()
	e, ok := x.at(i)
	if !ok {
		return Step{Head: Head{Index: i}}
	}
	h := x.head(i, e)
	key := i<<8 | int(e.outcome) // a result that came may change what is told
	t.mu.RLock()
	title, ok := t.memo[key]
	t.mu.RUnlock()
	if ok {
		return Step{h, title}
	}
	alone := e
	alone.resLength = 0 // a result seldom gives a title
	f, err := imp.full(alone, titleLimit)
	if title = titleOf(h, &f); title == "" && err == nil && e.resLength > 0 {
		f, err = imp.full(e, titleLimit)
		title = titleOf(h, &f)
	}
	if err != nil {
		return Step{h, "cannot be read: " + label(err.Error())}
	}
	t.mu.Lock()
	if len(t.memo) >= titlesKept || t.memo == nil {
		t.memo = make(map[int]string, 64)
	}
	t.memo[key] = title
	t.mu.Unlock()
	return Step{h, title}
}

// Full returns step i with its bodies, the first BodyLimit bytes of each.
func (t *Transcript) Full(i int) (*Full, error) { return t.FullLimit(i, BodyLimit) }

// FullLimit is Full with a limit of one's own: for a giant that is opened.
func (t *Transcript) FullLimit(i, limit int) (*Full, error) {
	x, imp := t.now()
	e, ok := x.at(i)
	if !ok {
		return nil, fmt.Errorf("%s: no step %d (there are %d)", t.path, i, x.len())
	}
	f, err := imp.full(e, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: step %d at byte %d: %w", t.path, i, e.off, err)
	}
	f.Head = x.head(i, e)
	f.Title = titleOf(f.Head, &f)
	f.CallID, f.Model, f.WorkDir = label(f.CallID), label(f.Model), text.Line(f.WorkDir)
	for j := range f.Parts {
		f.Parts[j].Label = label(f.Parts[j].Label)
	}
	f.Usage = x.usageOf(i)
	return &f, nil
}

// Raw is the record of step i as it lies on disk, and the record of its result
// when that is another one (nil otherwise). For an editor or a copy: neither is
// sanitised.
func (t *Transcript) Raw(i int) (record, result io.ReadCloser, err error) {
	x, imp := t.now()
	e, ok := x.at(i)
	if !ok {
		return nil, nil, fmt.Errorf("%s: no step %d", t.path, i)
	}
	if e.length <= 0 {
		return nil, nil, fmt.Errorf("%s: step %d has no record of its own: %w", t.path, i, fs.ErrNotExist)
	}
	if row, ok := imp.(interface {
		raw(e entry) (io.ReadCloser, error)
	}); ok {
		record, err = row.raw(e)
		return record, nil, err
	}
	record, err = section(imp, e.file, e.off, e.length)
	if err == nil && e.resLength > 0 {
		if result, err = section(imp, max(e.resFile, e.file), e.resOff, e.resLength); err != nil {
			record.Close()
			record = nil
		}
	}
	return record, result, err
}

type sectionReader struct {
	*io.SectionReader
	release func()
}

func (s sectionReader) Close() error { s.release(); return nil }

func section(imp importer, file uint32, off, length int64) (io.ReadCloser, error) {
	b, release, err := imp.blob(file)
	if err != nil {
		return nil, err
	}
	return sectionReader{io.NewSectionReader(b, off, length), release}, nil
}

// Usage is what was charged with step i; nil when nothing was.
func (t *Transcript) Usage(i int) *Usage { x, _ := t.now(); return x.usageOf(i) }

// Spent is what was charged with the steps up to i, i included.
func (t *Transcript) Spent(i int) Usage {
	x, _ := t.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	sum := noUsage
	for _, c := range x.charges {
		if int(c.step) <= i {
			sum.add(c.usageFigures)
		}
	}
	return sum.usage()
}

// Totals is the whole usage, as far as it was read, and the rule that it was
// found by.
func (t *Transcript) Totals() Totals {
	x, _ := t.now()
	complete := t.Complete()
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := x.totals
	out.Notes = slices.Clone(out.Notes)
	out.Partial, out.Charges = !complete, len(x.charges)
	if !x.given {
		sum := noUsage
		for _, c := range x.charges {
			sum.add(c.usageFigures)
		}
		out.Usage = sum.usage()
		if sum.cost < 0 {
			out.CostMethod = noneRecorded
		}
		if sum.cost = -1; sum.empty() {
			out.Method = noneRecorded
		}
	}
	return out
}

// Integrity is what reading has found so far. Calls without a result are in it
// once everything is read.
func (t *Transcript) Integrity() Report {
	x, imp := t.now()
	complete := t.Complete()
	r := Report{Size: imp.size(), Complete: complete, Counts: map[string]int{}}
	var open []Finding
	unfinished := 0
	if complete {
		x.each(0, func(i int, e entry) bool {
			if e.kind == ToolCall && e.outcome == Unfinished {
				if unfinished++; unfinished <= 200 {
					h := x.head(i, e)
					f := Finding{Trouble: Incomplete, Code: "no-result", File: h.File, Offset: e.off, Length: e.length, Step: i,
						Text: "the call of " + h.Tool + " has no result"}
					if x.lined {
						f.Line = h.Pos + 1
					}
					open = append(open, f)
				}
			}
			return true
		})
	}
	var tail []Finding
	if p, ok := imp.(interface{ tail() []Finding }); ok {
		tail = p.tail()
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	r.Bytes, r.Records, r.Steps = x.read, x.records, x.n
	r.Findings = slices.Concat(x.findings, tail, open)
	for i := range r.Findings {
		r.Findings[i].Step = min(r.Findings[i].Step, x.n-1) // what it pointed at never came
		if r.Findings[i].File == "" {
			r.Findings[i].File = text.Line(x.files[0])
		}
	}
	counts := maps.Clone(x.counts)
	counts[Incomplete] += unfinished
	for _, f := range tail {
		counts[f.Trouble]++
	}
	for k, n := range counts {
		if n > 0 {
			r.Counts[k.String()] = n
		}
	}
	return r
}

func (x *index) len() int { x.mu.RLock(); defer x.mu.RUnlock(); return x.n }

func (x *index) readSoFar() int64 { x.mu.RLock(); defer x.mu.RUnlock(); return x.read }

// torn says that something was lost: a copy that was taken while it was written.
func (x *index) torn() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.ContainsFunc(x.findings, func(f Finding) bool { return f.Severity == Break })
}

func (x *index) usageOf(i int) *Usage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sum, from := noUsage, 0
	if !x.mixed {
		from = sort.Search(len(x.charges), func(j int) bool { return int(x.charges[j].step) >= i })
	}
	for _, c := range x.charges[from:] {
		if int(c.step) == i {
			sum.add(c.usageFigures)
		} else if !x.mixed {
			break
		}
	}
	if sum.empty() {
		return nil
	}
	u := sum.usage()
	return &u
}

// single is a tree of one open file.
type single struct {
	name string
	blob blob
}

func (s single) Open(name string) (fs.File, error) {
	if name != s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	info, err := s.blob.Stat()
	if err != nil {
		return nil, err
	}
	return &singleFile{SectionReader: io.NewSectionReader(s.blob, 0, 1<<62), info: info, blob: s.blob}, nil
}

func (s single) Stat(name string) (fs.FileInfo, error) {
	if name != s.name {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return s.blob.Stat()
}

type singleFile struct {
	*io.SectionReader
	info fs.FileInfo
	blob blob
}

func (f *singleFile) Stat() (fs.FileInfo, error) { return f.blob.Stat() }
func (f *singleFile) Close() error               { return nil }
