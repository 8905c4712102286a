//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A chaos is one thing that goes wrong during a heat. do lets it happen at a moment
// of its own choosing and waits for refbox's end.
type chaos struct {
	name string
	root bool // it mounts
	do   func(*round)
}

var chaoses = []chaos{
	{name: "kill refbox", do: (*round).killRefbox},
	{name: "interrupt refbox", do: (*round).interruptRefbox},
	{name: "kill a player", do: (*round).killPlayer},
	{name: "full disk", root: true, do: (*round).fullDisk},
	{name: "read-only folder", root: true, do: (*round).readOnly},
	{name: "few descriptors", do: (*round).fewDescriptors},
	{name: "readers", do: (*round).readers},
	{name: "two on one folder", do: (*round).twoOnOneFolder},
	{name: "jumping clock", do: (*round).jumpingClock},
}

var realChaoses = append([]chaos{{name: "kill a machine", do: (*round).killMachine}}, chaoses...)

// round is a heat with a chaos in it.
type round struct {
	*box
	real   bool
	random *rand.Rand
	dir    string // of the recording
	heat   *process
}

// TestSoak does what goes wrong on purpose to the program as it is shipped, on
// simulated machines: as many rounds as REFBOX_SOAK says, 20 if unset. After each, the
// recording opens, verifies and holds every line that was printed; nothing is left;
// the exit code is what it must be. A round that failed says its seed; with
// REFBOX_SOAK=1 REFBOX_SEED=SEED it is run alone.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole heats: skipped under -short")
	}
	soak(t, times(t, "REFBOX_SOAK", 20), 4, newBox, chaoses)
}

// TestRealSoak is the same on real machines, one round after the other: as many as
// REFBOX_REAL_SOAK says, none if unset.
func TestRealSoak(t *testing.T) {
	n := times(t, "REFBOX_REAL_SOAK", 0)
	if n == 0 {
		t.Skip("REFBOX_REAL_SOAK is unset or 0")
	}
	soak(t, n, 1, realBox, realChaoses)
}

func soak(t *testing.T, rounds, atOnce int, box func(testing.TB) *box, kinds []chaos) {
	base := rand.Uint64() >> 16
	if v := os.Getenv("REFBOX_SEED"); v != "" {
		var err error
		if base, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("REFBOX_SEED is %q; it is a number", v)
		}
	}
	t.Logf("REFBOX_SEED=%d, %d rounds", base, rounds)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	defer wg.Wait()
	t.Run("rounds", func(t *testing.T) {
		for i := range uint64(rounds) {
			seed := base + i
			kind := kinds[seed%uint64(len(kinds))]
			t.Run(fmt.Sprintf("%d %s", seed, kind.name), func(t *testing.T) {
				if kind.root && os.Geteuid() != 0 {
					t.Skip("only root may mount")
				}
				if atOnce > 1 {
					t.Parallel()
				}
				slots <- struct{}{}
				defer func() { <-slots }()
				r := &round{box: box(t), real: atOnce == 1, random: rand.New(rand.NewPCG(seed, 0))}
				r.dir = r.path("heat")
				kind.do(r)
				if t.Failed() {
					t.Logf("again: REFBOX_SEED=%d, one round\n%s%s", seed, r.heat.output, r.heat.errors)
				}
			})
		}
	})
}

// start starts the heat, on what is left of the command line.
func (r *round) begin(more ...string) {
	r.t.Helper()
	args := []string{"run", "primary-failover", "--headless", "--output", r.dir}
	if !r.real {
		args = append(args, "--machines", "sim")
	}
	r.heat = r.start(append(args, more...)...)
}

// raceWith runs the whole heat with another program in refbox's place.
func (r *round) raceWith(program string) {
	r.t.Helper()
	whole := r.program
	r.program = program
	r.begin()
	r.program = whole
	r.heat.wait(raceTime)
}

// sometime waits for a moment of the heat: any, from before its first line on; the
// words say from when.
func (r *round) sometime(words string) {
	r.t.Helper()
	if words != "" {
		r.heat.until(r.heat.output, words, raceTime)
	}
	most := 9 * time.Second
	if r.real {
		most = 40 * time.Second
	}
	select {
	case <-time.After(time.Duration(r.random.Float64() * float64(most))):
	case <-r.heat.ended:
	}
}

// holds checks what must hold after every round.
func (r *round) holds(codes ...int) {
	r.t.Helper()
	if !slices.Contains(codes, r.heat.code) {
		r.t.Errorf("refbox exits with %d, not one of %d", r.heat.code, codes)
	}
	for _, words := range []string{"panic:", "goroutine 1 [", "fatal error:"} {
		if strings.Contains(r.heat.errors.String(), words) {
			r.t.Errorf("refbox says %q", words)
		}
	}
	if r.heat.code == -1 { // killed: the next start removes what it left
		r.gone(5 * time.Second)
		next := r.start("run", "primary-failover", "--machines", "sim", "--headless", "--output", r.path("next"))
		next.until(next.output, "heat running", 2*time.Minute)
		next.signal(syscall.SIGINT, 20*time.Second)
		next.says(130)
	}
	r.nothingLeft()
	if _, err := os.Stat(filepath.Join(r.dir, "events.jsonl")); err != nil {
		if strings.Contains(r.heat.output.String(), "heat running") {
			r.t.Error("a heat ran, and there is no log")
		}
		return
	}
	r.readable(r.dir, false)
	r.nothingLost()
}

