package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/vm/vmtest"
)

// simulated starts a heat on simulated machines, in lines.
func (b *box) simulated(dir string, more ...string) *process {
	b.t.Helper()
	return b.start(append([]string{"run", "primary-failover", "--machines", "sim", "--headless", "--output", dir}, more...)...)
}

// recorded opens a recording and reads all of it.
func recorded(t *testing.T, dir string) *recording.Recording {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rec
}

// events are those of one kind, in order.
func events[B event.Body](t *testing.T, rec *recording.Recording) []B {
	t.Helper()
	var out []B
	err := rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		if b, ok := e.Body.(B); ok {
			out = append(out, b)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSignals ends a heat at each stage, in each way that a person or a terminal
// may.
func TestSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats: skipped under -short")
	}
	for _, m := range []moment{
		{name: "set-up", stderr: true, words: "set up"},
		{name: "start", stderr: true, words: "logging in"},
		{name: "race", words: "heat running"},
		{name: "end", words: "WINS"},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if m.name == "end" && s != syscall.SIGINT {
				continue
			}
			t.Run(m.name+" "+s.String(), func(t *testing.T) {
				t.Parallel()
				b := newBox(t)
				dir := b.path("heat")
				p := b.simulated(dir)
				from := p.output
				if m.stderr {
					from = p.errors
				}
				p.until(from, m.words, time.Minute)
				if took := p.signal(s, 20*time.Second); took > 5*time.Second {
					t.Errorf("it took %v to end", took)
				}
				why := "aborted"
				switch {
				case m.name != "end":
					p.says(130)
				case p.code != 0: // it may have ended by itself
					p.says(130)
					fallthrough
				default:
					why = "failover-one won"
				}
				b.nothingLeft()
				b.readable(dir, false)
				if w := b.run(30*time.Second, "why", dir); !strings.Contains(w.output.String(), why) {
					t.Errorf("why does not say %q:\n%s", why, w.output)
				}
			})
		}
	}
}

func TestOneFolderTakesOneHeat(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	first := b.simulated(dir)
	first.until(first.errors, "…", time.Minute) // the set-up: the log is still empty
	early := b.run(20*time.Second, "run", "primary-failover", "--machines", "sim", "--headless", "--output", dir)
	early.says(1, "a heat is being recorded in "+dir)
	first.until(first.output, "heat running", time.Minute)
	for _, more := range []string{"--headless", "--detach"} {
		late := b.run(20*time.Second, "run", "primary-failover", "--machines", "sim", "--output", dir, more)
		late.says(1, "a heat is being recorded in "+dir, "refbox watch "+dir)
		if late.output.String() != "" {
			t.Errorf("the refused one says something of the other's heat:\n%s", late.output)
		}
	}
	first.signal(syscall.SIGINT, 20*time.Second)
	first.says(130)
	after := b.run(20*time.Second, "run", "primary-failover", "--machines", "sim", "--headless", "--output", dir)
	after.says(1, "already holds a heat", "choose another folder")
	b.nothingLeft()
	b.readable(dir, false)
}

// TestTwoBeginAtOnce: none sees the other's folder before it has its own.
func TestTwoBeginAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	two := []*process{b.simulated(dir), b.simulated(dir)}
	var loser, winner *process
	select {
	case <-two[0].ended:
		loser, winner = two[0], two[1]
	case <-two[1].ended:
		loser, winner = two[1], two[0]
	case <-time.After(time.Minute):
		t.Fatal("both run")
	}
	loser.says(1, dir)
	if !strings.Contains(loser.errors.String(), "choose another folder") {
		t.Errorf("no remedy:\n%s", loser.errors)
	}
	winner.until(winner.output, "heat running", time.Minute)
	if _, err := control.Dial(b.desk()); err != nil {
		t.Errorf("the running heat's desk cannot be reached: %v", err)
	}
	winner.signal(syscall.SIGINT, 20*time.Second)
	winner.says(130)
	b.nothingLeft()
	b.readable(dir, false)
}

// desk is the socket of the box's one running heat.
func (b *box) desk() string {
	b.t.Helper()
	sockets, _ := filepath.Glob(filepath.Join(b.runtime, "refbox", "desk-*.sock"))
	if len(sockets) != 1 {
		b.t.Fatalf("%d desks, not 1", len(sockets))
	}
	return sockets[0]
}

