// Package recording is a heat's folder (design: section 3). A Writer makes one,
// and is its only writer; a Recording reads one: ours, while it is being written
// or later, or the reference's, of any era. It hides where things lie, what is
// missing, and what is broken.
//
// Guarantees of reading: nothing is written; whatever can be shown is shown, and
// what cannot is in Integrity; only whole lines count; files outside the folder
// are never followed; strings come sanitised, console bytes do not (they go
// through a terminal emulator); memory is bounded whatever the files hold.
//
// Guarantees of writing: lines are whole, JSON files appear whole or not at all,
// and a kill at any instant leaves a folder that opens, verifies, and says where
// it stopped.
package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Recording is a heat's folder, opened for reading. Methods may be called from
// any goroutine. Index numbers count the events that could be read, from 0.
type Recording struct {
	path   string
	single bool   // a log without a folder
	log    string // the log's name in the source

	mu       sync.Mutex
	src      *source
	file     blob // the log; nil while there is none
	restarts int
	readings int // those that brought something, whoever asked for them
	live     bool
	manifest *arena.Manifest
	match    *Match
	matchRaw []byte
	problems []Finding // of the files beside the log
	found    []Finding // when the files were opened

	testimony   *testimony // of the first testimonyAt events, once asked for
	testimonyAt int

	index
	seeker
	reader *bufio.Reader // of eachLine
}

// Open opens a heat's folder, or a single log or match-report.json by its path. Of
// a large log only the beginning is read; Refresh, Load or Follow read on. A folder
// without a log is opened too, with no events.
func Open(path string) (*Recording, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	dir, log := path, eventsFile
	if !info.IsDir() {
		if dir, log = filepath.Split(filepath.Clean(path)); log == reportFile {
			log = eventsFile
		}
		if dir == "" {
			dir = "."
		}
	}
	src, err := openDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	r := &Recording{path: path, single: log != eventsFile, log: log, src: src}
	if !info.IsDir() && !r.single {
		r.path = filepath.Clean(dir)
	}
	return r, r.begin()
}

// OpenFS opens a heat's folder in a tree, such as the recordings that the program
// carries.
func OpenFS(tree fs.FS, dir string) (*Recording, error) {
	sub, err := fs.Sub(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	if _, err := fs.Stat(sub, "."); err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	r := &Recording{path: dir, log: eventsFile, src: &source{fsys: sub}}
	return r, r.begin()
}

func (r *Recording) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.useReport()
	r.reset()
	if _, err := r.refresh(firstStep); err != nil {
		r.src.close()
		return err
	}
	return nil
}

// Close releases the files.
func (r *Recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.file != nil {
		err = r.file.Close()
		r.file = nil
	}
	r.closed = true
	return errors.Join(err, r.src.close())
}

// Name is the folder's name, sanitised.
func (r *Recording) Name() string {
	if abs, err := filepath.Abs(r.path); err == nil {
		return text.Line(baseName(abs))
	}
	return text.Line(baseName(r.path))
}

// Path is where the recording is, as it was opened.
func (r *Recording) Path() string { return r.path }

// Manifest is arena.json, sanitised; nil when there is none or it cannot be read.
func (r *Recording) Manifest() *arena.Manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifest
}

// Match is match.json, sanitised; nil when there is none or it cannot be read.
func (r *Recording) Match() *Match {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.match
}

// Arena is the arena's id: of the manifest, else of match.json, else "".
func (r *Recording) Arena() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.manifest != nil && r.manifest.Arena.ID != "":
		return r.manifest.Arena.ID
	case r.match != nil:
		return r.match.ArenaID
	}
	return ""
}

// Started is the wall clock of the start. It is exact when match.json has it; else
// it comes from the folder's name, or is the log's file time.
func (r *Recording) Started() (at time.Time, exact bool) {
	name := r.Name()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.match != nil && r.match.StartedAt != nil {
		return *r.match.StartedAt, true
	}
	if t, ok := dateIn(name); ok {
		return t, false
	}
	if r.file != nil {
		if info, err := r.file.Stat(); err == nil {
			return info.ModTime(), false
		}
	}
	return time.Time{}, false
}

// Live says that a writer holds the folder's lock, as of the last Refresh.
func (r *Recording) Live() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// Restarts counts how often the log was replaced or cut while it was open. After
// a restart every index starts anew.
func (r *Recording) Restarts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restarts
}

const (
	maxMatch    = 4 << 20
	maxManifest = 16 << 20
	maxWorld    = 256 << 20
	maxEvidence = 16 << 20
)

// readFiles reads what lies beside the log, again when it changed.
func (r *Recording) readFiles() {
	if r.single {
		return
	}
	r.problems = nil
	if raw, err := r.src.read(matchFile, maxMatch); err == nil {
		if string(raw) != string(r.matchRaw) {
			r.match, r.matchRaw = nil, raw
			m := &Match{}
			if err := json.Unmarshal(raw, m); err != nil {
				r.problem(matchFile, "file_unreadable", "is not read: %v", err)
			} else {
				clean(m)
				r.match = m
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		r.problem(matchFile, "file_unreadable", "is not read: %v", err)
	}
	if r.manifest != nil {
		return
	}
	raw, err := r.src.read(arenaFile, maxManifest)
	if err == nil {
		m := &arena.Manifest{}
		if err = json.Unmarshal(raw, m); err == nil {
			clean(m)
			r.manifest = m
			return
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		r.problem(arenaFile, "file_unreadable", "is not read: %v", err)
	}
}

func (r *Recording) problem(file, code, format string, args ...any) {
	r.problems = append(r.problems, Finding{Severity: Note, Code: code, File: file, Text: text.Line(fmt.Sprintf(format, args...))})
}

// Event returns event i, sanitised.
func (r *Recording) Event(i int) (event.Event, error) {
	line, err := r.Raw(i)
	if err != nil {
		return event.Event{}, err
	}
	return event.Decode(line)
}

// Raw returns the line of event i as it is in the file, without its newline.
func (r *Recording) Raw(i int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < 0 || i >= len(r.offsets) {
		return nil, fmt.Errorf("%s has no event %d", r.path, i)
	}
	var out []byte
	err := r.eachLine(i, i+1, func(line []byte) bool {
		out = bytes.Clone(bytes.TrimRight(line, "\r\n"))
		return true
	})
	return out, err
}

// Events calls yield for the events from to to (excluded) until it returns false.
func (r *Recording) Events(from, to int, yield func(i int, e event.Event) bool) error {
	const (
		batch     = 512
		batchSize = 1 << 20
	)
	d := &event.Decoder{}
	var data []byte
	var ends []int
	for from < to {
		data, ends = data[:0], ends[:0]
		r.mu.Lock()
		err := r.eachLine(from, min(to, from+batch, len(r.offsets)), func(line []byte) bool {
			data = append(data, line...)
			ends = append(ends, len(data))
			return len(data) < batchSize
		})
		r.mu.Unlock()
		if err != nil {
			return err
		}
		if len(ends) == 0 {
			return nil
		}
		start := 0
		for _, end := range ends {
			e, err := d.Decode(data[start:end])
			if err != nil {
				return fmt.Errorf("%s changed while it was read: %w", r.path, err)
			}
			if !yield(from, e) {
				return nil
			}
			from, start = from+1, end
		}
	}
	return nil
}

// World is the fold of the first n events; n beyond what was read counts as all.
// The caller may keep it, but not change it.
func (r *Recording) World(n int) *world.World {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.worldAt(max(0, min(n, len(r.offsets))))
}