// nothingLost checks that what refbox printed is what is recorded. A line that folds
// repeats may be printed of fewer than there are at last.
func (r *round) nothingLost() {
	r.t.Helper()
	again := r.run(time.Minute, "replay", r.dir, "--headless")
	kept := strings.Split(again.output.String(), "\n")
	lines := bufio.NewScanner(strings.NewReader(r.heat.output.String()))
	for lines.Scan() {
		line := lines.Text()
		if len(line) < 8 || line[2] != ':' || line[5] != '.' { // no event's: what follows the heat
			continue
		}
		i := slices.Index(kept, line)
		if i < 0 {
			r.t.Errorf("this was printed, and is not recorded: %s", line)
			return
		}
		kept = kept[i+1:]
	}
}

func (r *round) killRefbox() {
	r.begin()
	r.sometime("")
	r.heat.signal(syscall.SIGKILL, 10*time.Second)
	r.holds(-1, exitDone)
}

func (r *round) interruptRefbox() {
	r.begin()
	r.sometime("")
	how := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[r.random.IntN(3)]
	if took := r.heat.signal(how, 30*time.Second); took > 10*time.Second {
		r.t.Errorf("it took %v to end", took)
	}
	r.holds(exitInterrupted, exitDone)
}

// killPlayer kills a program that plays: that is the player's end, not the heat's.
func (r *round) killPlayer() {
	fleet := "schema_version = 1\n[[players]]\nid = \"right\"\nterritory = \"failover-one\"\nadapter = \"script\"\nscript = \"right\"\n" +
		"[[players]]\nid = \"victim\"\nterritory = \"failover-two\"\nadapter = \"command\"\ncommand = [\"./victim\"]\n" +
		"[[players]]\nid = \"hasty\"\nterritory = \"failover-three\"\nadapter = \"script\"\nscript = \"hasty\"\n"
	for name, text := range map[string]string{"fleet.toml": fleet, "victim": "#!/bin/sh\necho $$ >" + r.path("pid") + "\nwhile :; do sleep 0.1; done\n"} {
		if err := os.WriteFile(r.path(name), []byte(text), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	r.begin("--fleet", r.path("fleet.toml"))
	r.heat.until(r.heat.output, "heat running", raceTime)
	r.sometime("")
	if data, err := os.ReadFile(r.path("pid")); err == nil {
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || pid < 2 {
			r.t.Fatalf("the player's process is %q", data)
		}
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
	r.heat.wait(raceTime)
	r.holds(exitDone)
	if !strings.Contains(r.heat.output.String(), "1. failover-one won") {
		r.t.Error("the seat beside it did not win")
	}
}

// killMachine kills a machine's process: the seat is the controller's loss.
func (r *round) killMachine() {
	r.begin()
	r.heat.until(r.heat.output, "heat running", raceTime)
	r.sometime("")
	if all := r.machines(); len(all) > 0 {
		syscall.Kill(all[r.random.IntN(len(all))], syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
	r.heat.wait(raceTime)
	r.holds(exitDone, exitBroken) // two seats may be left, or the winner's may be gone
}

// mounted mounts a file system for the recording.
func (r *round) mounted(options string) string {
	r.t.Helper()
	at := r.path("small")
	if err := os.Mkdir(at, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, options); err != nil {
		r.t.Skipf("no file system can be mounted here: %v", err)
	}
	r.t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			r.t.Error(err)
		}
	})
	return at
}

func (r *round) fullDisk() {
	r.dir = filepath.Join(r.mounted(fmt.Sprintf("size=%dk", 16+r.random.IntN(600))), "heat")
	r.begin()
	r.heat.wait(raceTime)
	if r.heat.code != exitDone && !strings.Contains(r.heat.errors.String(), "no space left on device") {
		r.t.Errorf("the disk is not named as full:\n%s", r.heat.errors)
	}
	r.holds(exitEnvironment, exitDone)
}

// readOnly has the recording go where nothing may be written.
func (r *round) readOnly() {
	at := r.mounted("size=1m")
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		r.t.Fatal(err)
	}
	r.dir = filepath.Join(at, "heat")
	r.begin()
	r.heat.wait(raceTime)
	if !strings.Contains(r.heat.errors.String(), "read-only file system") || !strings.Contains(r.heat.errors.String(), at) {
		r.t.Errorf("the folder is not named as read-only:\n%s", r.heat.errors)
	}
	r.holds(exitBroken, exitEnvironment)
}

// fewDescriptors starts refbox with few file descriptors: it says so, or does.
func (r *round) fewDescriptors() {
	few := 12 + r.random.IntN(120)
	program := r.path("few")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", few, r.program)
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
	r.raceWith(program)
	if r.heat.code != exitDone && !strings.Contains(r.heat.errors.String()+r.heat.output.String(), "too many open files") {
		r.t.Errorf("with %d descriptors refbox exits with %d and does not say why", few, r.heat.code)
	}
	r.holds(exitDone, exitBroken, exitEnvironment)
}

// readers read the folder while it is being written, each to its end.
func (r *round) readers() {
	r.begin()
	r.heat.until(r.heat.output, "heat running", raceTime)
	for range 3 {
		r.sometime("")
		for _, args := range [][]string{{"why", r.dir}, {"replay", r.dir, "--headless"}, {"verify", r.dir}, {"ls", r.root}} {
			if p := r.run(time.Minute, args...); p.code != 0 {
				r.t.Errorf("refbox %v exits with %d while the heat is written\n%s%s", args, p.code, p.output, p.errors)
			}
		}
	}
	r.heat.wait(raceTime)
	r.holds(exitDone)
}

func (r *round) twoOnOneFolder() {
	r.begin()
	r.sometime("")
	first := r.heat
	r.begin()
	second := r.heat
	r.heat = first
	second.wait(time.Minute)
	second.says(exitBroken, "choose another folder")
	first.wait(raceTime)
	r.holds(exitDone)
}
