package recording

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/internal/plainjson"
	"refbox/engine/world"
)

// Start is what a heat's folder is made from.
type Start struct {
	// Match is completed: schema version, engine, digests of the seed and of
	// arena.json, and started_at where it is nil. Its End is ignored.
	Match    Match
	Manifest *arena.Manifest
	Seed     []byte // the secret seed; its value is written by Finish alone
	// Clock is the heat's clock in milliseconds, 0 before it starts; for casts.
	Clock func() uint64
}

// Writer writes one heat. Methods may be called from any goroutine. The first
// error of the log sticks: Err and every later Append return it.
type Writer struct {
	dir   string
	clock func() uint64
	seed  []byte
	match Match
	log   *event.Appender

	worldMu sync.Mutex
	world   *world.World
	decoder event.Decoder

	mu       sync.Mutex
	sessions map[string]int
	casts    []*CastWriter
	closed   bool

	wake    chan struct{}
	stop    chan struct{}
	flusher sync.WaitGroup
}

// Create makes the folder with match.json, arena.json and an empty log, and locks
// it: no other writer can have it until this one ends. A folder that holds a heat
// is refused with an error that Is fs.ErrExist.
func Create(dir string, s Start) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the heat's folder: %w", err)
	}
	var arenaText []byte
	if s.Manifest != nil {
		var err error
		if arenaText, err = s.Manifest.JSON(); err != nil {
			return nil, fmt.Errorf("write %s: %w", arenaFile, err)
		}
	}
	m := s.Match
	m.SchemaVersion, m.Engine, m.End = 1, engineName, nil
	m.SeedSHA256 = digest(s.Seed)
	if arenaText != nil {
		m.ArenaSHA256 = digest(arenaText)
	}
	if m.StartedAt == nil {
		now := time.Now().UTC()
		m.StartedAt = &now
	}
	matchText, err := m.text()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", matchFile, err)
	}
	genesis, err := startHash(matchText)
	if err != nil {
		return nil, err
	}
	log, err := event.Create(filepath.Join(dir, eventsFile), genesis)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		dir: dir, clock: s.Clock, seed: s.Seed, match: m, log: log,
		world: world.New(), decoder: event.Decoder{Raw: true}, sessions: map[string]int{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if w.clock == nil {
		w.clock = func() uint64 { return 0 }
	}
	err = lock(log.File())
	if err == nil {
		err = w.writeFile(matchFile, matchText)
	}
	if err == nil && arenaText != nil {
		err = w.writeFile(arenaFile, arenaText)
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	log.Observe = w.observe
	w.flusher.Go(w.flush)
	return w, nil
}

// lock takes the writer's lock. A reader that asks whether the heat is live holds
// it for an instant, so a few tries are made.
func lock(f *os.File) error {
	var err error
	for range 20 {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s is being written by another process; choose another folder", filepath.Dir(f.Name()))
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}

// Dir is the heat's folder.
func (w *Writer) Dir() string { return w.dir }

// Append writes an event at the given clock and returns it as it is in the log.
func (w *Writer) Append(elapsedMS uint64, b event.Body) (event.Event, error) {
	return w.log.Append(elapsedMS, b)
}

// observe folds what is really in the log, so that the world is what any reader
// will fold.
func (w *Writer) observe(line []byte) {
	w.worldMu.Lock()
	defer w.worldMu.Unlock()
	if e, err := w.decoder.Decode(line); err == nil {
		world.Apply(w.world, e)
	}
}

// World is the fold of what was appended, a copy. Its strings are raw.
func (w *Writer) World() *world.World {
	w.worldMu.Lock()
	defer w.worldMu.Unlock()
	return w.world.Clone()
}

// Err is the error that stopped the log, or nil.
func (w *Writer) Err() error { return w.log.Err() }

// writeFile writes a file of the folder, whole or not at all.
func (w *Writer) writeFile(name string, data []byte) error {
	full := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := replaceFile(full, data); err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return fmt.Errorf("disk full: %s could not be written; free some space: %w", full, err)
		}
		return fmt.Errorf("write %s: %w", full, err)
	}
	return nil
}

func replaceFile(full string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(full), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), full)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Brief writes what the player was told.
func (w *Writer) Brief(territory, text string) error {
	return w.writeFile(seatPath(territory, "brief.md"), []byte(text))
}

