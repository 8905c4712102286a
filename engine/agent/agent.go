// Package agent puts players on seats. It hides how a player is driven (a
// script, a command, a model, a person) behind Player, and how it is watched
// behind the Gateway: the one door, an SSH server per seat, through which a
// player reaches its machines.
//
// Guarantees:
//
//   - What is observed is what was on the wire, never what a player says of
//     itself; the one exception, commands that a shell inside an interactive
//     session announces, is marked self-reported.
//   - A player reaches its own machines and nothing else: not the host, not
//     another seat, not the referee's channel.
//   - Every size and count that a client or a guest decides is bounded; output
//     streams with backpressure. A wedged or hostile client or guest harms its
//     own seat only, and Close ends everything and waits for it.
//   - A password or key is never logged, recorded, or written anywhere else than
//     in the file that the caller names.
//
// The package does not know the recording: it tells an Observer.
package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/event"
)

// Player is something that takes a seat.
type Player interface {
	// Play plays until the player is done, gives up, or ctx ends, and returns
	// after everything it started has ended. Ctx carries the seat's deadline.
	// Play calls it through Run, which fills in the status of a cut player.
	Play(ctx context.Context, seat Seat, report Report) Result
}

// Seat is what a player is given.
type Seat struct {
	Territory       string
	Agent           string
	Model           string
	ReasoningEffort string
	Budget          Budget
	Login           Login
	Brief           string        // path of the brief
	Deadline        time.Time     // zero for none
	Movable         bool          // the deadline may be put off: whoever calls Run ends ctx then
	Dir             string        // for artefacts: the seat's folder in the recording
	Private         string        // a folder of the seat's outside the recording, for credentials; removed after the heat
	Drain           time.Duration // after the freeze, for late artefacts
	// Await returns when the heat's clock, which a pause stops, has gone on by that
	// long, or with ctx's error; nil for a clock that is never stopped.
	Await func(ctx context.Context, d time.Duration) error
	// Room asks whether so many bytes more may be kept in Dir, and takes them; nil
	// is always.
	Room func(bytes int) bool
	// Terminal opens the record of a terminal of the player's own; nil when
	// nothing records it.
	Terminal func(command string, cols, rows int) Terminal
}

// Budget is what a player may use up. Run ends a player whose reported usage goes
// over it, and compares the final usage with it.
type Budget struct {
	ResourceUnits   uint64        // 0 for no limit, here and below
	MaxCostMicroUSD *uint64       // nil for no limit
	Turns           uint64        // rounds with a model
	Tokens          uint64        // input and output together
	Time            time.Duration // from the player's start, by Seat.Await
}

// Login is how a player gets through its seat's gateway. The user name selects
// the machine: its name, or "root" for the first.
type Login struct {
	Addr         string        // the gateway, "127.0.0.1:port"
	User         string        // of the first machine
	Machines     []string      // names, in the manifest's order
	Password     string        // never in argv, logs or recordings
	PasswordFile string        // the same on disk, mode 0600; "" when not written
	KeyFile      string        // a private key that the gateway accepts; "" for none
	HostKey      ssh.PublicKey // the gateway's
}

// String leaves the password out, so that no log shows it.
func (l Login) String() string { return l.User + "@" + l.Addr }

// Report is what a player may tell while it plays. Methods may be called from
// any goroutine.
type Report interface {
	// Usage is the player's usage so far, cumulative.
	Usage(Usage)
	// Note is a remark of the player about itself. It decides nothing: Run keeps
	// the first 200 in result.json, and the log, which is the referee's, has none.
	Note(text string)
}

// Usage is what a player used up; nil is unknown, never zero (recordings
// reference, section 6.3).
type Usage struct {
	Rounds        *uint64 `json:"rounds,omitempty"`
	ToolCalls     *uint64 `json:"tool_calls,omitempty"`
	InputTokens   *uint64 `json:"input_tokens,omitempty"`
	OutputTokens  *uint64 `json:"output_tokens,omitempty"`
	CostMicroUSD  *uint64 `json:"cost_microusd,omitempty"`
	ResourceUnits uint64  `json:"resource_units"`
}

