package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// tokenName is the variable that marks a program's processes.
const tokenName = "REFBOX_TOKEN"

// newToken is a word that nobody else has; it names this process, so that what
// outlives it can be told from what does not.
func newToken() string {
	return fmt.Sprintf("%d.%s.%s", os.Getpid(), startOf(os.Getpid()), strings.ToLower(rand.Text()))
}

const (
	maxReport = 1 << 20  // of result.json and usage.json
	maxKept   = 64 << 20 // of any other file of a program
	liveEvery = 2 * time.Second
)

// Names of transcripts. What a program streams is found by its content, so it is
// kept under the names that readers look for.
const (
	finalTranscript    = "transcript.json"
	liveTranscript     = "transcript.live.json"
	streamedTranscript = "transcript.jsonl" // a program's only
)

// watch reads usage.json and copies the live transcript when they change, until
// ctx ends. What changes faster than notices come is found at the next tick.
func (b *bench) watch(ctx context.Context, report Report) {
	var changed <-chan fsnotify.Event
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer w.Close()
		if w.Add(b.dir) == nil {
			changed = w.Events
		}
	}
	every := time.NewTicker(liveEvery)
	defer every.Stop()
	seen := map[string]time.Time{}
	fresh := func(name string) bool {
		info, err := os.Lstat(filepath.Join(b.dir, name))
		if err != nil || info.ModTime().Equal(seen[name]) {
			return false
		}
		seen[name] = info.ModTime()
		return true
	}
	usage := func() {
		if !fresh("usage.json") {
			return
		}
		if u := b.readUsage(); u != nil {
			report.Usage(*u)
		}
	}
	usage()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-changed:
			if filepath.Base(e.Name) == "usage.json" {
				usage()
			}
		case <-every.C:
			usage()
			for _, name := range []string{streamedTranscript, liveTranscript} {
				if fresh(name) {
					b.copy(name, liveTranscript)
				}
			}
		}
	}
}

// usage is what the program has reported so far.
func (b *bench) usage() Usage {
	b.readUsage()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charge
}

// readUsage reads usage.json; nil when it is not this seat's, or says nothing.
func (b *bench) readUsage() *Usage {
	data, err := readOwn(filepath.Join(b.dir, "usage.json"), maxReport)
	if err != nil {
		return nil
	}
	var f struct {
		SchemaVersion int    `json:"schema_version"`
		Agent         string `json:"agent"`
		Territory     string `json:"territory"`
		Usage         Usage  `json:"usage"`
	}
	if json.Unmarshal(data, &f) != nil || f.SchemaVersion != 1 || f.Agent != b.seat.Agent || f.Territory != b.seat.Territory {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charge = b.charge.Most(f.Usage)
	u := b.charge
	return &u
}

// keep takes the program's files over into the seat's folder, and names the
// transcript among them.
func (b *bench) keep() (transcript string) {
	b.copy("stdout.log", "stdout.log")
	b.copy("stderr.log", "stderr.log")
	if b.copy(liveTranscript, liveTranscript) {
		transcript = liveTranscript
	}
	switch {
	case b.copy(finalTranscript, finalTranscript):
		return finalTranscript
	case b.copy(streamedTranscript, finalTranscript):
		if transcript == "" { // the same and less
			os.Remove(filepath.Join(b.seat.Dir, liveTranscript))
		}
		return finalTranscript
	}
	return transcript
}

// copy takes one file over, without secrets; false when there is nothing in it.
func (b *bench) copy(name, as string) bool {
	if b.seat.Dir == "" {
		return false
	}
	data, err := readOwn(filepath.Join(b.dir, name), maxKept)
	if err != nil || len(data) == 0 {
		return false
	}
	data = b.secrets.Hide(data)
	return b.room(name, len(data)) && writeFile(filepath.Join(b.seat.Dir, as), data, 0o644) == nil
}

// room takes what a file has grown by from the room for the seat's files.
func (b *bench) room(name string, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	grown := size - b.taken[name]
	if b.seat.Room == nil || grown <= 0 {
		return true
	}
	if !b.seat.Room(grown) {
		return false
	}
	b.taken[name] = size
	return true
}

// readOwn reads a regular file, and no link, pipe or device that a program may
// have put in its place.
func readOwn(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", filepath.Base(path))
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has more than %d bytes", filepath.Base(path), most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// result is what came of the program (recordings reference, section 6.2). Ended
// is the status of a player whose context ended.
func (b *bench) result(state *os.ProcessState, cut, strict bool, ended Status) Result {
	data, err := readOwn(filepath.Join(b.dir, "result.json"), maxReport)
	missing := errors.Is(err, fs.ErrNotExist)
	var r Result
	if err == nil {
		r, err = b.readResult(data)
	}
	how := exitWords(state)
	switch {
	case cut && err == nil && ended != TimedOut && ended != BudgetExceeded:
		return r // it left its result in time
	case cut:
		summary := r.Summary
		if err != nil {
			summary = "it was told to end, and left no result"
		}
		return Result{Status: ended, Summary: summary, Usage: r.Usage}
	case err == nil:
		return r
	case !missing:
		return Result{Status: HarnessError, Summary: fmt.Sprintf("the program %s; its result cannot be used: %v", how, err)}
	case strict:
		return Result{Status: HarnessError, Summary: fmt.Sprintf("the program %s without a result", how)}
	}
	if state.Success() {
		return Result{Status: Completed, Summary: "the program " + how}
	}
	if n := state.ExitCode(); n < 0 || n == 126 || n == 127 || n > 128 {
		// Killed, or its own shell could not start it.
		return Result{Status: HarnessError, Summary: "the program " + how}
	}
	return Result{Status: Failed, Summary: "the program " + how}
}

func exitWords(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// readResult reads result.json: unknown keys, another identity or an unknown
// status make it unusable.
func (b *bench) readResult(data []byte) (Result, error) {
	var f resultFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Result{}, err
	}
	switch {
	case f.SchemaVersion != 1:
		return Result{}, fmt.Errorf("schema_version is %d, not 1", f.SchemaVersion)
	case f.Agent != b.seat.Agent || f.Territory != b.seat.Territory:
		return Result{}, fmt.Errorf("it is of agent %q in territory %q", line(f.Agent), line(f.Territory))
	case !f.Status.Known():
		return Result{}, fmt.Errorf("the status %q is not known", line(string(f.Status)))
	}
	return Result{Status: f.Status, Summary: clean(f.Summary, summaryLimit), Usage: f.Usage}, nil
}
