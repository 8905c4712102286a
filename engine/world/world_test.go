package world

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"refbox/engine/event"
	"refbox/engine/internal/shared"
)

// foldFile folds a log raw.
func foldFile(t testing.TB, path string) *World {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := New()
	d := &event.Decoder{Raw: true}
	r := bufio.NewReader(f)
	for {
		line, _, err := event.ReadLine(r)
		if err != nil {
			return w
		}
		e, err := d.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		Apply(w, e)
	}
}

func TestFoldEqualsTheRecordedWorld(t *testing.T) {
	identical := 0
	for _, dir := range shared.Recordings(t) {
		name := filepath.Base(dir)
		recorded, err := os.ReadFile(filepath.Join(dir, "world.json"))
		if err != nil {
			t.Fatal(err)
		}
		w := foldFile(t, filepath.Join(dir, "events.jsonl"))
		diffs, era, err := CompareRecorded(w, recorded)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range diffs {
			t.Errorf("%s: %s", name, d)
		}
		ours, err := w.ReferenceJSON()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(ours, recorded) {
			identical++
		} else if len(era) == 0 {
			t.Errorf("%s: equal, but other bytes", name)
		}
		whole, err := w.JSON()
		if err != nil || !json.Valid(whole) {
			t.Errorf("%s: %v", name, err)
		}
		// Ours is a superset in the same order of keys.
		if diffs, _, err := CompareRecorded(w, whole); err != nil || len(diffs) > 0 {
			t.Errorf("%s: own world.json: %v %v", name, diffs, err)
		}
	}
	if identical < 12 {
		t.Errorf("only %d recordings give the same bytes", identical)
	}
}