// Status is how a player ended (recordings reference, section 6.3).
type Status string

// The statuses of the adapter contract.
const (
	Completed      Status = "completed"
	Failed         Status = "failed"
	Unavailable    Status = "unavailable"
	TimedOut       Status = "timed_out"
	Interrupted    Status = "interrupted"
	BudgetExceeded Status = "budget_exceeded"
	HarnessError   Status = "harness_error"
)

// Known reports whether s is one of the contract's statuses.
func (s Status) Known() bool {
	switch s {
	case Completed, Failed, Unavailable, TimedOut, Interrupted, BudgetExceeded, HarnessError:
		return true
	}
	return false
}

// Source is who is charged with the status, in the reference's words
// (recordings reference, section 4.6).
func (s Status) Source() string {
	switch s {
	case Completed, Failed, TimedOut, BudgetExceeded:
		return "player"
	case Unavailable:
		return "provider"
	case Interrupted:
		return "arena"
	}
	return "harness"
}

// Result is what came of a player.
type Result struct {
	Status     Status
	Summary    string // one or more lines, sanitised by whoever shows it
	Usage      Usage
	Transcript string // path relative to the seat's folder; "" for none
	// Limit is the limit that ended the player; nil for none. Run fills it in.
	Limit *Reached
}

// Event is the result as the log tells it: agent_interrupted when the arena
// ended the player, agent_finished otherwise (recordings reference, section
// 4.6).
func (r Result) Event(agent string) event.Body {
	detail := clean(r.Summary, summaryLimit)
	if r.Status == Interrupted {
		return event.AgentInterrupted{Agent: agent, Source: r.Status.Source(), Detail: detail}
	}
	return event.AgentFinished{Agent: agent, Source: r.Status.Source(), Success: r.Status == Completed, Detail: detail}
}

// Hostile is what in the player's own words would have driven a terminal; "" for
// nothing.
func (r Result) Hostile() string { return drives(r.Summary[:min(len(r.Summary), summaryLimit)]) }

const summaryLimit = 4 << 10

// Run seats the player: it bounds Play by the seat's deadline, gives a player
// that was cut its status, holds the result against the budget, and writes
// result.json into the seat's folder (none when Dir is empty). An error is
// about writing; the result stands beside it.
func Run(ctx context.Context, p Player, seat Seat, report Report) (Result, error) {
	if !seat.Deadline.IsZero() && !seat.Movable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, seat.Deadline)
		defer cancel()
	}
	if report == nil {
		report = silent{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t := seat.Budget.Time; t > 0 {
		timed, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			if seat.await(timed, t) == nil {
				cancel(&Reached{"time", fmt.Sprintf("played for the %v that it had", t)})
			}
		}()
		defer func() { stop(); <-watched }()
	}
	counted := &meter{Report: report, budget: seat.Budget, cancel: cancel}
	noted := &notebook{Report: counted, began: time.Now()}
	r := play(ctx, p, seat, noted)
	if !r.Status.Known() {
		r = Result{Status: HarnessError, Summary: fmt.Sprintf("the adapter returned the unknown status %q", r.Status), Usage: r.Usage, Transcript: r.Transcript}
	}
	// A player that came to its end is not charged with a limit that passed at
	// that moment; one that used too much is, however it ended.
	if over := counted.limit(ctx, r.Usage); over != nil && r.Status != Interrupted && (over.Limit != "time" || r.Status == TimedOut) {
		r.Limit = over
		if over.Limit != "time" {
			r.Status = BudgetExceeded
		}
		r.Summary = strings.TrimSpace(over.Detail + "; " + r.Summary)
	}
	hide := NewSecrets(seat.Login.Password)
	r.Summary = hide.HideText(r.Summary)
	if seat.Dir == "" {
		return r, nil
	}
	for i := range noted.notes {
		noted.notes[i].Text = hide.HideText(noted.notes[i].Text)
	}
	return r, writeResult(seat.Dir, seat, r, noted.all())
}

