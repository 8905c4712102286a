package runbook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"refbox/engine/agent"
	"refbox/engine/recording"
	"refbox/recordings"
)

// heat is the bundled recording.
func heat(t *testing.T) *recording.Recording {
	t.Helper()
	tree, err := fs.Sub(recordings.Heats(), ".")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.OpenFS(tree, "primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rec
}

// The winner's actions are cut into statements; what reads alone changes nothing, and
// nothing that happened after the seat was durable is a step.
func TestDistil(t *testing.T) {
	src, err := Distil(heat(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if src.Seat != "failover-one" || src.Agent != "right" || len(src.LogHead) != 64 {
		t.Errorf("the source is %s, played by %s, log head %q", src.Seat, src.Agent, src.LogHead)
	}
	var changes, reads []string
	for _, s := range src.Steps {
		if s.Changes {
			changes = append(changes, s.Text)
		} else {
			reads = append(reads, s.Text)
		}
	}
	for _, want := range []string{"systemctl mask failover-primary.service", `printf 'primary\n' >/var/lib/failover/replica.role`, `printf '8082\n' >/var/lib/failover/upstream`} {
		if !slices.Contains(changes, want) {
			t.Errorf("%q is not among what changed something: %q", want, changes)
		}
	}
	if !slices.Contains(reads, "ls -l /var/lib/failover") {
		t.Errorf("a listing is not among what reads: %q", reads)
	}
	for _, a := range src.Actions {
		if a.AtMS > src.DurableMS {
			t.Errorf("action %d began at %d, after the seat was durable at %d", a.Number, a.AtMS, src.DurableMS)
		}
	}
	if _, err := Distil(heat(t), "failover-two"); err == nil || !strings.Contains(err.Error(), "did not become durable") {
		t.Errorf("a seat that lost gives %v", err)
	}
	if _, err := Distil(heat(t), "nobody"); err == nil || !strings.Contains(err.Error(), "failover-one, ") {
		t.Errorf("a seat that is not there gives %v", err)
	}
}

// Every command is cut where it can be, and put together again is what it was.
func TestStatements(t *testing.T) {
	for command, want := range map[string][]string{
		"a; b":                          {"a; ", "b"},
		"a && b || c":                   {"a && b || c"},
		"a\n# why\nb & c":               {"a\n# why\n", "b & ", "c"},
		"for i in 1 2; do a; done; b":   {"for i in 1 2; do a; done; ", "b"},
		"cat >f <<X\na; b\nX\nc":        {"cat >f <<X\na; b\nX\nc"},
		"echo 'not closed":              {"echo 'not closed"},
		"f() { a; }; f":                 {"f() { a; }; ", "f"},
		"printf 'é; x' >f; systemctl b": {"printf 'é; x' >f; ", "systemctl b"},
		"":                              {""},
	} {
		var got []string
		from := 0
		for _, end := range statements(command) {
			got = append(got, command[from:end])
			from = end
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q is cut into %q, not %q", command, got, want)
		}
	}
}

// A script of the steps is one that a player may have: its blocks are the actions,
// and comments of the player's are no directives.
func TestScript(t *testing.T) {
	src := Source{Actions: []Action{{Number: 1, AtMS: 500, TookMS: 100, pause: 500}, {Number: 2, AtMS: 2600, TookMS: 10, pause: 2000}, {Number: 3, AtMS: 3000, pause: 390}}}
	steps := []Step{{Action: 1, Text: "# must be careful\nfirst", Machine: "host"}, {Action: 3, Text: "second"}, {Action: 3, Statement: 1, Text: "third"}}
	data := src.Script("x", steps, true)
	s, err := agent.ParseScript("x.sh", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if len(s.Blocks) != 2 || s.Blocks[0].Must || s.Blocks[0].Machine != "host" || !strings.Contains(s.Blocks[1].Text, "second\nthird") {
		t.Errorf("the script is %+v\n%s", s.Blocks, data)
	}
	if got := s.Blocks[1].Pause.Milliseconds(); got != 2000+10+390 {
		t.Errorf("the second block waits %d ms: what was left out took time too", got)
	}
	if s, err := agent.ParseScript("x.sh", src.Script("x", nil, false)); err != nil || len(s.Blocks) != 1 {
		t.Errorf("no steps make %+v, %v", s, err)
	}
}

// oracle wins where the steps hold one of the ways to win.
func oracle(ways [][]uint64, runs *int) Runner {
	return func(_ context.Context, choices [][]Step, _ bool) ([]Try, error) {
		var out []Try
		for _, c := range choices {
			*runs++
			won := slices.ContainsFunc(ways, func(way []uint64) bool {
				return !slices.ContainsFunc(way, func(n uint64) bool {
					return !slices.ContainsFunc(c, func(s Step) bool { return s.Action == n })
				})
			})
			out = append(out, Try{Won: won, Lost: "m", Why: "no", Dir: fmt.Sprint(*runs)})
		}
		return out, nil
	}
}

// Whatever is needed, and however many ways lead to it: what is left wins, and
// without any one of its steps it loses.
func TestMinimise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "steps")
		src := Source{Agent: "a"}
		for i := range n {
			src.Steps = append(src.Steps, Step{Action: uint64(i + 1), Changes: rapid.Bool().Draw(t, "changes")})
			src.Actions = append(src.Actions, Action{Number: uint64(i + 1)})
		}
		way := rapid.SliceOfNDistinct(rapid.Uint64Range(1, uint64(n)), 1, n, rapid.ID[uint64])
		ways := rapid.SliceOfN(way, 1, 3).Draw(t, "ways")
		runs := 0
		again := rapid.IntRange(0, 4).Draw(t, "again")
		rb, err := Minimise(t.Context(), src, rapid.IntRange(1, 4).Draw(t, "width"), again, oracle(ways, &runs), nil)
		if err != nil {
			t.Fatal(err)
		}
		var left []Step
		for _, s := range rb.Steps {
			left = append(left, s.Step)
			if s.Without == nil {
				t.Fatalf("nobody left out %v", s.Step)
			}
		}
		if len(left)+len(rb.Dropped) != n || !rb.Minimal || rb.Won != again || rb.Runs+again != runs {
			t.Fatalf("%d left, %d dropped of %d; %+v; %d runs", len(left), len(rb.Dropped), n, rb, runs)
		}
		wins := func(steps []Step) bool {
			tries, _ := oracle(ways, new(int))(t.Context(), [][]Step{steps}, false)
			return tries[0].Won
		}
		if !wins(left) {
			t.Fatalf("what is left does not win: %v", left)
		}
		for i := range left {
			if wins(slices.Concat(left[:i], left[i+1:])) {
				t.Fatalf("%v can be spared of %v", left[i], left)
			}
		}
	})
}

