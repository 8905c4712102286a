package branch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func disks(size int) func(string, int64) error {
	return func(dir string, most int64) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "host.disk"), make([]byte, size), 0o600)
	}
}

func TestKeepFindAndPrune(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "states"))
	var ids []string
	for i := range MaxStates + 2 {
		id, bytes, err := s.Keep(State{Territory: "one"}, disks(i+1))
		if err != nil || bytes < int64(i+1) {
			t.Fatalf("%d bytes, %v", bytes, err)
		}
		old := time.Now().Add(time.Duration(i-1000) * time.Hour)
		if err := os.Chtimes(s.dir(id), old, old); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := s.Prune(); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		st, dir, err := s.Find(id)
		if i < 2 {
			if !errors.Is(err, ErrGone) {
				t.Errorf("the %d. state: %v, want it gone", i, err)
			}
			continue
		}
		if info, serr := os.Stat(filepath.Join(dir, "host.disk")); err != nil || serr != nil || st.Territory != "one" || info.Size() != int64(i+1) {
			t.Errorf("the %d. state: %+v, %v, %v", i, st, err, serr)
		}
	}
}

// What a state's name is in a recording is not taken for a path, and what fails leaves
// nothing.
func TestHostileNamesAndFailures(t *testing.T) {
	base := t.TempDir()
	s := Store(filepath.Join(base, "states"))
	if err := os.MkdirAll(filepath.Join(base, "0123456789abcdef"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "0123456789abcdef", stateFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../0123456789abcdef", "", ".", "0123456789ABCDEF", "0123456789abcdef\x00"} {
		if _, dir, err := s.Find(id); !errors.Is(err, ErrGone) {
			t.Errorf("%q is found: %s, %v", id, dir, err)
		}
	}
	if _, _, err := Store("").Find("0123456789abcdef"); !errors.Is(err, ErrGone) {
		t.Errorf("no store: %v", err)
	}
	bad := errors.New("bad")
	if _, _, err := s.Keep(State{}, func(dir string, _ int64) error { return errors.Join(bad, os.Mkdir(dir, 0o700)) }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(string(s)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