// TestDetachedHeat is watched by two at once, one of whom was there before it,
// and ended over its desk.
func TestDetachedHeat(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("not", "yet", "heat")
	watchers := []*process{b.start("watch", dir, "--headless")}
	watchers[0].until(watchers[0].errors, "waiting for "+dir, 20*time.Second)
	run := b.run(20*time.Second, "run", "primary-failover", "--machines", "sim", "--detach", "--output", dir)
	run.says(0)
	for _, words := range []string{"heat    " + dir, "process ", "watch   refbox watch " + dir} {
		if !strings.Contains(run.output.String(), words) {
			t.Errorf("no %q in\n%s", words, run.output)
		}
	}
	watchers = append(watchers, b.start("watch", dir, "--headless"))
	for _, w := range watchers {
		w.until(w.output, "checking ", time.Minute) // the race is on
	}
	desk, err := control.Dial(b.desk())
	if err != nil {
		t.Fatal(err)
	}
	if err := desk.Note(t.Context(), "ann", "it \x1b[31mhums"); err != nil {
		t.Fatal(err)
	}
	console, err := desk.Attach(t.Context(), "bob", "failover-two", "host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := console.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	console.Close()
	if err := desk.End(t.Context(), "ann", "enough seen"); err != nil {
		t.Fatal(err)
	}
	for i, w := range watchers {
		w.wait(30 * time.Second)
		w.says(0)
		for _, words := range []string{"ann", "hums", "bob", "enough seen", "heat aborted"} {
			if !strings.Contains(w.output.String(), words) {
				t.Errorf("watcher %d does not see %q:\n%s", i, words, w.output)
			}
		}
		if strings.Contains(w.output.String(), "\x1b") {
			t.Errorf("watcher %d prints an escape", i)
		}
	}
	b.nothingLeft()
	b.readable(dir, false)
	rec := recorded(t, dir)
	notes, rulings := events[event.OperatorNote](t, rec), events[event.RefereeRuling](t, rec)
	if len(notes) != 1 || notes[0].Author != "ann" || len(rulings) != 1 || rulings[0].Author != "ann" || rulings[0].Reason != "enough seen" {
		t.Errorf("notes %+v, rulings %+v", notes, rulings)
	}
	if on, off := events[event.ConsoleAttached](t, rec), events[event.ConsoleDetached](t, rec); len(on) != 1 || on[0].Author != "bob" || len(off) != 1 || off[0].Bytes != 1 {
		t.Errorf("attached %+v, detached %+v", on, off)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "output.log")); err != nil || !strings.Contains(string(log), "ended by ann: enough seen") {
		t.Errorf("the log of the heat in the background: %v\n%s", err, log)
	}
}

// TestArenaAsItStands races a manifest from elsewhere, whose players cannot be
// started here: who plays instead is said of each seat.
func TestArenaAsItStands(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("heat")
	p := b.start("run", sharedFile(t, "seeds", "arena.json"), "--machines", "sim", "--headless", "--output", dir)
	p.until(p.output, "heat running", time.Minute)
	p.signal(syscall.SIGINT, 20*time.Second)
	p.says(130)
	b.nothingLeft()
	b.readable(dir, false)
	var match struct {
		Seats []struct{ Territory, Agent, Adapter, Note string }
	}
	data, err := os.ReadFile(filepath.Join(dir, "match.json"))
	if err == nil {
		err = json.Unmarshal(data, &match)
	}
	if err != nil || len(match.Seats) != 3 {
		t.Fatalf("%v, %+v", err, match)
	}
	said := p.errors.String() + p.output.String()
	for _, s := range match.Seats {
		if !strings.HasPrefix(s.Adapter, "script:") || !strings.Contains(s.Note, "script") {
			t.Errorf("match.json does not say who plays: %+v", s)
		}
		if !strings.Contains(said, s.Note) {
			t.Errorf("nobody is told that %q of %s", s.Note, s.Territory)
		}
	}
}

// sharedFile is test data beside the repository, or where REFBOX_DATA points.
func sharedFile(t *testing.T, elem ...string) string {
	t.Helper()
	dir := os.Getenv("REFBOX_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	full, err := filepath.Abs(filepath.Join(append([]string{dir}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no test data at %s (set REFBOX_DATA to the folder that holds it)", full)
	}
	return full
}

// smallDisk mounts a file system of that size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	vmtest.SmallDisk(t, dir, size)
	return dir
}

func TestFullDisk(t *testing.T) {
	t.Run("recording", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		dir := filepath.Join(smallDisk(t, "160k"), "heat")
		p := b.simulated(dir)
		p.wait(time.Minute)
		p.says(3, "disk full: ", dir, "free some space")
		b.nothingLeft()
		b.readable(dir, true)
	})
	t.Run("no room for a recording", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		disk := smallDisk(t, "64k")
		if err := os.WriteFile(filepath.Join(disk, "full"), make([]byte, 60<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		p := b.simulated(filepath.Join(disk, "heat"))
		p.wait(time.Minute)
		p.says(3, "disk full: ", "free some space")
		b.nothingLeft()
	})
	t.Run("image", func(t *testing.T) {
		b := realBox(t)
		b.env["XDG_CACHE_HOME"] = smallDisk(t, "8m")
		p := b.run(time.Minute, "run", "primary-failover", "--headless", "--output", b.path("heat"))
		p.says(3, "no space left", "XDG_CACHE_HOME")
		b.nothingLeft()
	})
	t.Run("disks", func(t *testing.T) {
		b := realBox(t)
		heats := filepath.Join(b.env["XDG_CACHE_HOME"], "refbox", "heats")
		if err := os.Mkdir(heats, 0o700); err != nil {
			t.Fatal(err)
		}
		vmtest.SmallDisk(t, heats, "64k")
		p := b.run(8*time.Minute, "run", "primary-failover", "--headless", "--output", b.path("heat"))
		p.says(3, "no space left", heats, "XDG_CACHE_HOME")
		b.nothingLeft()
		b.readable(b.path("heat"), false)
	})
	t.Run("prepared state", func(t *testing.T) {
		b := realBox(t)
		b.unprepared(smallDisk(t, "300m"))
		p := b.run(time.Minute, "run", "primary-failover", "--headless", "--output", b.path("heat"))
		p.says(3, "no space left", "XDG_CACHE_HOME")
		b.nothingLeft()
		b.readable(b.path("heat"), false)
	})
}
