package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"refbox/engine/season"
)

// TestMain runs a week and dies where it is told to, when it is the child of a
// test that kills.
func TestMain(m *testing.M) {
	dir := os.Getenv("REFBOX_TEST_WEEK")
	if dir == "" {
		goleak.VerifyTestMain(m) // and what the tests start has ended when they have
	}
	at, _ := strconv.Atoi(os.Getenv("REFBOX_TEST_KILL"))
	takes, _ := time.ParseDuration(os.Getenv("REFBOX_TEST_TAKES"))
	parallel, _ := strconv.Atoi(os.Getenv("REFBOX_TEST_PARALLEL"))
	if at > 0 {
		n := 0
		moment = func() {
			if n++; n == at {
				syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // it does not return
			}
		}
	}
	var heats Heats = &table{takes: takes}
	if runtime := os.Getenv("REFBOX_TEST_RUNTIME"); runtime != "" {
		heats = simulated(runtime)
	}
	_, err := Run(context.Background(), Config{Dir: dir, Heats: heats, Parallel: parallel})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child runs a week in a process of its own.
func child(t *testing.T, dir string, killAt int, takes time.Duration, parallel int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "REFBOX_TEST_WEEK="+dir, fmt.Sprint("REFBOX_TEST_KILL=", killAt), "REFBOX_TEST_TAKES="+takes.String(), fmt.Sprint("REFBOX_TEST_PARALLEL=", parallel))
	return c
}

var aside = regexp.MustCompile(`\.interrupted-\d+(/|$)`)

// files are a week's documents and journals, with which attempts are there;
// what was interrupted and the lock are left out.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || aside.MatchString(rel) || rel == lockFile {
			return err
		}
		out[rel] = ""
		if filepath.Base(rel) == "result" { // the attempt's own seed counts its runs
			return nil
		}
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			out[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// audited holds what a run wrote against every check.
func audited(t *testing.T, dir string, heats Heats) *season.Audit {
	t.Helper()
	docs, err := season.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	journals, err := Journals(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := docs.Check(season.Sources{Journals: journals, Attempt: func(output string) (season.Attempt, error) {
		got, over, err := heats.Result(filepath.Join(dir, output))
		if err == nil && !over {
			err = fs.ErrNotExist
		}
		return got, err
	}, Key: func(x season.Arena) (string, map[string]string, error) { return heats.Key(x, docs.Draw.Rules) }})
	for _, c := range a.Checks {
		if c.Verdict == season.Broken {
			t.Errorf("audit of what was run: %s %s: %s: want %s, got %s", c.Code, c.Where, c.Text, c.Want, c.Got)
		}
	}
	return a
}

func TestAKillAtEveryMoment(t *testing.T) {
	t.Parallel()
	undisturbed := t.TempDir()
	if _, err := drawWeek(undisturbed, 7, "2026-W40"); err != nil {
		t.Fatal(err)
	}
	if err := child(t, undisturbed, 0, 0, 1).Run(); err != nil {
		t.Fatal(err)
	}
	want := files(t, undisturbed)
	audited(t, undisturbed, &table{})
	killed := 0
	for at := 1; ; at++ {
		dir := t.TempDir()
		if _, err := drawWeek(dir, 7, "2026-W40"); err != nil {
			t.Fatal(err)
		}
		if err := child(t, dir, at, 0, 1).Run(); err == nil {
			break // there is no such moment any more
		} else if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("moment %d: %v", at, err)
		}
		killed++
		if err := child(t, dir, 0, 0, 1).Run(); err != nil {
			t.Fatalf("resume after a kill at moment %d: %v", at, err)
		}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Fatalf("killed at moment %d, the week differs (-undisturbed +resumed):\n%s", at, diff)
		}
	}
	if killed < 40 {
		t.Errorf("only %d moments: the test no longer kills", killed)
	}
	t.Logf("killed at %d moments", killed)
}

// TestKilledTwentyTimes kills a week of 64 at random points.
func TestKilledTwentyTimes(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("REFBOX_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("REFBOX_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	undisturbed, dir := t.TempDir(), t.TempDir()
	for _, d := range []string{undisturbed, dir} {
		if _, err := drawWeek(d, 64, "2026-W41"); err != nil {
			t.Fatal(err)
		}
	}
	if err := child(t, undisturbed, 0, time.Millisecond, 1).Run(); err != nil {
		t.Fatal(err)
	}
	for kills := range 20 {
		c := child(t, dir, 1+r.IntN(45), time.Millisecond, 1+r.IntN(4))
		err := c.Run()
		if err == nil {
			t.Fatalf("the week was over after %d kills", kills)
		}
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("after %d kills: %v", kills, err)
		}
	}
	if err := child(t, dir, 0, time.Millisecond, 1).Run(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files(t, undisturbed), files(t, dir)); diff != "" {
		t.Fatalf("(-undisturbed +killed)\n%s", diff)
	}
	audited(t, dir, &table{})
}