// A seat that was not there says nothing, and is tried again; one that never is ends
// the search.
func TestVoidedRuns(t *testing.T) {
	src := Source{Agent: "a", Actions: []Action{{Number: 1}, {Number: 2}}, Steps: []Step{{Action: 1, Changes: true}, {Action: 2, Changes: true}}}
	calls := 0
	flaky := func(ctx context.Context, choices [][]Step, paced bool) ([]Try, error) {
		calls++
		if calls%2 == 1 {
			return slices.Repeat([]Try{{Voided: "no machine"}}, len(choices)), nil
		}
		return oracle([][]uint64{{2}}, new(int))(ctx, choices, paced)
	}
	rb, err := Minimise(t.Context(), src, 2, 1, flaky, nil)
	if err != nil || len(rb.Steps) != 1 || rb.Steps[0].Action != 2 || rb.Won != 1 {
		t.Errorf("%+v, %v", rb, err)
	}
	never := func(_ context.Context, choices [][]Step, _ bool) ([]Try, error) {
		return slices.Repeat([]Try{{Voided: "no machine"}}, len(choices)), nil
	}
	if _, err := Minimise(t.Context(), src, 2, 1, never, nil); err == nil || !strings.Contains(err.Error(), "no machine") {
		t.Errorf("no machine at all gives %v", err)
	}
}

