package register

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/assets"
	"refbox/engine/register"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

func TestPosture(t *testing.T) {
	d := drive(t, example(), 120, 34)
	d.shows("matrix: today")
	if !strings.Contains(d.status(), "11/16 survive today") {
		t.Fatal(d.status())
	}
	d.press("P")
	d.shows("matrix: planned")
	if !strings.Contains(d.status(), "survive planned") {
		t.Fatal(d.status())
	}
	d.press("P")
	d.shows("matrix: today")
}

// Only partitions tell the seed's postures apart: they are shown.
func TestPostureOfPartitions(t *testing.T) {
	d := drive(t, seed(t), 120, 34)
	d.press("j", "j", "j")
	d.shows("coolify-state            ✗6 ▌✗ lost ✗")
	d.press("P")
	d.shows("coolify-state            ✗6 ▌✗ lost ↶")
}

// The cell names each side, marks the operator's, and shows both postures.
func TestCell(t *testing.T) {
	d := drive(t, seed(t), 200, 60)
	d.press("j", "l", "l")
	d.shows("jarvisos-vin-journal in lose-uplink", "◆ home    ✗ lost          ✗ lost", "  vps     ● write         ● write",
		"vin, vps1; internet; the primary is here", "home1, nas; no internet, where the operator is", "No copy of this data is reachable from this side of the break.")
}

func TestRecoveryPointsBesideEachOther(t *testing.T) {
	d := drive(t, example(), 80, 40)
	d.shows("declared      design        today         measured",
		"recovery     15m           ✓ 20s         ✓ 20s         –",
		"off-site     yes           ✓ 6h          ✗ no          –",
		"places       3             ✓ 4           ✓ 3           –",
		"time         45m           –             –             ✓ 38.5m")
}

func TestStoreTellsAll(t *testing.T) {
	for file, want := range map[int][]string{
		0: {"● tickets-replica", "mainland → mainland-disk in harbour-dc, another domain", "over tunnel, which needs the uplink, serves reads", "○ tickets-bucket", "off-site",
			"promotion runbook", "tickets-replica in 20m, by a human", "Fence.", "data loss", "re-protect", "restore runbook", "pg_restore the newest dump.",
			"◐ partial 2026-01-20, ✗ 132 days old, policy wants 90, took 70m", "✓ pass    2026-02-10, ✗ 111 days old",
			"migration m-drop-paper", "destructive, not reversible", "gated by    tickets-dump", "✗ the rollback was never executed", "✓ the rollback was executed on 2026-05-20", "queued over tunnel via visitor-queue"},
		1: {"local queue", "drains to   tickets", "✓ the drain was proven on 2026-05-12, 20 days ago", "when full"},
		2: {"rebuild", "An hour without the picture.", "mast"},
		3: {"vendor", "Load the export into any other list.", "not encrypted", "✗ nobody has ever restored it"},
	} {
		d := drive(t, example(), 100, 210)
		for range file {
			d.press("j")
		}
		d.press("enter", "+")
		for _, w := range want {
			d.shows(w)
		}
	}
}

func TestFindingsFilter(t *testing.T) {
	d := drive(t, example(), 120, 34)
	d.shows("17 of 17")
	d.press("V")
	d.shows("findings: gap only", "12 of 17")
	d.press("V")
	d.shows("findings: accepted only", "1 of 17", "accepted by the keeper until 2026-12-01")
	d.press("V", "V")
	d.shows("17 of 17")
	d.press("s")
	d.shows("findings: of tickets", "7 of 17")
	d.press("j") // goes along with the matrix
	d.shows("findings: of visitor-queue", "2 of 17")
	d.press("s", "tab", "/")
	d.write("code:migration severity:gap")
	d.shows("/code:migration severity:gap", "3 of 17")
	d.lacks("no-offsite-copy")
	d.press("tab", "tab", "/")
	d.write("store:member never")
	d.shows("1 of 17", "restore-never-drilled")
	d.press("/")
	d.write("no such words")
	d.shows("no finding passes the filter")
	d.press("esc")
	d.shows("17 of 17")
}

