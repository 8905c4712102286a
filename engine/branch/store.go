// Package branch keeps the states of seats' machines that running heats save, and says
// what a heat that starts from one inherits. It hides where states lie, how many, and
// which of a recording's are still here.
//
// Guarantees: a state is whole or not there; there are at most MaxStates, of MaxBytes
// together, and the oldest go first; none is kept that would leave the disk with less
// than KeepFree. No secret of a running heat is in a state's description. What a
// recording calls a state's name is checked before it becomes a path.
package branch

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a store.
const (
	MaxStates = 64
	MaxBytes  = 4 << 30
	MaxState  = 512 << 20 // of one state
	KeepFree  = 2 << 30   // on the disk
)

// Store is a folder of states. "" keeps nothing.
type Store string

// State describes a saved state.
type State struct {
	Driver     string `json:"driver"`      // vm.Driver.Kind
	Template   string `json:"template"`    // vm.Template.Key of what the machines were started from
	Arena      string `json:"arena"`       // its id
	Package    string `json:"package"`     // where it was loaded from; "bundled" for a bundled one
	SeedSHA256 string `json:"seed_sha256"` // of the heat's secret, as in match.json
	Territory  string `json:"territory"`
	Milestone  string `json:"milestone"` // that passed last
}

const (
	stateFile = "state.json"
	disksDir  = "disks"
	half      = "tmp-"
)

var name = regexp.MustCompile(`^[0-9a-f]{16}$`)

// ErrNoRoom: the disk is too full to keep a state.
var ErrNoRoom = errors.New("too little room on the disk")

// Keep has disks saved into a folder that it makes, at most most bytes, and keeps them
// as a state. It returns the state's name and size. What is older may be thrown away.
func (s Store) Keep(st State, disks func(dir string, most int64) error) (id string, bytes int64, err error) {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return "", 0, fmt.Errorf("keep a state: %w", err)
	}
	var free unix.Statfs_t
	if err := unix.Statfs(string(s), &free); err != nil {
		return "", 0, fmt.Errorf("keep a state: %s: %w", s, err)
	}
	room := int64(free.Bavail)*int64(free.Bsize) - KeepFree
	if room <= 0 {
		return "", 0, fmt.Errorf("keep a state: %w: %s has less than %d GiB free", ErrNoRoom, s, KeepFree>>30)
	}
	dir, err := os.MkdirTemp(string(s), half)
	if err != nil {
		return "", 0, fmt.Errorf("keep a state: %w", err)
	}
	defer os.RemoveAll(dir) // gone when it was renamed
	if err := disks(filepath.Join(dir, disksDir), min(MaxState, room)); err != nil {
		return "", 0, err
	}
	data, err := json.MarshalIndent(st, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, stateFile), data, 0o600)
	}
	var random [8]byte
	rand.Read(random[:])
	id = hex.EncodeToString(random[:])
	if err == nil {
		err = os.Rename(dir, s.dir(id))
	}
	if err != nil {
		return "", 0, fmt.Errorf("keep a state: %w", err)
	}
	return id, size(s.dir(id)), s.Prune()
}

func (s Store) dir(id string) string { return filepath.Join(string(s), id) }

// ErrGone: a state is not here.
var ErrGone = errors.New("it was thrown away, or saved on another computer")

// Find is a state, and the folder of its disks. An error that Is ErrGone says that it is
// not here.
func (s Store) Find(id string) (st State, disks string, err error) {
	if s == "" || !name.MatchString(id) {
		return st, "", ErrGone
	}
	data, err := os.ReadFile(filepath.Join(s.dir(id), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return st, "", ErrGone
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return st, "", fmt.Errorf("the saved state %s: %w", id, err)
	}
	return st, filepath.Join(s.dir(id), disksDir), nil
}

// Prune throws away the oldest states until the rest are within bounds, and what killed
// processes left half made.
func (s Store) Prune() error {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	type kept struct {
		path  string
		at    time.Time
		bytes int64
	}
	var all []kept
	for _, e := range entries {
		path := filepath.Join(string(s), e.Name())
		info, ierr := e.Info()
		switch {
		case ierr != nil:
		case strings.HasPrefix(e.Name(), half):
			if time.Since(info.ModTime()) > time.Hour {
				err = errors.Join(err, os.RemoveAll(path))
			}
		case name.MatchString(e.Name()):
			all = append(all, kept{path, info.ModTime(), size(path)})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return b.at.Compare(a.at) })
	var bytes int64
	for i, k := range all {
		if bytes += k.bytes; i > 0 && (i >= MaxStates || bytes > MaxBytes) {
			err = errors.Join(err, os.RemoveAll(k.path))
		}
	}
	return err
}

// size is what a state takes of the disk: files that it shares with a template count,
// since it keeps them when that is gone.
func size(dir string) (bytes int64) {
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { //nolint:errcheck // what is gone takes nothing
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