// A fault that repairs itself has no runbook.
func TestRepairsItself(t *testing.T) {
	src := Source{Agent: "a", Actions: []Action{{Number: 1}}, Steps: []Step{{Action: 1, Changes: true}}}
	rb, err := Minimise(t.Context(), src, 2, 3, oracle([][]uint64{{}}, new(int)), nil)
	if err == nil || !strings.Contains(err.Error(), "with nothing done, the seat won") || len(rb.Steps) > 0 {
		t.Errorf("it gives %+v, %v", rb.Steps, err)
	}
}

// What was found stays found when it cannot be run again.
func TestNotRunAgain(t *testing.T) {
	src := Source{Agent: "a", Actions: []Action{{Number: 1}}, Steps: []Step{{Action: 1, Changes: true}}}
	runs := 0
	once := func(ctx context.Context, choices [][]Step, paced bool) ([]Try, error) {
		if runs++; runs > 3 {
			return nil, errors.New("no space left on device")
		}
		return oracle([][]uint64{{1}}, new(int))(ctx, choices, paced)
	}
	rb, err := Minimise(t.Context(), src, 1, 5, once, nil)
	if err == nil || !strings.Contains(err.Error(), "again 1 of 5 times: no space left") || len(rb.Steps) != 1 || rb.Won != 1 || rb.Again != 1 {
		t.Errorf("it gives %+v, %v", rb, err)
	}
}

// A repair that does not win again is no runbook.
func TestNotReproduced(t *testing.T) {
	src := Source{Agent: "a", Actions: []Action{{Number: 1}}, Steps: []Step{{Action: 1}}}
	_, err := Minimise(t.Context(), src, 1, 1, oracle(nil, new(int)), nil)
	if err == nil || !strings.Contains(err.Error(), "do not win again, run without it: lost at m: no") {
		t.Errorf("it gives %v", err)
	}
}

var update = flag.Bool("update", false, "write the golden file")

func TestMarkdown(t *testing.T) {
	zero := 0
	rb := Runbook{
		Source: Source{Recording: "heat", LogHead: "abc", Arena: "arena", Title: "Title", Seat: "one", Agent: "right", DurableMS: 25_500,
			Actions: []Action{{Number: 1, AtMS: 1000, Exit: &zero, Session: "seats/one/session-1.cast"}, {Number: 2, AtMS: 9000, Passed: []string{"writes"}, pause: 8000}},
			Steps:   []Step{{Action: 1, Text: "ls"}, {Action: 1, Statement: 1, Text: "rm x"}, {Action: 2, Text: "echo '```' >y"}},
			Untold:  []string{"action 3 at 00:10.0: it copied x"}},
		Paced: true, Minimal: true, Runs: 7, Won: 4, Again: 5,
		Steps: []Needed{
			{Step{Action: 1, Statement: 1, Machine: "host", Text: "rm x"}, &Try{Lost: "reads", Why: "GET `x`: 502", Dir: "heats/2", Seat: "choice-1"}},
			{Step{Action: 2, Machine: "host", Text: "echo '```' >y"}, &Try{Lost: "writes", Why: "503", Dir: "heats/3", Seat: "choice-2"}}},
		Dropped: []Step{{Action: 1, Text: "ls"}},
		Flakes:  []Try{{Lost: "reboot", Why: "no ping", Dir: "heats/5", Seat: "choice-3"}},
	}
	golden := filepath.Join("testdata", "runbook.md")
	got := rb.Markdown()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the runbook is\n%s\nnot\n%s", got, want)
	}
}
