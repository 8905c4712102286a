package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// raceTime is how long a heat of three real machines may take, set-up and a
// prepared state that is missing included.
const raceTime = 8 * time.Minute

// TestRealHeats races primary-failover on real machines as often as REFBOX_HEATS
// says, once if unset: the right one wins, and nothing is left.
func TestRealHeats(t *testing.T) {
	b := realBox(t)
	for i := range times(t, "REFBOX_HEATS", 1) {
		dir := b.path("heat-" + strconv.Itoa(i))
		p := b.start("run", "primary-failover", "--headless", "--output", dir)
		p.until(p.output, "heat running", raceTime)
		// What is looked for afterwards is found now.
		if n := len(b.machines()); n != 3 {
			t.Errorf("%d machines run, not 3", n)
		}
		ports := b.listening()
		if len(ports) < 9 { // each machine's SSH and service, each seat's gateway
			t.Errorf("%d ports are listened on", len(ports))
		}
		if n := len(filesBelow(filepath.Join(b.runtime, "refbox"))); n == 0 {
			t.Error("the runtime folder is empty during a heat")
		}
		disks := slices.DeleteFunc(b.ofHeats(), func(name string) bool { return filepath.Ext(name) != ".qcow2" })
		if len(disks) != 3 || strings.HasPrefix(disks[0], b.runtime) {
			t.Errorf("the disks are %v", disks)
		}
		p.wait(raceTime)
		if p.code != 0 || !strings.Contains(p.output.String(), "1. failover-one won with 100 of 100 points") {
			t.Fatalf("heat %d exits with %d\n%s%s", i, p.code, p.output, p.errors)
		}
		b.nothingLeft()
		for inode := range listeners() {
			if ports[inode] {
				t.Error("a port is still listened on")
			}
		}
		b.readable(dir, false)
		t.Logf("heat %d took %v", i, p.took.Round(100*time.Millisecond))
	}
}

// moment is a stage of a heat, and how to get there.
type moment struct {
	name   string
	args   []string
	fresh  bool // without a prepared state
	stderr bool // where the words are said
	words  string
	within time.Duration // of the words
}

var moments = []moment{
	{name: "preparing", fresh: true, stderr: true, words: "booting", within: 20 * time.Second},
	{name: "booting", args: []string{"--cold"}, stderr: true, words: "starting", within: 8 * time.Second},
	{name: "racing", words: "heat running", within: 30 * time.Second},
	{name: "resuming", stderr: true, words: "starting", within: 3 * time.Second},
	{name: "ending", words: "heat finished", within: 500 * time.Millisecond},
}

// reach starts a heat and waits for the moment, plus a part of its time.
func (b *box) reach(m moment, dir string, part float64) *process {
	b.t.Helper()
	if m.fresh {
		b.unprepared(b.path("unprepared"))
	}
	p := b.start(append([]string{"run", "primary-failover", "--headless", "--output", dir}, m.args...)...)
	from := p.output
	if m.stderr {
		from = p.errors
	}
	p.until(from, m.words, raceTime)
	select {
	case <-time.After(time.Duration(part * float64(m.within))):
	case <-p.ended:
	}
	return p
}

// TestRealKills kills refbox at random moments, as many as REFBOX_KILLS says,
// three if unset: no machine survives, what was recorded opens and says where it
// stopped, and the next start removes what was left.
func TestRealKills(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv("REFBOX_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("REFBOX_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	n := times(t, "REFBOX_KILLS", 3)
	if n == 0 {
		t.Skip("REFBOX_KILLS is 0")
	}
	for i := range n {
		m := moments[i%len(moments)]
		part := random.Float64()
		t.Run(m.name, func(t *testing.T) {
			b := realBox(t)
			dir := b.path("heat")
			p := b.reach(m, dir, part)
			if m.name != "ending" && len(b.machines()) == 0 {
				t.Error("no machine runs that could survive")
			}
			p.signal(syscall.SIGKILL, 5*time.Second)
			b.gone(2 * time.Second)
			t.Logf("killed %v after the start, at %.2f of %q", p.took.Round(100*time.Millisecond), part, m.words)
			if _, err := os.Stat(dir); err == nil {
				b.readable(dir, !strings.Contains(p.output.String(), "replay "))
			} else if m.name != "preparing" {
				t.Error("nothing was recorded")
			}

			left := b.ofHeats()
			next := b.start("run", "primary-failover", "--machines", "sim", "--headless", "--output", b.path("next"))
			next.until(next.output, "heat running", time.Minute)
			for _, name := range b.ofHeats() {
				if slices.Contains(left, name) {
					t.Errorf("%s is left", name)
				}
			}
			next.signal(syscall.SIGINT, 10*time.Second)
			next.says(130)
			for _, name := range b.ofHeats() {
				t.Errorf("%s is left", name)
			}
		})
	}
}

// TestRealInterrupts presses Ctrl-C at each stage of a real heat but the last
// (which is the simulated machines' test, being over in no time).
func TestRealInterrupts(t *testing.T) {
	for _, m := range moments {
		if m.name == "ending" || m.name == "resuming" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			b := realBox(t)
			dir := b.path("heat")
			p := b.reach(m, dir, 0.15)
			if len(b.machines()) == 0 {
				t.Error("no machine runs that could be left")
			}
			took := p.signal(syscall.SIGINT, 20*time.Second)
			p.says(130)
			if took > 5*time.Second {
				t.Errorf("it took %v to end", took)
			}
			t.Logf("ended within %v", took.Round(time.Millisecond))
			b.nothingLeft()
			b.readable(dir, false)
			if why := b.run(30*time.Second, "why", dir); !strings.Contains(why.output.String(), "aborted") {
				t.Errorf("why does not say that it was aborted:\n%s", why.output)
			}
		})
	}
}

// TestImageBuildEnds interrupts and kills the build of an image: nothing
// half-made and no process is left.
func TestImageBuildEnds(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			b := realBox(t)
			b.env["XDG_CACHE_HOME"] = b.path("empty")
			p := b.start("run", "primary-failover", "--headless", "--output", b.path("heat"))
			ended := p.ended
			p.until(p.errors, "package", time.Minute)
			select {
			case <-time.After(3 * time.Second):
			case <-ended:
				t.Skipf("the image cannot be built here: %s", p.errors)
			}
			if len(b.processes()) < 2 {
				t.Error("no process runs that could be left")
			}
			took := p.signal(s, 20*time.Second)
			t.Logf("ended within %v", took.Round(time.Millisecond))
			if _, err := os.Stat(b.path("heat")); err == nil {
				t.Error("a heat was begun")
			}
			if s == syscall.SIGINT {
				p.says(130)
				if took > 5*time.Second {
					t.Errorf("it took %v to end", took)
				}
				b.nothingLeft()
				return
			}
			b.gone(5 * time.Second) // what it started is asked to end, then made to
		})
	}
}