func TestHeatsOfARoundRunSideBySide(t *testing.T) {
	t.Parallel()
	one, four := t.TempDir(), t.TempDir()
	for _, d := range []string{one, four} {
		if _, err := drawWeek(d, 27, "2026-W42"); err != nil {
			t.Fatal(err)
		}
	}
	alone, beside := &table{}, &table{takes: 10 * time.Millisecond}
	if _, err := Run(t.Context(), Config{Dir: one, Heats: alone}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Config{Dir: four, Heats: beside, Parallel: 4}); err != nil {
		t.Fatal(err)
	}
	if alone.most != 1 || beside.most < 2 || beside.most > 4 {
		t.Errorf("%d and %d ran at the same time", alone.most, beside.most)
	}
	if diff := cmp.Diff(files(t, one), files(t, four)); diff != "" {
		t.Errorf("(-one +four)\n%s", diff)
	}
}

func TestAChangedArenaIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := drawWeek(dir, 6, "2026-W43"); err != nil {
		t.Fatal(err)
	}
	tb := &table{keys: map[string]string{"y": "another"}}
	_, err := Run(t.Context(), Config{Dir: dir, Heats: tb})
	c, ok := errors.AsType[*Changed](err)
	if !ok || c.Arena != "y" || !strings.Contains(err.Error(), "verifiers v1 → another") || tb.ran > 0 {
		t.Errorf("%v, %d heats were run", err, tb.ran)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := drawWeek(dir, 6, "2026-W44")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, secretFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v %v", st.Mode(), err)
	}
	if err := Create(dir, d, season.NewSecret()); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second draw: %v", err)
	}
	run := func() error {
		_, err := Run(t.Context(), Config{Dir: dir, Heats: &table{}})
		return err
	}
	says := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	secret := filepath.Join(dir, secretFile)
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	says("chmod 600", run())
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, ErrBusy) {
		t.Errorf("two at once: %v", err)
	}
	held.close()
	if err := os.WriteFile(secret, []byte(season.NewSecret()), 0o600); err != nil {
		t.Fatal(err)
	}
	says("not the secret", run())
	draw := filepath.Join(dir, drawFile)
	data, err := os.ReadFile(draw)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(draw, []byte(strings.Replace(string(data), `"heats": 2`, `"heats": 3`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	says("is broken", run())
}

// TestSeasonProperties: whatever comes out of the heats, who plays is seated once
// a round, an audit of what was written holds, and the champion won the final.
func TestSeasonProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "week")
		if err != nil {
			rt.Fatal(err)
		}
		n := rapid.IntRange(3, 30).Draw(rt, "entrants")
		set := rapid.SampledFrom([]*season.RuleSet{nil, &season.Refbox, &season.Reference}).Draw(rt, "rules")
		d, err := drawBy(set, dir, n, fmt.Sprint("2026-W40-", rapid.IntRange(0, 1_000_000).Draw(rt, "label")))
		if err != nil {
			rt.Fatal(err)
		}
		w, err := Run(t.Context(), Config{Dir: dir, Heats: &table{}, Parallel: 3})
		if err != nil && !strings.Contains(err.Error(), "too many forfeited") {
			rt.Fatal(err)
		}
		for i, r := range w.Rounds {
			seen := map[string]int{}
			for _, h := range r.Heats {
				for _, id := range h.Seats {
					seen[id]++
				}
			}
			for _, id := range r.Byes {
				seen[id]++
			}
			if len(seen) != d.Shape[i].Field {
				rt.Fatalf("round %d seats %d of %d", r.Round, len(seen), d.Shape[i].Field)
			}
			for id, times := range seen {
				if times != 1 {
					rt.Fatalf("round %d seats %s %d times", r.Round, id, times)
				}
			}
			if i > 0 && len(r.Byes) > 0 {
				rt.Fatalf("round %d has byes", r.Round)
			}
		}
		a := audited(t, dir, &table{})
		if w.Completed && a.Count(season.Holds) < 10 {
			rt.Fatalf("hardly anything was checked: %+v", a.Checks)
		}
		if t.Failed() {
			rt.Fatalf("the audit does not hold")
		}
	})
}
