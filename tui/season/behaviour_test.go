package season

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/recordings"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

// folder writes a week's documents, and is a source that follows them.
func folder(t *testing.T, docs season.Documents) (string, Source) {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, docs)
	return dir, Source{Name: "week", Heat: absent, Watch: func() []string { return []string{dir} }, Load: func() (Week, error) {
		docs, err := season.ReadDir(dir)
		if err != nil {
			return Week{}, err
		}
		return Week{View: docs.View(nil), Audit: docs.Check(season.Sources{})}, nil
	}}
}

func put(t *testing.T, dir string, docs season.Documents) {
	t.Helper()
	draw, err := docs.Draw.JSON()
	if err != nil {
		t.Fatal(err)
	}
	week, err := docs.Week.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"draw.json": draw, "week.json": week} {
		half := filepath.Join(dir, ".tmp-"+name)
		if err := os.WriteFile(half, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(half, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A running week is followed, and nothing moves the cursor.
func TestAWeekIsFollowed(t *testing.T) {
	dir, src := folder(t, made(t, 20, 2))
	d := drive(t, src, 120, 34)
	d.shows("round 1, heat 3")
	if !strings.Contains(d.status(), "running") || !strings.Contains(d.status(), "2 of 10 heats") {
		t.Errorf("%q", d.status())
	}
	d.press("k")
	at := *d.screen().bracket.chosen(d.screen().r).heat
	put(t, dir, made(t, 20, 7))
	d.until("it grew", func() bool { return d.screen().r.over == 7 })
	if now := d.screen().bracket.chosen(d.screen().r).heat; now.Heat != at.Heat {
		t.Errorf("the cursor moved from heat %d to heat %d", at.Heat, now.Heat)
	}
	put(t, dir, made(t, 20, -1))
	d.until("it is complete", func() bool { return d.screen().r.View.State == "complete" })
	if !strings.Contains(d.status(), "champion") {
		t.Errorf("%q", d.status())
	}

	// What cannot be read is told, and the last good one stays.
	if err := os.WriteFile(filepath.Join(dir, "week.json"), []byte(`{"rounds": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.until("it is told", func() bool { return d.screen().r.trouble != "" })
	d.shows("the last good one is shown", "heat 2")
	put(t, dir, made(t, 20, -1))
	d.until("it is good again", func() bool { return d.screen().r.trouble == "" })
}

// Enter opens the heat's last attempt, or says that it is not here.
func TestHeatsAreOpened(t *testing.T) {
	src := during(t)
	d := drive(t, src, 120, 34)
	d.press("enter")
	if !strings.Contains(d.said, "round-02/heat-03 is not here") {
		t.Errorf("%q", d.said)
	}
	src.Heat = func(name string) (*recording.Recording, error) {
		if name != "round-02/heat-03" {
			return nil, errors.New("another heat: " + name)
		}
		return recording.OpenFS(recordings.Heats(), "primary-failover")
	}
	d = drive(t, src, 120, 34)
	d.press("enter", "tab", "enter")
	if len(d.opened) != 2 {
		t.Errorf("%v were opened, %q was said", d.opened, d.said)
	}
	d.press("esc", "l", "enter")
	if !strings.Contains(d.said, "choose a heat") {
		t.Errorf("%q", d.said)
	}

	// Of a heat with several attempts each has its line.
	again := published(t, "infra-weekly_20260911")
	var asked []string
	again.Heat = func(name string) (*recording.Recording, error) {
		asked = append(asked, name)
		return absent(name)
	}
	d = drive(t, again, 120, 34)
	d.press("enter", "tab", "G", "enter")
	if want := []string{"round-02/heat-01.replay-1", "round-02/heat-01"}; !reflect.DeepEqual(asked, want) {
		t.Errorf("%v, want %v", asked, want)
	}
}

// The badge lists the checks; opening it has the recordings read.
func TestChecksAreListed(t *testing.T) {
	src := during(t)
	read := 0
	src.Recordings = func(context.Context) (*season.Audit, error) {
		read++
		return &season.Audit{Checks: season.Checks{
			{Code: "W1", Verdict: season.Holds, Text: "fine"},
			{Code: "R", Verdict: season.Broken, Where: "round 1, heat 1", Text: "the seat is what its recording says", Want: "7", Got: "8"},
		}}, nil
	}
	d := drive(t, src, 200, 60)
	d.shows("audit ○ holds, with notes")
	d.press("tab", "tab", "tab")
	if read > 0 {
		t.Error("recordings were read before anybody asked")
	}
	d.press("enter")
	d.shows("documents and recordings", "✗ broken: 1 broken", "should be  7", "is         8")
	d.press("i", "i")
	if read != 1 {
		t.Errorf("the recordings were read %d times", read)
	}
	d.press("y")
	if !strings.Contains(d.copied, "round 1, heat 1: the seat is what its recording says") {
		t.Errorf("%q", d.copied)
	}
	d.press("esc")
	if d.screen().listed || d.screen().focus != badge {
		t.Error("esc did not close the checks")
	}
}

// An entrant is found, and its way is shown in every round.
func TestAnEntrantIsFound(t *testing.T) {
	d := drive(t, during(t), 120, 34)
	d.press("/")
	d.write("0007")
	s := d.screen()
	if s.bracket.entrant != "entrant-0007" {
		t.Fatalf("%q", s.bracket.entrant)
	}
	d.shows("▸◦ entrant-0007")
	found := false
	for _, x := range s.bracket.chosen(s.r).heat.Seats {
		found = found || x.Entrant == "entrant-0007"
	}
	if !found {
		t.Error("its heat is not the chosen one")
	}
	d.press("/")
	d.write("nobody")
	if !strings.Contains(d.said, "nobody here") {
		t.Errorf("%q", d.said)
	}
	d.press("/")
	d.write("entrant-00")
	first := s.standings.at
	d.press("n")
	if s.standings.at == first {
		t.Error("n went nowhere")
	}
	d.press("N")
	if s.standings.at != first {
		t.Error("N did not come back")
	}
}

// Every heat is reached with the keys, and shown.
func TestEveryHeatIsReached(t *testing.T) {
	src := Source{Name: "big", Heat: absent, Load: func() (Week, error) {
		docs := made(t, 200, -1)
		return Week{View: docs.View(nil), Audit: docs.Check(season.Sources{})}, nil
	}}
	d := drive(t, src, 80, 24)
	for range 10 {
		d.press("h")
	}
	seen := 0
	for i := range d.screen().r.cols {
		d.press("g")
		for range d.screen().r.cols[i].blocks {
			if h := d.screen().bracket.chosen(d.screen().r); h != nil {
				seen++
				d.shows("round "+string(rune('0'+h.round))+", heat ", h.heat.Seats[0].Entrant)
			}
			d.press("j")
		}
		d.press("l")
	}
	if seen != d.screen().r.all {
		t.Errorf("%d of %d heats were reached", seen, d.screen().r.all)
	}
}

func TestPanesAreClicked(t *testing.T) {
	d := drive(t, during(t), 200, 60)
	s := d.screen()
	for _, p := range []pane{bracket, heat, standings, badge} {
		r := s.rects[p]
		s.Click(d, r.X+2, r.Y+min(3, r.H-1))
		d.draw()
		if s.focus != p {
			t.Errorf("a click into pane %d chose %d", p, s.focus)
		}
	}
	s.Click(d, 2, 0)
	if !s.listed {
		t.Error("a second click on the badge does not list the checks")
	}
}

// poison adds the hostile text to every string.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() != "" && v.Type() == reflect.TypeFor[string]() {
			v.SetString(v.String() + viewtest.Hostile)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	}
}

// Whatever a document holds, and even if its reader let it through, nothing of it
// reaches the terminal but printable text.
func TestHostileWeek(t *testing.T) {
	src := Source{Name: "x" + viewtest.Hostile, Load: func() (Week, error) {
		w, err := during(t).Load()
		poison(reflect.ValueOf(&w.View).Elem())
		poison(reflect.ValueOf(w.Audit).Elem())
		return w, err
	}, Heat: func(name string) (*recording.Recording, error) { return absent(name + viewtest.Hostile) }}
	o := canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}
	for _, size := range [][2]int{{80, 24}, {120, 34}, {200, 60}} {
		for _, x := range tours {
			d := drive(t, src, size[0], size[1])
			d.press(x.keys...)
			for range 6 {
				viewtest.OnlySGR(t, x.name, d.frame(o))
				viewtest.Fits(t, d.frame(o), size[0], size[1]-2)
				d.press("tab", "j", "y", "enter")
			}
			viewtest.OnlySGR(t, "status", d.status())
			for _, s := range append(d.s.Crumbs(), d.said, d.copied) {
				viewtest.OnlySGR(t, "said", "x"+s)
				if strings.ContainsAny(s, "\x1b\n\r\x07") {
					t.Fatalf("%q", s)
				}
			}
		}
	}
}