func TestFindingGoesToItsCell(t *testing.T) {
	d := drive(t, seed(t), 120, 34)
	d.press("tab", "tab", "tab", "/")
	d.write("store-lost coolify")
	d.press("enter")
	if d.s.storeID() != "coolify-state" || !strings.Contains(d.said, "coolify-state lose-home1") {
		t.Fatal(d.s.storeID(), d.said)
	}
	d.press("y")
	if !strings.HasPrefix(d.copied, "gap store-lost-in-scenario coolify-state: \"Home1 is gone\" destroys home1") {
		t.Fatal(d.copied)
	}
}

func TestStoresFilter(t *testing.T) {
	d := drive(t, example(), 80, 24)
	d.press("/")
	d.write("mail")
	d.shows("matrix: today, /mail", "store 1 of 1", "member-mail")
	d.lacks("visitor-queue")
	d.press("/")
	d.write("nothing like it")
	d.shows("no store passes the filter", "no store is chosen")
	d.press("j", "l", "x", "W", "esc", "esc", "esc")
	d.shows("store 1 of 4")
}

// x explains what is under the cursor, and goes along with it.
func TestExplain(t *testing.T) {
	d := drive(t, seed(t), 120, 34)
	d.press("l", "l", "x")
	d.shows("explain jarvisos-postgres in lose-uplink", "because   the primary's node is on this side", "side home ◆ operator: this side decides", "✓ yes  pg-wal-nas", "it is off-site in fd-offsite, and this side has")
	d.press("j")
	d.shows("explain jarvisos-vin-journal in lose-uplink", "planned: it protects nothing today")
	d.press("x")
	d.lacks("explain")
	d.press("tab", "tab", "tab", "j", "x")
	d.shows("explain rpo-not-met on jarvisos-vin-journal", "✗ fires", "stores[1].objectives.rpoMinutes = 15")
	d.press("esc")
	d.lacks("explain")
	// A recovery point is explained by the rules that look at it.
	d.press("shift+tab")
	for !strings.Contains(d.s.store.lines[d.s.store.at].plainText(), "off-site") {
		d.press("j")
	}
	d.press("x")
	d.shows("explain jarvisos-vin-journal", "no-offsite-copy", "recovery-depends-on-home-uplink")
}

// Where there is room for one pane only, the explanation gets the keys.
func TestExplainWhenNarrow(t *testing.T) {
	d := drive(t, seed(t), 80, 24)
	d.press("tab", "tab", "tab", "j", "x")
	if d.s.focus != explain {
		t.Fatal("the explanation has not the focus")
	}
	d.shows("┏ explain rpo-not-met")
	d.press("j", "esc")
	d.shows("┏ findings")
	if f := d.s.findings.chosen(d.s.r); f.Code != "rpo-not-met" {
		t.Fatalf("the list moved under the explanation, to %s", f.Code)
	}
}

func (d *driver) assume(what string) {
	d.t.Helper()
	if d.s.side != whatIf {
		d.press("W")
	}
	for i, o := range d.s.whatIf.list(d.s.r) {
		if o.id == what {
			d.s.whatIf.at = i
		}
	}
	before := d.s.r
	d.press("enter")
	d.until(what+" is assumed", func() bool { return d.s.r != before })
	d.lacks("deriving")
}

// What is assumed changes cells and findings at once, and what changed is marked.
func TestWhatIf(t *testing.T) {
	d := drive(t, seed(t), 200, 60)
	d.assume("coolify-dump-offsite")
	d.shows("[x] run  coolify-dump-offsite", "+ 1 opened  − 6 closed", "≠ 1 on another side", "✗ lost ↶≠")
	d.press("esc")
	if !strings.Contains(d.status(), "WHAT IF 1") {
		t.Fatal(d.status())
	}
	d.press("tab", "tab", "tab", "g")
	d.shows("+✗ gap      coolify-state", "−✗ gap      coolify-state", "opened by what is assumed")
	d.press("shift+tab", "shift+tab", "shift+tab")
	for d.s.storeID() != "coolify-state" {
		d.press("j")
	}
	d.shows("(assumed)", "was none", "≠ today, otherwise: without what is assumed ◆ vps")

	d.assume("home1")
	d.shows("[x] lose home1", "▼")
	d.assume("mesh")
	d.shows("[x] cut  mesh")
	if w := d.s.f.assumed(); size(w) != 3 {
		t.Fatalf("%+v", w)
	}
	d.assume("mesh") // not any more
	d.shows("[ ] cut  mesh")
	d.assume("") // nothing: as it is
	if d.s.r.changes != nil || strings.Contains(d.status(), "WHAT IF") {
		t.Fatal(d.status())
	}
	d.shows("[x] nothing: the register as it is")
}

