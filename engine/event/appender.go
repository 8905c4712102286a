package event

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Appender writes a log: whole lines, numbered from 0, each carrying the hash of
// the one before. Safe for several goroutines; lines never interleave.
//
// The first failed write sticks: what could be written of the line is taken back,
// so the file ends with a whole line, and every later call returns that error.
type Appender struct {
	// Observe, when set before the first Append, is given each line that was
	// written, without its newline, in order. It must not keep it.
	Observe func(line []byte)

	mu    sync.Mutex
	file  *os.File
	path  string
	next  uint64
	last  uint64 // clock of the last line
	size  int64
	head  string
	buf   []byte
	err   error
	ended bool
}

// Create starts a log at path, which must not exist or be empty. Genesis is the
// prev of the first line: the hash of match.json's start part.
func Create(path, genesis string) (*Appender, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create the log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		err = fmt.Errorf("%s already holds a heat; choose another folder: %w", path, os.ErrExist)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Appender{file: f, path: path, head: genesis}, nil
}

// Append writes one event at the heat's clock and returns it as it is on the
// line. A clock behind the last line's (two seats racing for the lock) is raised
// to it: the log's clock never goes back. Lifecycle events are on disk when
// Append returns.
func (a *Appender) Append(elapsedMS uint64, b Body) (Event, error) {
	e, err := a.append(elapsedMS, b)
	if err != nil || !lifecycle(b) {
		return e, err
	}
	// Outside the lock: a flush of one seat's event delays no other seat's.
	return e, a.Sync()
}

func (a *Appender) append(elapsedMS uint64, b Body) (Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return Event{}, a.err
	}
	if a.ended {
		return Event{}, fmt.Errorf("append to %s: %w", a.path, os.ErrClosed)
	}
	e := Event{Sequence: a.next, ElapsedMS: max(elapsedMS, a.last), Prev: a.head, Body: b}
	a.buf = appendEvent(a.buf[:0], e)
	sum := sha256.Sum256(a.buf)
	a.buf = append(a.buf, '\n')
	if err := a.write(a.buf); err != nil {
		a.err = err
		return Event{}, err
	}
	a.next++
	a.last = e.ElapsedMS
	a.head = hex.EncodeToString(sum[:])
	if a.Observe != nil {
		a.Observe(a.buf[:len(a.buf)-1])
	}
	return e, nil
}

func (a *Appender) write(line []byte) error {
	_, err := a.file.Write(line)
	if err == nil {
		a.size += int64(len(line))
		return nil
	}
	if cutErr := a.file.Truncate(a.size); cutErr != nil {
		err = errors.Join(err, cutErr)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("disk full: event %d could not be written to %s; free some space and run the heat again (what was recorded stays readable): %w", a.next, a.path, err)
	}
	return fmt.Errorf("write event %d to %s: %w", a.next, a.path, err)
}

// Sync puts what was written on the disk. Files that cannot be flushed, such as
// pipes, are left alone.
func (a *Appender) Sync() error {
	err := a.file.Sync()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || errors.Is(err, syscall.EINVAL) || errors.Is(err, os.ErrClosed) {
		return a.err
	}
	if a.err == nil {
		a.err = fmt.Errorf("flush %s to disk: %w", a.path, err)
	}
	return a.err
}

// Err is the error that stopped the log, or nil.
func (a *Appender) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Head is the hash of the last line, or the genesis when there is none.
func (a *Appender) Head() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.head
}

// Len is the number of lines written.
func (a *Appender) Len() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// File is the open log, for a lock on it.
func (a *Appender) File() *os.File { return a.file }

// End refuses further events and puts the log on the disk. The file stays open,
// and with it a lock on it, until Close.
func (a *Appender) End() error {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	return a.Sync()
}

// Close ends the log and closes it. Idempotent.
func (a *Appender) Close() error {
	err := a.End()
	if closeErr := a.file.Close(); !errors.Is(closeErr, os.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// lifecycle kinds are flushed to disk at once: the reference's (recordings
// reference, section 2.4) and ours that a crash must not lose.
func lifecycle(b Body) bool {
	switch b.(type) {
	case MatchStateChanged, TerritoryStateChanged, TerritoryEliminated, InfrastructureFailure, MatchFinished,
		HeatPrepared, DurableDeploymentCompleted, MilestonePassed, MilestoneRevoked, SeatUnavailable,
		FaultInjected, FaultConfirmed, FaultCleared, FaultFailed, HeatPaused, HeatResumed,
		ConsoleAttached, ConsoleDetached, RefereeRuling, OperatorNote, PostMatchDrainFinished:
		return true
	}
	return false
}
