package season

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// bigWeek is a week of about 5,000 heats of three, with its documents on disk.
func bigWeek(tb testing.TB, dir string, entrants int) (heats int) {
	tb.Helper()
	m := &Manifest{File: "s.toml", ID: "cup"}
	for i := range entrants {
		m.Fleet = append(m.Fleet, Entrant{ID: fmt.Sprintf("e%05d", i), Model: "m", Adapter: "a", ReasoningEffort: "high"})
	}
	arenas := []Arena{{ID: "x", Territories: []string{"t1", "t2", "t3"}}, {ID: "y", Territories: []string{"u1", "u2", "u3"}}}
	secret := CommitSeed("s")
	d, err := NewDraw(m, arenas, Order{Week: "2026-W40", Secret: secret})
	if err != nil {
		tb.Fatal(err)
	}
	data, err := d.JSON()
	if err != nil {
		tb.Fatal(err)
	}
	digest, err := Digest(data)
	if err != nil {
		tb.Fatal(err)
	}
	w := Week{SchemaVersion: Schema, DrawDigest: &digest, SeasonID: d.SeasonID, Week: d.Week, DrawSeed: d.DrawSeed, Commitment: d.Commitment,
		VariationSeed: &secret, Completed: true}
	seater := NewSeater(d.DrawSeed)
	seating := d.FirstRound
	for i, stage := range d.Shape {
		x := d.Arenas[d.RoundArenas[i]]
		if i > 0 {
			seating = seater.Seat(stage.Round, w.Rounds[i-1].Field(), x.Territories)
		}
		r := Round{Round: stage.Round, ArenaID: x.ID, Byes: seating.Byes, Wildcards: []string{}}
		for _, p := range seating.Heats {
			var ends []Ended
			for k, t := range x.Territories {
				e := Ended{Territory: t, Points: int64(5 * k), CostMicroUSD: int64(p.Heat), FailureSource: "player", TerminalState: "incomplete", Detail: "somebody else was durable first; the build ended at the frozen clock"}
				if k == p.Heat%3 {
					at := int64(30_000 + p.Heat)
					e.DurableAtMS, e.Points = &at, 100
				}
				ends = append(ends, e)
			}
			h := Heat{Heat: p.Heat, Output: "seasons/cup/2026-W40/" + Folder(stage.Round, p.Heat, 1), Attempts: 1, PriorAttempts: [][]Seat{}, Seats: p.Seats, Standings: Reference.Standings(p.Seats, ends)}
			h.Winner = Winner(h.Standings, "", i == len(d.Shape)-1)
			r.Heats = append(r.Heats, h)
			heats++
		}
		r.Wildcards = Reference.Pick(d.DrawSeed, stage, &r)
		w.Rounds = append(w.Rounds, r)
	}
	w.Champion = ChampionOf(d.Shape, w.Rounds)
	w.Standings = Tally(w.Rounds, d.Fleet)
	week, err := w.JSON()
	if err != nil {
		tb.Fatal(err)
	}
	for name, data := range map[string][]byte{"draw.json": data, "week.json": week} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return heats
}

// look lists, shows and audits a week, as the commands do.
func look(tb testing.TB, dir string) (View, *Audit) {
	tb.Helper()
	docs, err := ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	v := docs.View(nil)
	if _, err := json.Marshal(v); err != nil {
		tb.Fatal(err)
	}
	return v, docs.Check(Sources{})
}

func TestABigWeekHolds(t *testing.T) {
	dir := t.TempDir()
	heats := bigWeek(t, dir, 1000)
	v, a := look(t, dir)
	n := 0
	for _, r := range v.Rounds {
		n += len(r.Heats)
	}
	if n != heats || v.Champion == "" {
		t.Errorf("%d of %d heats are shown, champion %q", n, heats, v.Champion)
	}
	for _, c := range a.Checks {
		if c.Verdict == Broken {
			t.Errorf("%+v", c)
		}
	}
}

// BenchmarkWeekOf5000Heats measures the listing, showing and auditing of 5,000
// heats, from disk.
func BenchmarkWeekOf5000Heats(b *testing.B) {
	dir := b.TempDir()
	heats := bigWeek(b, dir, 9_990)
	runtime.GC()
	for b.Loop() {
		look(b, dir)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(heats), "heats")
	b.ReportMetric(float64(m.Sys)/1e6, "MB-from-system")
}
