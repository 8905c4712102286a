package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A log that is cut and written anew, with other words, is told from its beginning,
// and that it was.
func TestWatchSaysThatALogWasRestarted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := unix.Flock(int(log.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	write := func(words ...string) {
		for i, w := range words {
			if _, err := fmt.Fprintf(log, `{"schema_version":1,"sequence":%d,"elapsed_ms":%d,"kind":"operator_note","author":"ann","text":%q}`+"\n", i, i, w); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := b.start("watch", dir, "--headless")
	write("first", "second", "third")
	w.until(w.output, "third", time.Minute)
	if err := log.Truncate(0); err != nil {
		t.Fatal(err)
	}
	write("fourth", "fifth")
	w.until(w.output, "fifth", time.Minute)
	if err := log.Close(); err != nil { // the writer leaves
		t.Fatal(err)
	}
	w.wait(time.Minute)
	w.says(0)
	_, anew, restarted := strings.Cut(w.output.String(), "restarted: ")
	if !restarted || !strings.Contains(anew, "fourth") {
		t.Errorf("%s", w.output)
	}
}
