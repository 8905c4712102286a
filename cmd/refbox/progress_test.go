package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A step that says nothing for long goes on telling the time; how long it took
// is told only where its end was seen.
func TestProgressOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := &progress{out: &b, live: true}
		p.report("install packages", 0.25)
		time.Sleep(3500 * time.Millisecond)
		p.report("one: booting", -1)
		time.Sleep(time.Second)
		p.report("two: booting", -1)
		time.Sleep(time.Second)
		p.report("two: seat ready", -1)
		p.done()
		p.done()
		var last []string // what stays of each line
		for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
			draws := strings.Split(line, "\r\x1b[K")
			last = append(last, draws[len(draws)-1])
		}
		want := "install packages  3.5s|one: booting|two: booting  1s|two: seat ready  0s"
		if got := strings.Join(last, "|"); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
		if !strings.Contains(b.String(), " 25 %  3s") {
			t.Errorf("the first step stands still: %q", b.String())
		}
	})
}

// A boot tells no part of itself: what is left of it follows from the usual, or from
// the last one on this host.
func TestProgressOfABoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "steps.json")
	synctest.Test(t, func(t *testing.T) {
		b := newFeed() // the line goes on by itself while it is looked at
		for _, left := range []string{"12s", "20s"} {
			pace := &pace{file: file}
			if data, err := os.ReadFile(file); err == nil {
				if err := json.Unmarshal(data, &pace.last); err != nil {
					t.Fatal(err)
				}
			}
			p := &progress{out: b, live: true, pace: pace}
			p.report("booting", 0)
			if !strings.HasSuffix(b.String(), "   0 %, about "+left+" left") {
				t.Errorf("not %s: %q", left, b.String())
			}
			time.Sleep(20 * time.Second)
			p.report("saving", 0.8)
			p.done()
		}
		if n := strings.Count(b.String(), "about 1s left"); n != 2 {
			t.Errorf("%d times a second before its end: %q", n, b.String())
		}
	})
}

// What is left is told once a fair part of the whole was seen, and not of seats,
// which are prepared side by side.
func TestProgressTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := &progress{out: &b, live: true}
		p.report("fetch", 0)
		time.Sleep(10 * time.Second)
		p.report("unpack", 0.25)
		time.Sleep(2 * time.Second)
		p.done()
		if !strings.Contains(b.String(), "unpack  ██████░░░░░░░░░░░░░░░░░░  25 %, about 30s left") {
			t.Errorf("%q", b.String())
		}
		b.Reset()
		p.report("one: boot", 0)
		time.Sleep(10 * time.Second)
		p.report("one: save", 0.5)
		time.Sleep(2 * time.Second)
		p.done()
		if strings.Contains(b.String(), "left") {
			t.Errorf("%q", b.String())
		}
	})
}
