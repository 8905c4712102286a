package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// An explanation of a recording that was changed says so first.
func TestWhyOfChangedRecording(t *testing.T) {
	b := newBox(t)
	if err := os.CopyFS(b.path("heat"), os.DirFS("../../recordings/primary-failover")); err != nil {
		t.Fatal(err)
	}
	whole := b.run(time.Minute, "why", b.path("heat"))
	if whole.code != 0 || whole.errors.String() != "" {
		t.Fatalf("why exits with %d\n%s", whole.code, whole.errors)
	}
	log := b.path("heat", "events.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, bytes.Replace(data, []byte(`"points":20`), []byte(`"points":21`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	b.run(time.Minute, "why", b.path("heat")).says(0, "This recording has ", "refbox verify")
}
