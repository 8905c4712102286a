package recording

import (
	"context"
	"errors"
	"io"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/world"
)

var errStub = errors.New("not there yet")

// Match is match.json: where a heat comes from. The reference's keys first.
type Match struct {
	SchemaVersion     int               `json:"schema_version"`
	ControllerVersion string            `json:"controller_version"`
	SourceRevision    *string           `json:"source_revision"`
	ArenaID           string            `json:"arena_id"`
	ArenaMode         string            `json:"arena_mode"`
	ManifestSHA256    string            `json:"manifest_sha256"`
	PlayerBriefSHA256 *string           `json:"player_brief_sha256,omitempty"`
	VerifierSHA256    string            `json:"verifier_sha256"`
	AdapterSHA256     map[string]string `json:"adapter_sha256"`
	CompatibilityKey  string            `json:"compatibility_key"`
	// Ours.
	Engine      string            `json:"engine,omitempty"` // "refbox"; empty in the reference's
	StartedAt   *time.Time        `json:"started_at,omitempty"`
	SourceDirty *bool             `json:"source_dirty,omitempty"`
	Machines    map[string]string `json:"machines,omitempty"` // vm.Driver.Versions
	Hashes      map[string]string `json:"hashes,omitempty"`   // of the arena's package, by name
	Seats       []MatchSeat       `json:"seats,omitempty"`
	SeedSHA256  string            `json:"seed_sha256,omitempty"` // hex SHA-256 of the secret seed
	End         *MatchEnd         `json:"end,omitempty"`         // nil until the heat was closed properly
}

// MatchSeat says who really plays a seat.
type MatchSeat struct {
	Territory string `json:"territory"`
	Agent     string `json:"agent"`
	Adapter   string `json:"adapter"` // the one that runs
	Note      string `json:"note,omitempty"`
}

// MatchEnd is added when the heat is closed.
type MatchEnd struct {
	FinishedAt time.Time `json:"finished_at"`
	State      string    `json:"state"`
	Seed       string    `json:"seed"` // hex
	Events     uint64    `json:"events"`
	LogHead    string    `json:"log_head"` // hash of the last line
}

// Start is what a heat's folder is made from.
type Start struct {
	Match    Match // SeedSHA256 is set from Seed
	Manifest *arena.Manifest
	Seed     []byte        // the secret seed; its value is written only by Finish
	Clock    func() uint64 // the heat's clock in milliseconds; 0 before it starts
}

// Writer writes one heat. Methods may be called from any goroutine. The first
// error of the log sticks: Err and every later Append return it.
type Writer struct{}

// Create makes the folder with match.json, arena.json and an empty log, and locks
// it. A folder that holds a heat is refused.
func Create(dir string, s Start) (*Writer, error) { return nil, errStub }

// Dir is the heat's folder.
func (w *Writer) Dir() string { return "" }

// Append writes an event at the given clock.
func (w *Writer) Append(elapsedMS uint64, b event.Body) (event.Event, error) {
	return event.Event{}, errStub
}

// World is the fold of what was appended, a copy.
func (w *Writer) World() *world.World { return nil }

// Err is the error that stopped the log, if any.
func (w *Writer) Err() error { return errStub }

// Brief writes what the player was told.
func (w *Writer) Brief(territory, text string) error { return errStub }

// Console opens the record of a machine's console. Bytes written to it are
// stamped with the heat's clock. It is closed by Finish or Close at the latest.
func (w *Writer) Console(territory, machine string) (*CastWriter, error) { return nil, errStub }

// Session opens the record of the next session through the gateway, and returns
// its path relative to the heat's folder.
func (w *Writer) Session(territory string, width, height int) (cast *CastWriter, path string, err error) {
	return nil, "", errStub
}

// Evidence writes the probe records behind a verdict as JSON. The path and digest
// go into the event's record and record_sha256.
func (w *Writer) Evidence(territory, milestone string, attempt uint64, v any) (path, sha256 string, err error) {
	return "", "", errStub
}

// Artifact writes a seat's JSON file: result, transcript, analysis or usage.
func (w *Writer) Artifact(territory, name string, v any) error { return errStub }

