package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/ledger"
	"refbox/engine/ledger/ledgertest"
	"refbox/engine/recording"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// The header counts what is observed of what can be; accepted and owned ones apart.
func TestHeader(t *testing.T) {
	d := drive(t, source(seed(t)), 120, 34)
	if got := d.status(80); got != "observed 0 of 8 injectable  □ 1 accepted  → 1 owned  of 9 in all" {
		t.Errorf("the seed alone: %q", got)
	}
	d = drive(t, source(book(t, seedModel(t))), 120, 34)
	if got := d.status(80); got != "observed 1 of 8 injectable  □ 1 accepted  → 1 owned  of 9 in all" {
		t.Errorf("with evidence: %q", got)
	}
}

// With an empty ledger the seed's own observation is declared, no evidence here.
func TestDeclared(t *testing.T) {
	d := drive(t, source(seed(t)), 200, 60)
	for _, want := range []string{"observed-by-this-lab is declared, no evidence here", "a successful switchover proves automatic failover"} {
		if !strings.Contains(d.text(), want) {
			t.Errorf("no %q:\n%s", want, d.text())
		}
	}
	d.press("G")
	if want := "not injected"; !strings.Contains(d.text(), want) {
		t.Errorf("no %q", want)
	}
}

// It says why an accepted exception is one.
func TestException(t *testing.T) {
	d := drive(t, source(seed(t)), 200, 60)
	d.press("j", "j", "j", "j", "j", "j")
	for _, want := range []string{"why it is an accepted exception", "none inside this topology", "Nothing that runs on a machine can lose that machine"} {
		if !strings.Contains(d.text(), want) {
			t.Errorf("no %q:\n%s", want, d.text())
		}
	}
}

// The screen follows the ledger: what comes moves no cursor.
func TestFollows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "book")
	l, err := ledger.Init(dir, assets.LedgerModel(), assets.LedgerPolicy(), now)
	if err != nil {
		t.Fatal(err)
	}
	d := drive(t, source(dir), 120, 34)
	d.press("j", "j", "l")
	if got := d.s.grid.row(d.s.r).Scenario; got != "host-loss" {
		t.Fatalf("on %s", got)
	}
	heat := filepath.Join(t.TempDir(), "heat")
	ledgertest.Heat(t, heat, ledgertest.Story{Exercises: []arena.Exercise{crash}})
	rec, err := recording.Open(heat)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	j, err := ledger.Terms{Model: l.Model, Policy: l.Policy}.JudgeHeat(t.Context(), rec, ledger.Review{By: "the keeper"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(now, l.News(j)...); err != nil {
		t.Fatal(err)
	}
	d.until("the evidence is shown", func() bool { return strings.Contains(d.text(), "◐ sampled 1") })
	if got := d.s.grid.row(d.s.r).Scenario; got != "host-loss" || d.s.grid.arena.at != 1 {
		t.Errorf("the cursor went to %s, %d", got, d.s.grid.arena.at)
	}
	// enter opens the evidence, and then its heat.
	d.press("k", "enter", "enter")
	if d.opened != "heat" {
		t.Errorf("opened %q; said %q", d.opened, d.said)
	}
	// What cannot be read any more leaves the last good one, and says so.
	model := filepath.Join(dir, ledger.ModelName)
	if err := os.WriteFile(model, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.until("the trouble is said", func() bool { return strings.Contains(d.text(), "the last good one is shown") })
	if err := os.WriteFile(model, assets.LedgerModel(), 0o644); err != nil {
		t.Fatal(err)
	}
	d.until("it is read again", func() bool { return !strings.Contains(d.text(), "the last good one") })
}

// A filter, steps back, and what y copies.
func TestKeys(t *testing.T) {
	d := drive(t, source(example(t)), 120, 34)
	d.press("/")
	d.ask(d, "loss")
	d.draw()
	if n := len(d.s.grid.list(d.s.r)); n != 3 {
		t.Errorf("%d scenarios pass", n)
	}
	d.press("y")
	if d.copied != "host-loss: not-injected" {
		t.Errorf("copied %q", d.copied)
	}
	d.press("x", "j", "y", "+", "esc", "esc")
	if d.s.zoom || d.s.focus != grid || d.copied != "nothing" {
		t.Errorf("after going back: zoom %v, focus %d, copied %q", d.s.zoom, d.s.focus, d.copied)
	}
	d.press("esc")
	if d.s.grid.filter != "" || d.s.Back() {
		t.Error("the filter stays, or there is more to go back from")
	}
	d.press("enter", "enter")
	if d.said == "" {
		t.Error("nothing is said of a heat that is not there")
	}
	d.s.Click(d, 5, 8)
	if got := d.s.grid.row(d.s.r).Scenario; d.s.focus != grid || got != "planned-switchover" {
		t.Errorf("a click on a name chose %s", got)
	}
	r := d.s.grid.cells
	d.s.Click(d, r.X+d.s.grid.colW+1, r.Y+2)
	if got := d.s.grid.row(d.s.r).Scenario; got != "host-loss" || d.s.grid.arena.at != 1 {
		t.Errorf("a click on a cell chose %s, %d", got, d.s.grid.arena.at)
	}
}

// Hostile names reach nobody's terminal.
func TestHostileName(t *testing.T) {
	src := source(example(t))
	src.Name = viewtest.Hostile
	load := src.Load
	src.Load = func() (*ledger.Ledger, ledger.Settings, error) {
		l, set, err := load()
		set.Arenas[0].ID = "lab" + viewtest.Hostile
		return l, set, err
	}
	d := drive(t, src, 120, 34)
	viewtest.OnlySGR(t, "the body", d.frame(canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}))
	for _, c := range d.s.Crumbs() {
		viewtest.OnlySGR(t, "crumbs", c)
	}
	if d.s.Advance(time.Time{}) != 0 {
		t.Error("it wants frames while nothing moves")
	}
}

// Where the header has no room for a piece, the piece is left out: none is cut.
func TestHeaderCutsNoWord(t *testing.T) {
	d := drive(t, source(seed(t)), 120, 34)
	whole := d.status(80)
	for w := 27; w < 80; w++ {
		if got := strings.TrimRight(d.status(w), " "); !strings.HasPrefix(whole, got) || len(got) < len(whole) && !strings.HasPrefix(whole[len(got):], "  ") {
			t.Errorf("in %d columns it is cut: %q", w, got)
		}
	}
}