// Evidence writes the probe records behind a verdict as JSON. Path and digest go
// into the event's record and record_sha256, so the file is there before the
// event is. A second file for one attempt gets a name of its own.
func (w *Writer) Evidence(territory, milestone string, attempt uint64, v any) (name, sha256 string, err error) {
	text, err := plainjson.Indented(v)
	if err != nil {
		return "", "", fmt.Errorf("evidence of %s on %s: %w", territory, milestone, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name = evidencePath(territory, milestone, attempt)
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(w.dir, filepath.FromSlash(name))); err != nil {
			break
		}
		base := evidencePath(territory, milestone, attempt)
		name = base[:len(base)-len(".json")] + "." + strconv.Itoa(n) + ".json"
	}
	if err := w.writeFile(name, text); err != nil {
		return "", "", err
	}
	return name, digest(text), nil
}

// Artifact writes a seat's file, such as result.json, transcript.json,
// analysis.json, usage.json. Bytes are written as they are, anything else as JSON.
func (w *Writer) Artifact(territory, name string, v any) error {
	var data []byte
	switch v := v.(type) {
	case []byte:
		data = v
	case json.RawMessage:
		data = v
	default:
		var err error
		if data, err = plainjson.Indented(v); err != nil {
			return fmt.Errorf("%s of %s: %w", name, territory, err)
		}
	}
	return w.writeFile(seatPath(territory, fileName(name)), data)
}

// Console opens the record of a machine's serial console. What is written to it
// is stamped with the heat's clock. Finish or Close close it at the latest.
func (w *Writer) Console(territory, machine string) (*CastWriter, error) {
	return w.cast(consolePath(territory, machine), territory+" "+machine, 80, 24)
}

// Session opens the record of the next session through the gateway, and returns
// its path in the heat's folder.
func (w *Writer) Session(territory string, width, height int) (c *CastWriter, name string, err error) {
	w.mu.Lock()
	w.sessions[territory]++
	n := w.sessions[territory]
	w.mu.Unlock()
	name = seatPath(territory, "session-"+strconv.Itoa(n)+".cast")
	c, err = w.cast(name, territory+" "+path.Base(name), width, height)
	return c, name, err
}

func (w *Writer) cast(name, title string, width, height int) (*CastWriter, error) {
	full := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return nil, fmt.Errorf("record a terminal: %w", err)
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record a terminal: %w", err)
	}
	c := newCastWriter(f, w.clock, w.wake, title, width, height, *w.match.StartedAt)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.Join(fmt.Errorf("record %s: %w", name, os.ErrClosed), c.Close())
	}
	w.casts = append(w.casts, c)
	return c, nil
}

// flush writes out casts soon after something came, and sleeps when nothing does.
func (w *Writer) flush() {
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		}
		timer := time.NewTimer(castDelay)
		select {
		case <-w.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		w.mu.Lock()
		w.casts = slices.DeleteFunc(w.casts, (*CastWriter).ended)
		casts := slices.Clone(w.casts)
		w.mu.Unlock()
		for _, c := range casts {
			c.Flush()
		}
	}
}

// Finish seals the heat: log and casts are ended, world.json is written, and then
// match.json with the seed's value and the log's head; the lock goes last. After
// Close it does nothing. When the log has failed nothing is sealed, and its error
// is returned.
func (w *Writer) Finish() error {
	if !w.end() {
		return nil
	}
	err := w.log.End()
	if err == nil {
		err = w.seal()
	}
	if closeErr := w.log.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (w *Writer) seal() error {
	final := w.World()
	worldText, err := final.JSON()
	if err != nil {
		return fmt.Errorf("write %s: %w", worldFile, err)
	}
	if err := w.writeFile(worldFile, worldText); err != nil {
		return err
	}
	m := w.match
	m.End = &MatchEnd{
		FinishedAt: time.Now().UTC(), State: final.MatchState, Seed: hex.EncodeToString(w.seed),
		Events: w.log.Len(), LogHead: w.log.Head(),
	}
	matchText, err := m.text()
	if err != nil {
		return fmt.Errorf("write %s: %w", matchFile, err)
	}
	return w.writeFile(matchFile, matchText)
}

// Close lets the folder go without the seal that Finish sets: the heat then counts
// as stopped. Idempotent.
func (w *Writer) Close() error {
	if !w.end() {
		return nil
	}
	return w.log.Close()
}

// end stops everything but the log; false when that was done before.
func (w *Writer) end() bool {
	w.mu.Lock()
	done := w.closed
	w.closed = true
	casts := w.casts
	w.mu.Unlock()
	if done {
		return false
	}
	close(w.stop)
	w.flusher.Wait()
	for _, c := range casts {
		c.Close() // a lost console record does not spoil the heat
	}
	return true
}