// Cells, findings and what is assumed are seen together; what has the focus or is
// explained is never covered.
func TestWhatCoversWhat(t *testing.T) {
	for _, w := range []int{120, 200} {
		d := drive(t, seed(t), w, 50)
		d.assume("vin")
		d.shows("matrix: today", "what if", "findings", "+ 4 opened", "+✗ gap      jarvisos-vin-")
		for range 5 {
			d.press("tab")
			if d.s.rects[d.s.focus].Empty() {
				t.Fatalf("pane %d has the focus and is not seen:\n%s", d.s.focus, d.text())
			}
		}
		d.press("W", "esc")
		for _, p := range []pane{findings, store} {
			d.s.focus = p
			d.press("x", "tab", "tab")
			for d.s.focus != explain {
				d.press("tab")
			}
			d.shows("explain")
			if d.s.rects[p].Empty() {
				t.Fatalf("pane %d is covered by its explanation:\n%s", p, d.text())
			}
			d.press("esc")
		}
	}
}

// What a cut path does is seen in cells: a copy that is fed over it stops.
func TestWhatIfCutPath(t *testing.T) {
	d := drive(t, seed(t), 120, 34)
	d.shows("▌◐ read 20m ↶")
	d.assume("mesh")
	d.shows("▌✗ lost ↶▼")
}

// The file is followed; the cursor stays on its store, a file that is half
// written leaves what was last understood, and says why.
func TestFollows(t *testing.T) {
	file, text := exampleFile(t)
	d := drive(t, fileSource(file, register.Settings{}), 120, 34)
	d.press("j", "j", "j", "l")
	write(t, file, strings.Replace(text, "status = \"planned\"", "status = \"running\"", 1))
	d.until("the copy runs", func() bool { return strings.Contains(d.status(), "10 gaps") })
	if d.s.storeID() != "member-mail" || d.s.matrix.scenario.at != 1 {
		t.Fatalf("the cursor went to %s, %d", d.s.storeID(), d.s.matrix.scenario.at)
	}

	write(t, file, text[:len(text)/2])
	d.until("the half is seen", func() bool { return d.s.r.trouble != "" })
	d.shows("✗ the last good one is shown: register.toml:", "member-mail")
	if !strings.Contains(d.status(), "10 gaps") {
		t.Fatal(d.status())
	}
	write(t, file, strings.Replace(text, "lagSec = 20", "lagSec = -20", 1))
	d.until("the error is told by its place", func() bool { return strings.Contains(d.text(), "lagSec: -20 is negative") })

	// Stores that come before it do not take the cursor along.
	moved := strings.Replace(text, "[[stores]]\nid = \"tickets\"", "[[stores]]\nid = \"a-first\"\nname = \"First\"\ndurability = \"rebuildable\"\ncriticality = \"convenience\"\nwriteModel = \"single-writer\"\nunmonitored = \"x\"\nprimary = { node = \"tower\" }\n  [stores.rebuild]\n  from = \"x\"\n  procedure = \"x\"\n\n[[stores]]\nid = \"tickets\"", 1)
	write(t, file, moved)
	d.until("it is good again", func() bool { return d.s.r.trouble == "" && strings.Contains(d.text(), "store 5 of 5") })
	if d.s.storeID() != "member-mail" {
		t.Fatalf("the cursor went to %s", d.s.storeID())
	}
	d.shows("a-first")

	// Editors write another file and rename it over this one; and it may be gone.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	d.until("it is gone", func() bool { return strings.Contains(d.s.r.trouble, "no such file") })
	other := filepath.Join(filepath.Dir(file), "new")
	write(t, other, text)
	if err := os.Rename(other, file); err != nil {
		t.Fatal(err)
	}
	d.until("it is back", func() bool { return d.s.r.trouble == "" && strings.Contains(d.text(), "store 4 of 4") })
}

