package view_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/tui/view"
)

// What is followed is read again when its file changes, or when that is asked for; a fault
// in the reading ends the following, and is told.
func TestFollower(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	f := view.NewFollower(view.Followed[string]{
		Paths: func() []string { return []string{file} },
		Read: func(changed bool) (string, error) {
			data, err := os.ReadFile(file)
			switch {
			case err != nil:
				return "", err
			case string(data) == "panic":
				panic("so be it")
			case !changed:
				return "again " + string(data), nil
			}
			return string(data), nil
		},
	})
	if _, _, ok := f.Take(); ok {
		t.Error("there is news of what did not change")
	}
	f.Start()
	f.Start()
	defer f.Close()
	await := func(want string, fault string) {
		t.Helper()
		late := time.After(time.Minute)
		for {
			select {
			case <-f.Feed():
			case <-late:
				t.Fatalf("no %q%s within a minute", want, fault)
			}
			got, err, ok := f.Take()
			if ok && (err == nil && fault == "" && got == want || err != nil && fault != "" && strings.Contains(err.Error(), fault)) {
				return
			}
		}
	}
	f.Again()
	await("again one", "")
	write("two")
	await("two", "")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await("", "no such file")
	write("three")
	await("three", "")
	if _, err, ok := f.Take(); ok {
		t.Errorf("taken twice: %v", errors.Join(err))
	}
	write("panic")
	await("", "internal fault")
	for range f.Feed() {
	} // it is closed
}