// Finish writes world.json, and match.json's end with the seed and the log's
// head, then closes everything. A heat that is not finished properly is only
// closed.
func (w *Writer) Finish() error { return errStub }

// Close releases the folder without the seal that Finish sets. Idempotent.
func (w *Writer) Close() error { return errStub }

// CastWriter records terminal output as asciicast v2 on the heat's clock. It is
// bounded: beyond 64 MiB it says so once and drops the rest. Write never fails
// and never blocks on the disk for long.
type CastWriter struct{}

func (c *CastWriter) Write(p []byte) (int, error) { return len(p), nil }
func (c *CastWriter) Resize(width, height int)    {}
func (c *CastWriter) Close() error                { return errStub }

var _ io.WriteCloser = (*CastWriter)(nil)

// Recording is a heat's folder, opened for reading. Methods may be called from
// any goroutine. Index numbers count the events that could be read, from 0.
type Recording struct{}

// Open opens a heat's folder, or a single log. It reads only the beginning of a
// large log: Refresh, Load or Follow read on. A folder without a log yet is
// opened too, empty.
func Open(path string) (*Recording, error) { return nil, errStub }

// Close releases the files.
func (r *Recording) Close() error { return errStub }

// Name is the folder's name, sanitised; Path is where it is.
func (r *Recording) Name() string { return "" }
func (r *Recording) Path() string { return "" }

// Manifest is arena.json, nil when there is none or it cannot be read.
func (r *Recording) Manifest() *arena.Manifest { return nil }

// Match is match.json, nil when there is none or it cannot be read.
func (r *Recording) Match() *Match { return nil }

// Started is the wall clock of the start, and whether it is exact: match.json's,
// else from the folder's name, else the log's file time.
func (r *Recording) Started() (at time.Time, exact bool) { return }

// Len is the number of events read so far.
func (r *Recording) Len() int { return 0 }

// Complete says that Len counts all that the log holds.
func (r *Recording) Complete() bool { return false }

// Head is the clock of the log's last event, also of one that Len does not count
// yet.
func (r *Recording) Head() uint64 { return 0 }

// Event returns event i, sanitised.
func (r *Recording) Event(i int) (event.Event, error) { return event.Event{}, errStub }

// Raw returns the line of event i as it is in the file, without its newline.
func (r *Recording) Raw(i int) ([]byte, error) { return nil, errStub }

// Events calls yield for the events from to to (excluded) until it returns false.
func (r *Recording) Events(from, to int, yield func(int, event.Event) bool) error { return errStub }

// Line is where event i is in the log: its line, from 1, and its byte offset.
func (r *Recording) Line(i int) (line int, offset int64) { return }

// MS is the clock of event i.
func (r *Recording) MS(i int) uint64 { return 0 }

// IndexAt is the number of events at or before a clock: World(IndexAt(ms)) is the
// world at it.
func (r *Recording) IndexAt(ms uint64) int { return 0 }

// World is the fold of the first n events. The caller may keep it, not change it.
func (r *Recording) World(n int) *world.World { return nil }

// Class sorts events for stepping.
type Class uint8

// Classes of events.
const (
	ClassNoise     Class = iota // evaluations that started or failed, health, canary, usage
	ClassOther                  // everything else worth a row
	ClassMilestone              // passed, revoked, durable, the match's end
	ClassAction                 // an agent's action started
)

// Step returns the next index after i (dir > 0) or before it (dir < 0) whose
// event is of one of the classes; -1 when there is none.
func (r *Recording) Step(i, dir int, classes ...Class) int { return -1 }

// Live says that a writer holds the folder's lock.
func (r *Recording) Live() bool { return false }

// Refresh reads what the files have more. Changed says that anything was read;
// call it until it is false to read all.
func (r *Recording) Refresh() (changed bool, err error) { return false, errStub }

// Load reads the log to its end.
func (r *Recording) Load(ctx context.Context) error { return errStub }

// Follow reads on in the background until ctx ends, and signals after each step
// that brought something new. The channel is closed when the following has ended.
func (r *Recording) Follow(ctx context.Context) <-chan struct{} { return nil }

// Restarts counts how often the log was replaced or cut while it was followed.
func (r *Recording) Restarts() int { return 0 }