// What is assumed stays assumed of the edited file; what the file has no more is
// told and dropped.
func TestWhatIfOfAnEditedFile(t *testing.T) {
	file, text := exampleFile(t)
	d := drive(t, fileSource(file, register.Settings{}), 120, 34)
	d.assume("tickets-bucket")
	d.assume("tower")
	write(t, file, strings.Replace(text, "lagSec = 20", "lagSec = 21", 1))
	d.until("it is read again", func() bool {
		return strings.Contains(d.text(), "21s") || d.s.r.base.Document().Stores[0].Copies[0].ExposureMinutes == 0.35
	})
	if len(d.s.r.assumed.Running) != 1 || len(d.s.r.assumed.Lost) != 1 {
		t.Fatalf("%+v", d.s.r.assumed)
	}
	write(t, file, strings.ReplaceAll(text, "tickets-bucket", "tickets-pail"))
	d.until("the copy is gone", func() bool { return len(d.s.r.gone) == 1 })
	d.shows("no longer assumed", "tickets-bucket")
	if w := d.s.f.assumed(); len(w.Running) != 0 || len(w.Lost) != 1 {
		t.Fatalf("%+v", w)
	}
}

// A change of the estate's own file counts as well.
func TestFollowsTheEstate(t *testing.T) {
	dir := t.TempDir()
	file, facts := filepath.Join(dir, "register.json"), filepath.Join(dir, "facts.json")
	for from, to := range map[string]string{"declared.json": file, "externals.json": facts} {
		data, err := os.ReadFile(viewtest.Shared(t, "register", from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data))
	}
	d := drive(t, Source{Name: "r", Files: []string{file, facts}, Load: func() (*register.Explainer, error) {
		src, err := register.Load(file)
		if err == nil {
			err = src.LoadEstate(facts)
		}
		if err != nil {
			return nil, err
		}
		return src.Explainer(register.Settings{On: "2026-08-15", Profile: register.Seed})
	}}, 120, 34)
	data, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	before := d.status()
	cut := strings.Replace(string(data), `"isp-uplink"`, `"something-else"`, 1)
	if cut == string(data) {
		t.Fatal("the facts have no uplink")
	}
	write(t, facts, cut)
	d.until("the facts are read", func() bool { return d.status() != before })
}

// Without colour the focus, the choice and the states are still seen.
func TestWithoutColour(t *testing.T) {
	d := drive(t, example(), 80, 24)
	d.shows("┏ matrix", "▌◐ read", "● write", "✗ lost", "↶ restore")
	d.press("tab")
	d.shows("┏ tickets in lose-tower", "╭ matrix")
	if plain := d.frame(canvas.Output{Profile: canvas.Plain}); strings.Contains(plain, "\x1b") {
		t.Fatal("a sequence where none is wanted")
	}
}

func TestClick(t *testing.T) {
	d := drive(t, example(), 120, 34)
	r := d.s.matrix.cells
	d.s.Click(d, r.X+d.s.matrix.colW*2+3, r.Y+1)
	if d.s.storeID() != "visitor-queue" || d.s.matrix.scenario.at != 2 {
		t.Fatal(d.s.storeID(), d.s.matrix.scenario.at)
	}
	f := d.s.rects[findings]
	d.s.Click(d, f.X+3, f.Y+3)
	if d.s.focus != findings || d.s.findings.at != 2 {
		t.Fatal(d.s.focus, d.s.findings.at)
	}
}

// A register without scenarios is shown too.
func TestNoScenarios(t *testing.T) {
	text := string(assets.Register())
	text = text[:strings.Index(text, "[[scenarios]]")]
	file := filepath.Join(t.TempDir(), "bare.toml")
	write(t, file, text)
	d := drive(t, fileSource(file, register.Settings{}), 120, 34)
	d.shows("declares no scenario", "▸tickets")
	d.press("l", "j", "tab")
	d.shows("no cell is chosen")
	d.press("x", "P", "W", "j", "enter")
	d.shows("[x] lose tower")
}
