package register

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func codesOf(list []Finding) []string {
	out := []string{}
	for _, f := range list {
		s := string(f.Code)
		if f.ScenarioID != nil {
			s += "@" + *f.ScenarioID
		}
		out = append(out, s)
	}
	return out
}

// The seed's own lesson: adopting the off-site dump closes gaps and opens the
// next one.
func TestPlanOfTheSeed(t *testing.T) {
	plan, err := declared(t).Plan(Settings{On: "2026-08-15", Profile: Seed})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range plan.Stores {
		for _, x := range append(s.Each, s.All) {
			got = append(got, fmt.Sprintf("%v closes %v opens %v cells %d", x.Copies, codesOf(x.Closes), codesOf(x.Opens), len(x.Cells)))
		}
	}
	want := []string{
		"[pg-offsite-vin] closes [recovery-depends-on-home-uplink] opens [] cells 0",
		"[pg-offsite-vin] closes [recovery-depends-on-home-uplink] opens [] cells 0",
		"[journal-offsite-s3] closes [rpo-not-met site-rpo-not-met copies-single-domain no-offsite-copy store-lost-in-scenario@lose-vin design-not-adopted] opens [] cells 0",
		"[journal-offsite-s3] closes [rpo-not-met site-rpo-not-met copies-single-domain no-offsite-copy store-lost-in-scenario@lose-vin design-not-adopted] opens [] cells 0",
		"[coolify-dump-nas] closes [copies-below-policy store-lost-in-scenario@lose-home1] opens [] cells 1",
		"[coolify-dump-offsite] closes [site-rpo-not-met copies-below-policy copies-single-domain no-offsite-copy store-lost-in-scenario@lose-home1 design-not-adopted] opens [recovery-depends-on-home-uplink] cells 1",
		"[coolify-dump-nas coolify-dump-offsite] closes [site-rpo-not-met copies-below-policy copies-single-domain no-offsite-copy store-lost-in-scenario@lose-home1 design-not-adopted] opens [recovery-depends-on-home-uplink] cells 1",
		"[supabase-dump-offsite] closes [copies-below-policy no-offsite-copy design-not-adopted] opens [] cells 0",
		"[supabase-dump-offsite] closes [copies-below-policy no-offsite-copy design-not-adopted] opens [] cells 0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	open := strings.Join(codesOf(plan.Open), " ")
	if want := "local-first-drain-unverified restore-never-drilled writes-depend-on-home-uplink restore-never-drilled recovery-depends-on-home-uplink restore-never-drilled migration-rollback-untested migration-rollback-untested"; open != want {
		t.Errorf("open: %s", open)
	}
}

func TestDiff(t *testing.T) {
	before := small(t, func(*change) {})
	after := small(t, func(c *change) {
		c.copy("app-db-bucket").Status = Running
		c.copy("app-db-replica").Serves = ServesNothing
		c.estate.Acceptances = []Acceptance{{"restore-never-drilled", "app-db", "r", "me", "2027-01-01"}}
		c.app().Name = "The database"
		c.doc.Stores = append(c.doc.Stores, Store{ID: "new", Name: "New", Durability: Rebuildable, Criticality: Convenience, WriteModel: SingleWriter, Primary: Primary{Node: "vps"}, Rebuild: &Rebuild{From: "x", Procedure: "y"}, Unmonitored: ptr("r")})
	})
	c := Diff(before, after)
	var turned, reworded, cells, points []string
	for _, x := range c.Turned {
		turned = append(turned, fmt.Sprintf("%s %s→%s", x.After.Code, x.Before.Severity, x.After.Severity))
	}
	for _, x := range c.Reworded {
		reworded = append(reworded, string(x.After.Code))
	}
	for _, x := range c.Cells {
		if x.StoreID != "new" {
			cells = append(cells, fmt.Sprintf("%s %s %s→%s", x.Posture, x.ScenarioID, x.Before.Outcome, x.After.Outcome))
		}
	}
	for _, x := range c.Points {
		points = append(points, x.StoreID)
	}
	got := fmt.Sprintf("opened %v closed %v turned %v reworded %v points %v", codesOf(c.Opened), codesOf(c.Closed), turned, reworded, points)
	want := "opened [store-not-monitored] closed [no-offsite-copy recovery-depends-on-home-uplink design-not-adopted] turned [restore-never-drilled gap→accepted] reworded [store-not-monitored] points [app-db new]"
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if d := cmp.Diff([]string{"target lose-server read-only→restore-required", "target lose-home read-only→restore-required", "target lose-uplink writable→writable",
		"current lose-server read-only→restore-required", "current lose-home read-only→restore-required", "current lose-uplink writable→writable"}, cells); d != "" {
		t.Errorf("cells (-want +got)\n%s", d)
	}
	back := Diff(after, before)
	if len(back.Opened) != len(c.Closed) || len(back.Closed) != len(c.Opened) || back.GapsOpened() != 3 || c.GapsOpened() != 0 {
		t.Errorf("the other way: opened %v closed %v, %d and %d gaps", codesOf(back.Opened), codesOf(back.Closed), back.GapsOpened(), c.GapsOpened())
	}
}

func TestWhatIf(t *testing.T) {
	data, _ := Starter("toml")
	s := parse(t, "starter.toml", data)
	for _, c := range []struct {
		what       WhatIf
		fact, want string
	}{
		{WhatIf{Cut: []string{"mesh"}}, "today", "1d / site none, 2 places, no off-site copy"},
		{WhatIf{Running: []string{"app-db-bucket"}}, "today", "30s / site 30s, 4 places, off-site"},
		{WhatIf{Running: []string{"app-db-bucket"}, Cut: []string{"vps-egress"}}, "today", "30s / site 30s, 3 places, no off-site copy"},
		{WhatIf{Lost: []string{"vps"}}, "cell current app-db lose-uplink", "writable none home=writable,vps=lost w1"},
		{WhatIf{Lost: []string{"vps", "server"}}, "cell current app-db lose-uplink", "restore-required 1h home=restore-required,vps=lost w0"},
		{WhatIf{}, "cell current app-db lose-uplink", "writable none home=writable,vps=read-only w1"},
	} {
		changed, err := c.what.Apply(&s.Declared)
		if err != nil {
			t.Fatal(err)
		}
		if got := fact(Derive(changed, s.Declared.Estate, "2026-12-01", Full), c.fact); got != c.want {
			t.Errorf("%+v: %s, want %s", c.what, got, c.want)
		}
	}
	for _, w := range []WhatIf{{Cut: []string{"x"}}, {Lost: []string{"x"}}, {Running: []string{"x"}}} {
		if _, err := w.Apply(&s.Declared); err == nil {
			t.Errorf("%+v: applied", w)
		}
	}
	if s.Declared.Stores[0].Copies[2].Status != Planned || len(s.Declared.Scenarios[2].LostNodes) != 0 {
		t.Error("the register itself was changed")
	}
}

func TestExplain(t *testing.T) {
	data, _ := Starter("toml")
	e, err := parse(t, "starter.toml", data).Explainer(Settings{On: "2026-12-01"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Finding("rpo-not-met", "app-db")
	if err != nil {
		t.Fatal(err)
	}
	v := x.Evaluations[0]
	if len(x.Evaluations) != 1 || v.Fired || v.Because != "Application database can be recovered to 30s ago, within the objective of 15m" {
		t.Errorf("%+v", x)
	}
	var paths []string
	for _, in := range v.Inputs {
		paths = append(paths, in.Path)
	}
	if d := cmp.Diff([]string{"stores[0].durability", "stores[0].today.rpoMinutes", "stores[0].objectives.rpoMinutes"}, paths); d != "" {
		t.Error(d)
	}
	c, err := e.Cell(CurrentPosture, "app-db", "lose-uplink")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, s := range c.Sides {
		told = append(told, s.ID+": "+s.Rule)
		for _, r := range s.Copies {
			told = append(told, fmt.Sprintf("%t %s: %s", r.Usable, r.ID, r.Because))
		}
	}
	want := []string{
		"home: the primary's node is on this side",
		"false app-db-replica: vps, which feeds it, is on the side vps",
		"true app-db-dump: nas, which feeds it, is on this side; it can be restored from",
		"false app-db-bucket: planned: it protects nothing today",
		"vps: a reachable copy serves reads",
		"true app-db-replica: vps, which feeds it, is on this side; it serves reads",
		"false app-db-dump: nas, which feeds it, is on the side home",
		"false app-db-bucket: planned: it protects nothing today",
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, err := range []error{
		second(e.Finding("no-such-code", "app-db")), second(e.Finding("rpo-not-met", "x")),
		second(e.Cell(CurrentPosture, "x", "lose-uplink")), second(e.Cell(CurrentPosture, "app-db", "x")),
	} {
		if err == nil || !strings.Contains(err.Error(), "there is no") {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// An explainer of what is assumed is that of the changed register, by the same
// rules and of the same day; the first one stays as it is.
func TestAssuming(t *testing.T) {
	for _, profile := range []Profile{Seed, Full} {
		src := declared(t)
		e, err := src.Explainer(Settings{On: "2026-08-15", Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		before := e.Document().Encode()
		w := WhatIf{Running: []string{"coolify-dump-nas"}, Lost: []string{"nas"}, Cut: []string{"mesh"}}
		got, err := e.Assuming(w)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := w.Apply(&src.Declared)
		if err != nil {
			t.Fatal(err)
		}
		want := Derive(changed, e.Estate(), e.On(), e.Profile())
		want.Source, want.Estate = e.Document().Source, e.Document().Estate
		if !bytes.Equal(got.Document().Encode(), want.Encode()) {
			t.Errorf("%s: %v", profile, form(got.Document().Encode(), want.Encode()))
		}
		if got.On() != e.On() || got.Profile() != profile || !bytes.Equal(e.Document().Encode(), before) {
			t.Errorf("%s: the first explainer changed, or the rules did", profile)
		}
		for _, bad := range []WhatIf{{Running: []string{"x"}}, {Lost: []string{"x"}}, {Cut: []string{"x"}}} {
			if _, err := e.Assuming(bad); err == nil {
				t.Errorf("%+v is assumed", bad)
			}
		}
	}
}

func TestCellByPlace(t *testing.T) {
	doc, err := seed(t, false).Derive(Settings{On: "2026-08-15"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Posture{TargetPosture, CurrentPosture} {
		for i := range doc.Stores {
			for k := range doc.Scenarios {
				if got := doc.Cell(p, i, k); got == nil || got != cellOf(doc, p, doc.Stores[i].ID, doc.Scenarios[k].ID) {
					t.Errorf("%s %d %d: %+v", p, i, k, got)
				}
			}
		}
	}
	for _, at := range [][2]int{{-1, 0}, {0, -1}, {len(doc.Stores), 0}, {0, len(doc.Scenarios)}} {
		if c := doc.Cell(CurrentPosture, at[0], at[1]); c != nil {
			t.Errorf("%v: %+v", at, c)
		}
	}
}

// A cell of which only the notes differ differs.
func TestDiffSeesNotes(t *testing.T) {
	before := small(t, func(*change) {})
	after := small(t, func(c *change) { c.store("cache").Rebuild.Procedure = "Start it from the newest image." })
	c := Diff(before, after)
	if len(c.Cells) == 0 || len(c.Opened)+len(c.Closed)+len(c.Turned)+len(c.Points) > 0 {
		t.Fatalf("%+v", c)
	}
	for _, x := range c.Cells {
		if x.StoreID != "cache" || x.Before == nil || x.After == nil || x.Before.Outcome != x.After.Outcome || x.After.Notes[0] != "Start it from the newest image." {
			t.Errorf("%+v", x)
		}
	}
}
