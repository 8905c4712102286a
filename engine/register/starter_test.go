package register

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Both starters are sound, say the same, and show what a register finds.
func TestStarter(t *testing.T) {
	docs := map[string]*Document{}
	for _, syntax := range []string{"toml", "yaml"} {
		data, err := Starter(syntax)
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, "starter."+syntax, data)
		doc, err := s.Derive(Settings{On: "2026-12-01"})
		if err != nil {
			t.Fatal(err)
		}
		doc.Source = ""
		docs[syntax] = doc
	}
	if d := cmp.Diff(docs["toml"], docs["yaml"]); d != "" {
		t.Errorf("toml and yaml differ:\n%s", d)
	}
	doc := docs["toml"]
	if doc.Profile != Full {
		t.Errorf("a new register has all rules, not %q", doc.Profile)
	}
	var codes []Code
	for _, f := range doc.Findings {
		codes = append(codes, f.Code)
	}
	want := []Code{"no-offsite-copy", "recovery-depends-on-home-uplink", "restore-never-drilled", "writes-depend-on-home-uplink", "migration-rollback-untested", "store-not-monitored", "design-not-adopted", "store-not-monitored"}
	if d := cmp.Diff(want, codes); d != "" {
		t.Errorf("findings (-want +got)\n%s", d)
	}
	if _, err := Starter("json"); err == nil {
		t.Error("a starter in JSON")
	}
}

// A rendered register derives itself again: its estate, profile and day are in it.
func TestRenderedAgain(t *testing.T) {
	data, err := Starter("toml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parse(t, "starter.toml", data).Derive(Settings{On: "2026-12-01"})
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, "elsewhere.json", doc.Encode())
	r, err := again.Check(Settings{Today: "2031-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Holds || r.On != "2026-12-01" || r.Profile != Full {
		t.Errorf("%+v", r)
	}
}

// Facts that were given apart come along, so that the rendering needs no other
// file.
func TestRenderedWithItsEstate(t *testing.T) {
	doc, err := declared(t).Derive(Settings{On: "2026-08-15", Profile: Full})
	if err != nil {
		t.Fatal(err)
	}
	r, err := parse(t, "r.json", doc.Encode()).Check(Settings{Today: "2031-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Holds || r.On != "2026-08-15" || len(r.Findings) != 28 {
		t.Errorf("%d findings as of %s: %+v %+v", len(r.Findings), r.On, r.Differences, r.Form)
	}
}