func (s Seat) await(ctx context.Context, d time.Duration) error {
	if s.Await != nil {
		return s.Await(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notebook keeps a player's notes.
type notebook struct {
	Report
	began time.Time

	mu    sync.Mutex
	notes []note
}

// note is a player's remark.
type note struct {
	AtMS uint64 `json:"at_ms"` // since the player began
	Text string `json:"text"`
}

const maxNotes = 200

func (n *notebook) Note(text string) {
	n.mu.Lock()
	if len(n.notes) < maxNotes {
		n.notes = append(n.notes, note{uint64(time.Since(n.began).Milliseconds()), line(text)})
	}
	n.mu.Unlock()
	n.Report.Note(text)
}

func (n *notebook) all() []note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notes
}

// play keeps a panicking adapter from taking the heat with it.
func play(ctx context.Context, p Player, seat Seat, report Report) (r Result) {
	defer func() {
		if e := recover(); e != nil {
			r = Result{Status: HarnessError, Summary: fmt.Sprintf("the adapter panicked: %v", e)}
		}
	}()
	r = p.Play(ctx, seat, report)
	if r.Status == "" {
		r.Status = CutStatus(ctx)
	}
	return r
}

type silent struct{}

func (silent) Usage(Usage) {}
func (silent) Note(string) {}

// resultFile is result.json as a program writes it (recordings reference, section
// 6.3).
type resultFile struct {
	SchemaVersion int     `json:"schema_version"`
	Agent         string  `json:"agent"`
	Territory     string  `json:"territory"`
	Status        Status  `json:"status"`
	Summary       string  `json:"summary"`
	Usage         Usage   `json:"usage"`
	Transcript    *string `json:"transcript"`
}

// ourResult is result.json as we write it.
type ourResult struct {
	resultFile
	Notes []note `json:"notes,omitempty"` // what the player said of itself
}

// writeResult writes result.json into dir, through a temporary file and a
// rename.
func writeResult(dir string, seat Seat, r Result, notes []note) error {
	f := ourResult{resultFile{
		SchemaVersion: 1, Agent: seat.Agent, Territory: seat.Territory,
		Status: r.Status, Summary: clean(r.Summary, summaryLimit), Usage: r.Usage,
	}, notes}
	if r.Transcript != "" {
		f.Transcript = &r.Transcript
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result of %s: %w", seat.Agent, err)
	}
	path := filepath.Join(dir, "result.json")
	if err := writeFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the result of %s: %w", seat.Agent, err)
	}
	return nil
}

// writeFile replaces path as a whole or not at all.
func writeFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Factory makes a player from what follows the adapter's name and a colon, for
// example "careful" in "script:careful"; "" when nothing follows.
type Factory func(arg string) (Player, error)

// Registry knows the adapters by name.
type Registry map[string]Factory

// Knows tells whether there is the adapter of spec.
func (r Registry) Knows(spec string) bool {
	name, _, _ := strings.Cut(spec, ":")
	_, ok := r[name]
	return ok
}

// Player makes the player that spec names: "adapter" or "adapter:argument".
func (r Registry) Player(spec string) (Player, error) {
	name, arg, _ := strings.Cut(spec, ":")
	f, ok := r[name]
	if !ok {
		names := make([]string, 0, len(r))
		for n := range r {
			names = append(names, n)
		}
		sort.Strings(names)
		return nil, fmt.Errorf("adapter %q is not known here; known are: %s", name, strings.Join(names, ", "))
	}
	p, err := f(arg)
	if err != nil {
		return nil, fmt.Errorf("adapter %q: %w", spec, err)
	}
	return p, nil
}
