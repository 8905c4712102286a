package heat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/vm/sim"
	"refbox/vm/sim/hello"
)

// shaped is a package whose milestones are files in the guest:
//
//	base ─┬─ left ── done (the completion milestone, which stands third of five)
//	      ├─ right (required, and done does not depend on it)
//	      └─ bonus (optional)
func shaped(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shaped")
	if _, err := arena.Init(dir); err != nil {
		t.Fatal(err)
	}
	p, err := arena.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest
	m.Rules.TickMS, m.Players = 50, nil
	step := func(id string, required bool, on ...string) arena.Milestone {
		write(t, filepath.Join(dir, "verify", id+".star"),
			fmt.Sprintf("def verify(seat):\n    require(seat.guest.exists(\"/root/%s\"), \"no %s\")\n    return {}\n", id, id))
		return arena.Milestone{ID: id, DisplayName: id, DependsOn: append([]string{}, on...), Verifier: "verify/" + id + ".star",
			Operation: arena.Observe, TimeoutSeconds: 5, Points: 20, Required: required}
	}
	m.Build = &arena.Build{CompletionMilestone: "done", Milestones: []arena.Milestone{
		step("base", true), step("left", true, "base"), step("done", true, "left"), step("right", true, "base"), step("bonus", false, "base"),
	}}
	data, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "arena.json"), string(data))
	if err := os.Remove(filepath.Join(dir, "arena.toml")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestShapes: branches, an optional milestone, a completion milestone that is not
// the last, and a heat that goes on past the first durable seat, with two to eight
// seats.
func TestShapes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs whole heats: skipped under -short")
	}
	dir := shaped(t)
	seats := []struct {
		name, does, passes string
		durable            bool
	}{
		{"whole", "base left done right", "base left done right", true},
		{"branch", "base left done", "base left done", false}, // complete, but for the required branch
		{"bonus", "base bonus", "base bonus", false},
		{"above", "done right bonus left", "", false}, // nothing counts without what it rests on
		// What is optional counts beside the ladder, as long as the race goes on.
		{"all", "base bonus\n---\n# pause 1.5s\ncd /root && touch right done left", "base left done right bonus", true},
		{"at-once", "bonus right done left base", "base left done right bonus", true},
		{"side", "base right", "base right", false},
		{"late", "base\n---\n# pause 0.3s\ntouch /root/right\n---\n# pause 0.3s\ntouch /root/left /root/done", "base left done right", true},
	}
	for _, s := range seats {
		script := "true"
		if s.does != "" {
			script = "cd /root && touch " + s.does
		}
		write(t, filepath.Join(dir, "players", s.name+".sh"), script+"\n")
	}
	for _, n := range []int{2, 5, 8} {
		t.Run(fmt.Sprintf("%d seats", n), func(t *testing.T) {
			var players []arena.Trial
			for _, s := range seats[:n] {
				players = append(players, arena.Trial{Name: s.name, Script: "players/" + s.name + ".sh"})
			}
			w, order := shapedRace(t, dir, players, false)
			if w.FinishReason == nil || !strings.Contains(*w.FinishReason, "nothing changes any more") {
				t.Errorf("ended for %v", w.FinishReason)
			}
			for _, s := range seats[:n] {
				seat := w.Seat(s.name)
				var got []string
				for _, id := range []string{"base", "left", "done", "right", "bonus"} {
					if ms := seat.Milestone(id); ms != nil && ms.Passed {
						got = append(got, id)
					}
				}
				if strings.Join(got, " ") != s.passes || (seat.CompetitorState == "durable") != s.durable || seat.Points != uint64(20*len(got)) {
					t.Errorf("%s: passed %v, %d points, %s", s.name, got, seat.Points, seat.CompetitorState)
				}
				for i, id := range order[s.name] {
					for _, below := range map[string][]string{"left": {"base"}, "right": {"base"}, "bonus": {"base"}, "done": {"left", "base"}}[id] {
						if !slices.Contains(order[s.name][:i], below) {
							t.Errorf("%s: %s counted before %s: %v", s.name, id, below, order[s.name])
						}
					}
				}
			}
			if st := world.Standings(w); st[0].Durable == nil || st[len(st)-1].Points > st[0].Points {
				t.Errorf("standings %+v", st)
			}
		})
	}
}

// TestStopsAtACompletionThatIsNotLast: a required branch elsewhere holds up the end;
// an optional one does not.
func TestStopsAtACompletionThatIsNotLast(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	dir := shaped(t)
	write(t, filepath.Join(dir, "players/first.sh"), "touch /root/base /root/left /root/done\n---\n# pause 0.5s\ntouch /root/right\n---\n# pause 60s\ntouch /root/bonus\n")
	write(t, filepath.Join(dir, "players/other.sh"), "touch /root/base /root/left /root/done\n---\n# pause 60s\ntouch /root/right\n")
	w, order := shapedRace(t, dir, []arena.Trial{{Name: "first", Script: "players/first.sh"}, {Name: "other", Script: "players/other.sh"}}, true)
	if w.FinishReason == nil || *w.FinishReason != "first durable deployment" || w.Winner == nil || *w.Winner != "first" {
		t.Errorf("ended for %v, won by %v", w.FinishReason, w.Winner)
	}
	if got := strings.Join(order["first"], " "); got != "base left done right" {
		t.Errorf("the winner's order: %s", got)
	}
	if s := w.Seat("other"); s.CompetitorState != "incomplete" || s.Points != 60 {
		t.Errorf("the other: %s, %d points", s.CompetitorState, s.Points)
	}
}

// shapedRace runs a heat and gives its end, and the order in which each seat passed.
func shapedRace(t *testing.T, dir string, players []arena.Trial, stopsAtFirst bool) (*world.World, map[string][]string) {
	t.Helper()
	p, err := arena.Load(dir)
	if err == nil {
		p, err = p.Cast(players, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Manifest.Build.StopOnFirstDurable = stopsAtFirst
	run, err := os.MkdirTemp("", "shapes") // sockets live in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	res, err := Run(t.Context(), Config{Package: p, Driver: sim.New(sim.Config{Programs: hello.Programs()}), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: run})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(res.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	report, err := rec.Verify(t.Context())
	if err != nil || report.Breaks() > 0 {
		t.Errorf("the recording does not verify: %v %v", report, err)
	}
	order := map[string][]string{}
	err = rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		if b, ok := e.Body.(event.MilestonePassed); ok {
			order[b.Territory] = append(order[b.Territory], b.Milestone)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec.World(rec.Len()), order
}