// Cast is a recorded terminal: frames by time.
type Cast struct{}

// Frame is one piece of a cast.
type Frame struct {
	MS   uint64
	Kind byte   // 'o' output, 'i' input, 'r' resize, 'm' marker
	Data []byte // raw: only for a terminal emulator
}

// Machines are the machines of a territory whose console was recorded.
func (r *Recording) Machines(territory string) []string { return nil }

// Console opens the record of a machine's console; an error that Is fs.ErrNotExist
// when there is none.
func (r *Recording) Console(territory, machine string) (*Cast, error) { return nil, errStub }

// Sessions are the paths of a territory's recorded sessions.
func (r *Recording) Sessions(territory string) []string { return nil }

// Session opens a recorded session by its path.
func (r *Recording) Session(path string) (*Cast, error) { return nil, errStub }

func (c *Cast) Size() (width, height int)            { return }
func (c *Cast) Len() int                             { return 0 }
func (c *Cast) IndexAt(ms uint64) int                { return 0 }
func (c *Cast) Frames(from, to int) ([]Frame, error) { return nil, errStub }
func (c *Cast) Refresh() (changed bool, err error)   { return false, errStub }
func (c *Cast) Close() error                         { return nil }

// Evidence returns the probe records behind a verdict as JSON text that is safe to
// show.
func (r *Recording) Evidence(territory, milestone string, attempt uint64) ([]byte, error) {
	return nil, errStub
}

// File returns a file of the folder by its path in it (an event's record), at
// most 16 MiB of it, raw.
func (r *Recording) File(path string) ([]byte, error) { return nil, errStub }

// Artifact returns a seat's file, wherever the layout has it: brief.md,
// result.json, transcript.json, transcript.live.json, analysis.json, usage.json.
// Its path is relative to the folder.
func (r *Recording) Artifact(territory, name string) (data []byte, path string, err error) {
	return nil, "", errStub
}

// Severity of a finding.
type Severity string

// Severities (design: section 7). Only breaks fail a check.
const (
	Note  Severity = "note"
	Break Severity = "break"
)

// Finding is something odd about a recording.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1; 0: the whole file
	Offset   int64    `json:"offset,omitempty"` // of the line
	Text     string   `json:"text"`
}

// Report is what is known of a recording's integrity.
type Report struct {
	Findings []Finding `json:"findings"`
	Checked  bool      `json:"checked"` // by Verify: chain, world, digests
	Stopped  string    `json:"stopped,omitempty"`
}

// Breaks is the number of findings that are breaks.
func (r Report) Breaks() int { return 0 }

// Badge is "ok", "notes" or "broken".
func (r Report) Badge() string { return "" }

// Integrity is what reading has found so far. It costs nothing.
func (r *Recording) Integrity() Report { return Report{} }

// Verify checks everything that a folder can prove: it folds the log anew,
// compares world.json, follows the chain, and checks the seed and the evidence
// files' digests.
func Verify(ctx context.Context, path string) (Report, error) { return Report{}, errStub }

// Summary is a recording's line in a list.
type Summary struct {
	Path       string        `json:"path"`
	Name       string        `json:"name"`
	Arena      string        `json:"arena"`
	State      string        `json:"state"` // preparing, running, finished, aborted, stopped
	Live       bool          `json:"live"`
	Winner     string        `json:"winner"`
	WinnerName string        `json:"winner_agent"`
	Reason     string        `json:"reason"`
	StartedAt  time.Time     `json:"started_at"`
	Exact      bool          `json:"started_exact"`
	DurationMS uint64        `json:"duration_ms"`
	Seats      []SummarySeat `json:"seats"`
	Events     int           `json:"events"` // 0 when not counted
	Integrity  Report        `json:"integrity"`
}

// SummarySeat is one seat of a Summary.
type SummarySeat struct {
	Territory string `json:"territory"`
	Agent     string `json:"agent"`
	Model     string `json:"model"`
	Points    uint64 `json:"points"`
	Durable   bool   `json:"durable"`
}

// List summarises the heats in the given folders: each is a heat's folder, or
// holds some, at most two levels deep. Newest first.
func List(dirs ...string) ([]Summary, error) { return nil, errStub }
