package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/sys/unix"

	"refbox/engine/bounded"
	"refbox/engine/internal/plainjson"
	"refbox/engine/season"
)

// Files of a week's folder.
const (
	drawFile   = "draw.json"
	weekFile   = "week.json"
	secretFile = "seed.secret"
	playerFile = "players.json"
	lockFile   = ".lock"
	tempPrefix = ".tmp-"
)

// ErrBusy is of a week that another process runs.
var ErrBusy = errors.New("another refbox runs this week")

// store is a week's folder. A kill at any moment leaves every file whole: each is
// written beside its place, synced, and moved there.
type store struct {
	dir  string
	lock *os.File
}

func openStore(dir string) (*store, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	s := &store{dir, f}
	return s, s.sweep()
}

func (s *store) close() { s.lock.Close() }

// sweep removes what a killed writer left half-written.
func (s *store) sweep() error {
	for _, pattern := range []string{tempPrefix + "*", "round-*/" + tempPrefix + "*"} {
		left, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// put writes a file whole or not at all, and durably.
func (s *store) put(name string, data []byte) error { return put(s.path(name), data, 0o644) }

// moment is called at every step that a kill could come between; tests kill the
// process there.
var moment = func() {}

func put(path string, data []byte, mode fs.FileMode) (err error) {
	moment()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	moment()
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	moment()
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	moment()
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func journalFile(round, heat int) string { return season.HeatName(round, heat) + ".attempts.json" }

// journal reads a heat's attempts so far; nil when there are none.
func (s *store) journal(round, heat int) (*season.Heat, error) {
	return kept(s.path(journalFile(round, heat)), decoded[season.Heat])
}

// maxKept bounds what is read again of a run: journals, weeks, series.
const maxKept = 64 << 20

// kept reads a file of an earlier run; nil when there is none.
func kept[T any](path string, read func(data []byte) (*T, error)) (*T, error) {
	data, err := bounded.File(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

func decoded[T any](data []byte) (*T, error) {
	v := new(T)
	return v, json.Unmarshal(data, v)
}

func (s *store) putJournal(round int, h *season.Heat) error {
	data, err := plainjson.Indented(h)
	if err != nil {
		return err
	}
	return s.put(journalFile(round, h.Heat), data)
}

// Journals reads every journal of a week's folder, by the heat's name.
func Journals(dir string) (map[string]season.Heat, error) {
	names, err := filepath.Glob(filepath.Join(dir, "round-*", "heat-*.attempts.json"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]season.Heat, len(names))
	for _, name := range names {
		data, err := bounded.File(name, maxKept)
		if err != nil {
			return out, fmt.Errorf("a journal: %w", err)
		}
		var h season.Heat
		if err := json.Unmarshal(data, &h); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return out, err
		}
		out[strings.TrimSuffix(filepath.ToSlash(rel), ".attempts.json")] = h
	}
	return out, nil
}

// players notes what those who play are, or holds it against what was noted.
func (s *store) players(now map[string]string) error {
	was, err := kept(s.path(playerFile), decoded[map[string]string])
	switch {
	case err != nil:
		return err
	case was == nil && now == nil:
		return nil
	case was == nil:
		data, err := plainjson.Indented(now)
		if err != nil {
			return err
		}
		return s.put(playerFile, data)
	}
	if now == nil {
		return fmt.Errorf("%s: this was begun with a file of players; name it again: --players FILE", s.path(playerFile))
	}
	if diff := season.Differences(*was, now); diff != "" {
		return fmt.Errorf("%s: the players are not those that this was begun with%s; put them back, or begin anew", s.path(playerFile), diff)
	}
	return nil
}

// setAside keeps what is left of an attempt that did not finish, under a name
// that says so.
func (s *store) setAside(name string) error {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.interrupted-%d", s.path(name), n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(s.path(name), to); err != nil {
				return err
			}
			return syncDir(filepath.Dir(to))
		}
	}
}

// interrupted counts the runs of an attempt that were set aside.
func (s *store) interrupted(name string) int {
	n := 0
	for {
		if _, err := os.Lstat(fmt.Sprintf("%s.interrupted-%d", s.path(name), n+1)); err != nil {
			return n
		}
		n++
	}
}

// week reads the checkpoint; nil when there is none.
func (s *store) week() (*season.Week, error) {
	return kept(s.path(weekFile), func(data []byte) (*season.Week, error) {
		w, _, err := season.ReadWeek(data)
		return w, err
	})
}

// Create writes a draw and its secret into a new folder. It refuses one that
// holds a draw, a week or a secret already.
func Create(dir string, draw *season.Draw, secret string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.close()
	for _, name := range []string{drawFile, weekFile, secretFile} {
		if _, err := os.Lstat(s.path(name)); err == nil {
			return fmt.Errorf("%s is there already: a week is drawn once; take another label or folder", s.path(name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	data, err := draw.JSON()
	if err != nil {
		return err
	}
	// The secret first: a draw without it could never be run.
	if err := put(s.path(secretFile), []byte(secret+"\n"), 0o600); err != nil {
		return err
	}
	return s.put(drawFile, data)
}

// secret reads the week's variation seed and holds it against its commitment.
func (s *store) secret(d *season.Draw) (string, error) {
	path := s.path(secretFile)
	st, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the week's secret: %w; it was written when the week was drawn", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by others (%#o): chmod 600 %s", path, st.Mode().Perm(), path)
	}
	data, err := bounded.File(path, 1<<10)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if season.CommitSeed(secret) != d.Commitment {
		return "", fmt.Errorf("%s is not the secret that the draw commits to", path)
	}
	return secret, nil
}

func same(a, b *season.Heat) bool {
	x, y := *a, *b
	if len(x.PriorAttempts) == 0 && len(y.PriorAttempts) == 0 {
		x.PriorAttempts, y.PriorAttempts = nil, nil
	}
	return reflect.DeepEqual(x, y)
}
