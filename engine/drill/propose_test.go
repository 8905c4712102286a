package drill

import (
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/register"
)

func arenaOf(name, procedure string, ids ...string) Arena {
	m := &arena.Manifest{Arena: arena.Arena{ID: name, DisplayName: "The " + name}, Procedure: &procedure, Clock: &arena.Clock{To: "done"}}
	for i, p := range []**string{&m.Store, &m.Copy, &m.Migration} {
		if i < len(ids) {
			*p = &ids[i]
		}
	}
	return Arena{Name: "./" + name, Manifest: m}
}

// For a red cell or a finding: the heat that is about it, or none and why.
func TestPropose(t *testing.T) {
	_, doc := starter(t)
	failover := arenaOf("failover", arena.Promotion)
	dump := arenaOf("restore-app", arena.Restore, "app-db", "app-db-dump")
	for _, x := range []struct {
		name   string
		q      Question
		arenas []Arena
		p      register.Procedure
		arena  string
		says   string
	}{
		{"a finding, and the store's arena", Question{Store: "app-db", Code: "restore-never-drilled"}, []Arena{failover, dump}, register.Restoring, "./restore-app", "is of app-db and follows its restore on a copy of app-db-dump"},
		{"a finding without an arena", Question{Store: "app-db", Code: "restore-never-drilled"}, []Arena{failover}, register.Restoring, "", `procedure = "restore", store = "app-db", copy = "app-db-dump"`},
		{"another store's arena", Question{Store: "app-db", Code: "restore-never-drilled"}, []Arena{arenaOf("x", arena.Restore, "cache", "c")}, register.Restoring, "", "No arena here"},
		{"an arena of a planned copy", Question{Store: "app-db", Code: "restore-never-drilled"}, []Arena{arenaOf("x", arena.Restore, "app-db", "app-db-bucket")}, register.Restoring, "", "No drill: app-db-bucket is only planned"},
		{"a finding that no heat closes", Question{Store: "app-db", Code: "no-offsite-copy"}, []Arena{failover, dump}, "", "", "No heat closes no-offsite-copy"},
		{"a rollback", Question{Store: "app-db", Code: "migration-rollback-untested", Migration: "m-001-owner"}, []Arena{arenaOf("back", arena.Rollback, "app-db", "app-db-dump", "m-001-owner")}, register.RollingBack, "./back", "follows its rollback"},
		{"another migration's rollback", Question{Store: "app-db", Code: "migration-rollback-untested", Migration: "m-001-owner"}, []Arena{arenaOf("back", arena.Rollback, "app-db", "app-db-dump", "m-002")}, register.RollingBack, "", `migration = "m-001-owner"`},
		{"a cell that is read-only", Question{Store: "app-db", Scenario: "lose-server"}, []Arena{failover}, register.Promoting, "./failover", "rehearses a promotion"},
		{"a cell that is read-only, with its own arena", Question{Store: "app-db", Scenario: "lose-server"}, []Arena{failover, arenaOf("own", arena.Promotion, "app-db", "app-db-replica")}, register.Promoting, "./own", "declared to be 20m"},
		{"a cell that stays writable", Question{Store: "app-db", Scenario: "lose-uplink"}, []Arena{failover}, "", "", "nothing to recover"},
		{"a cell that is made anew", Question{Store: "cache", Scenario: "lose-server"}, []Arena{failover}, "", "", "is made anew, from app-db"},
		{"no such scenario", Question{Store: "app-db", Scenario: "lose-moon"}, nil, "", "", "no scenario lose-moon"},
		{"no such store", Question{Store: "moon", Code: "restore-never-drilled"}, nil, "", "", "no store moon"},
		{"a restore that nobody declares", Question{Store: "cache", Code: "restore-never-drilled"}, []Arena{dump}, "", "", "cache declares no restore"},
	} {
		p := Propose(doc, x.q, x.arenas)
		if p.Procedure != x.p || p.Arena != x.arena || !strings.Contains(strings.Join(p.Says, "\n"), x.says) {
			t.Errorf("%s: %+v", x.name, p)
		}
		if p.Rehearses != (x.arena == "./failover") {
			t.Errorf("%s: rehearses %t", x.name, p.Rehearses)
		}
	}
	if p := Propose(doc, Question{Store: "app-db", Scenario: "lose-server"}, nil); len(p.Closes) != 0 {
		t.Errorf("closes %v", p.Closes)
	}
	if p := Propose(doc, Question{Store: "app-db", Code: "restore-never-drilled"}, []Arena{dump}); !slices.Equal(p.Closes, []register.Code{"restore-never-drilled"}) {
		t.Errorf("closes %v", p.Closes)
	}
}

// A cell that is lost has nothing that a heat could recover, and one that is restored
// is told so; a promotion over its objective closes by a quick one unless it is
// declared to be slow.
func TestProposeMore(t *testing.T) {
	src, _ := starter(t)
	for i := range src.Declared.Stores[0].Copies {
		src.Declared.Stores[0].Copies[i].Status = register.Planned
	}
	doc, err := src.Derive(register.Settings{On: "2026-12-01"})
	if err != nil {
		t.Fatal(err)
	}
	if p := Propose(doc, Question{Store: "app-db", Scenario: "lose-server"}, nil); p.Procedure != "" || !strings.Contains(p.Says[0], "No heat turns this cell") {
		t.Errorf("%+v", p)
	}
	src, _ = starter(t)
	src.Declared.Stores[0].Copies[0].Status = register.Planned
	src.Declared.Stores[0].Copies[1].Node = "vps"
	if doc, err = src.Derive(register.Settings{On: "2026-12-01"}); err != nil {
		t.Fatal(err)
	}
	if p := Propose(doc, Question{Store: "app-db", Scenario: "lose-server"}, nil); p.Procedure != register.Restoring || !strings.Contains(p.Says[0], "has to be restored") {
		t.Errorf("%+v", p)
	}
	src, _ = starter(t)
	over := 61.0
	src.Declared.Stores[0].Promotion.Drills = []register.Drill{{Date: "2026-11-01", Outcome: register.Pass, MeasuredMinutes: &over}}
	if doc, err = src.Derive(register.Settings{On: "2026-12-01"}); err != nil {
		t.Fatal(err)
	}
	if p := Propose(doc, Question{Store: "app-db", Code: "promotion-exceeds-rto"}, nil); p.Procedure != register.Promoting {
		t.Errorf("%+v", p)
	}
	src.Declared.Stores[0].Promotion.Minutes = 61
	if doc, err = src.Derive(register.Settings{On: "2026-12-01"}); err != nil {
		t.Fatal(err)
	}
	if p := Propose(doc, Question{Store: "app-db", Code: "promotion-exceeds-rto"}, nil); p.Procedure != "" {
		t.Errorf("%+v", p)
	}
}
