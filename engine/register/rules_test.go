package register

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is the starter register, changed and derived by all rules: a server and
// a NAS at home, a VPS, a bucket.
func small(t *testing.T, mutate func(*change)) *Document {
	t.Helper()
	data, err := Starter("toml")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, "starter.toml", data)
	c := &change{t, &s.Declared, s.Declared.Estate, "2026-12-01"}
	mutate(c)
	doc, err := s.Derive(Settings{On: c.on, Profile: Full})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func (c *change) app() *Store { return c.store("app-db") }

// dump adds a running copy of the application's database.
func (c *change) dump(id, target, node, path string, minutes float64) *Copy {
	s := c.app()
	s.Copies = append(s.Copies, Copy{ID: id, Kind: LogicalDump, Target: target, Node: node, Path: path, Mode: Periodic,
		IntervalMinutes: &minutes, Serves: ServesNothing, Encrypted: true, Status: Running})
	return &s.Copies[len(s.Copies)-1]
}

func (c *change) drop(id string) {
	s := c.app()
	s.Copies = slices.DeleteFunc(s.Copies, func(x Copy) bool { return x.ID == id })
}

// bare leaves the application's database without copies and runbooks.
func (c *change) bare() *Store {
	s := c.app()
	s.Copies, s.Promotion, s.Restore = []Copy{}, nil, nil
	return s
}

func has(doc *Document, code Code, store string) string {
	for _, f := range doc.Findings {
		if f.Code == code && f.StoreID == store {
			return f.Detail
		}
	}
	return ""
}

func cellOf(doc *Document, p Posture, store, scenario string) *Cell {
	for i := range doc.Matrix {
		if c := &doc.Matrix[i]; c.Posture == p && c.StoreID == store && c.ScenarioID == scenario {
			return c
		}
	}
	return nil
}

// facts are what the tests below look at, as text.
func fact(doc *Document, what string) string {
	store := func(id string) *Store { return (&change{doc: doc}).store(id) }
	arg := strings.Fields(what)
	app := store("app-db")
	switch arg[0] {
	case "path":
		for _, p := range doc.Paths {
			if p.ID == arg[1] {
				return fmt.Sprint(p.DependsOnUplink)
			}
		}
	case "copy":
		for _, c := range app.Copies {
			if c.ID == arg[1] {
				return fmt.Sprintf("%s off=%t exposure=%v promotable=%t restorable=%t", c.Domain, c.OffDomain, c.ExposureMinutes, c.Promotable, c.Restorable)
			}
		}
	case "domains":
		return fmt.Sprint(app.Domains)
	case "today":
		return app.Today.String()
	case "design":
		return Protection{app.Design.RPOMinutes, app.Design.SiteRPOMinutes, app.Design.HasOffsite, app.Design.CopyCount}.String() + ", off-site " + span(app.Design.OffsiteRPOMinutes)
	case "uplink":
		return fmt.Sprintf("%+v", store(arg[1]).UplinkExposure)
	case "drill":
		if app.LastDrill == nil {
			return "none"
		}
		return string(app.LastDrill.Date)
	case "worst":
		return string(app.Worst) + " " + string(app.WorstToday)
	case "cell":
		c := cellOf(doc, Posture(arg[1]), arg[2], arg[3])
		var sides []string
		for _, s := range c.Partitions {
			sides = append(sides, s.ID+"="+string(s.Outcome))
		}
		return fmt.Sprintf("%s %s %s w%d", c.Outcome, span(c.Minutes), strings.Join(sides, ","), c.ConcurrentWriters)
	case "note":
		return strings.Join(cellOf(doc, Posture(arg[1]), arg[2], arg[3]).Notes, "|")
	case "finding":
		return has(doc, Code(arg[1]), arg[2])
	case "scenario":
		for _, s := range doc.Scenarios {
			if s.ID == arg[1] {
				return fmt.Sprintf("%d %d %d %d", s.Surviving, s.SurvivingToday, s.Lost, s.Total)
			}
		}
	case "count":
		for _, c := range doc.Summary.Counters() {
			if c.Name == arg[1] {
				return fmt.Sprint(c.Value)
			}
		}
	}
	return "?"
}

// Each case tells a rule of the reference from an alternative that it refutes
// or does not choose; the name says which.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		mutate func(*change)
		what   string
		want   string
	}{
		{"uplink: the closure, not the direct transits", func(c *change) {
			c.estate.DependsOn = Keyed[[]string]{{"tunnel", []string{"router"}}, {"router", []string{"isp"}}}
		}, "path mesh", "true"},
		{"uplink: an entity is in its own closure", func(c *change) {}, "path home-egress", "true"},
		{"uplink: another dependency is none", func(c *change) {
			c.estate.DependsOn = Keyed[[]string]{{"tunnel", []string{"power"}}, {"isp", []string{"tunnel"}}}
		}, "path mesh", "false"},
		{"domain: the target's, not the feeder's", func(c *change) { c.copy("app-db-bucket").Node = "server" }, "copy app-db-bucket", "offsite off=true exposure=360 promotable=false restorable=true"},
		{"A1: a periodic replica is still a replica", func(c *change) {
			x := c.copy("app-db-replica")
			x.Mode, x.LagSec, x.IntervalMinutes = Periodic, nil, ptr(5.0)
		}, "copy app-db-replica", "provider off=true exposure=5 promotable=true restorable=false"},
		{"A1: a continuous archive is restorable", func(c *change) {
			x := c.copy("app-db-dump")
			x.Kind, x.Mode, x.LagSec, x.IntervalMinutes = WALArchive, Continuous, ptr(90.0), nil
		}, "copy app-db-dump", "home off=false exposure=1.5 promotable=false restorable=true"},
		{"domains: all copies in their order, home where it comes", func(c *change) {}, "domains", "[provider home offsite]"},
		{"domains: home last if no copy is there", func(c *change) { c.drop("app-db-dump"); c.app().Restore = nil }, "domains", "[provider offsite home]"},
		{"today: running copies only", func(c *change) { c.copy("app-db-replica").Status = Planned }, "today", "1d / site none, 2 places, no off-site copy"},
		{"design: all copies", func(c *change) { c.copy("app-db-replica").Status = Planned }, "design", "30s / site 30s, 4 places, off-site, off-site 6h"},
		{"A3: an unmanned room of ours is off-site", func(c *change) {
			c.estate.Nodes = append(c.estate.Nodes, Entry[Node]{"vault", Node{"cellar", false}})
			c.estate.Targets = append(c.estate.Targets, Entry[Target]{"vault", Target{"cellar", ptr("vault")}})
			for i := range c.doc.Scenarios {
				c.doc.Scenarios[i].LostNodes = append(c.doc.Scenarios[i].LostNodes, "vault")
			}
			c.dump("app-db-vault", "vault", "nas", "lan", 720)
		}, "today", "30s / site 30s, 4 places, off-site"},
		{"A3: outside home is not off-site", func(c *change) { c.drop("app-db-bucket") }, "design", "30s / site 30s, 3 places, no off-site copy, off-site none"},
		{"copies: a dump on the primary's host counts", func(c *change) {
			c.estate.Targets = append(c.estate.Targets, Entry[Target]{"server", Target{"home", ptr("server")}})
			c.dump("app-db-local", "server", "server", "lan", 60)
		}, "today", "30s / site 30s, 4 places, no off-site copy"},
		{"A4: every running copy, not any", func(c *change) { c.copy("app-db-bucket").Status = Running }, "uplink app-db", "{Writes:false Offsite:false OffsiteIndependent:true OffsiteIndependentPlanned:false}"},
		{"A5: planned only", func(c *change) {}, "uplink app-db", "{Writes:false Offsite:true OffsiteIndependent:false OffsiteIndependentPlanned:true}"},
		{"uplink: a copy at home is not off-site", func(c *change) { c.copy("app-db-replica").Status = Planned; c.copy("app-db-dump").Path = "home-egress" }, "uplink app-db", "{Writes:false Offsite:false OffsiteIndependent:false OffsiteIndependentPlanned:true}"},
		{"A6: a writer at home does not cross", func(c *change) {
			c.app().Writers = append(c.app().Writers, Writer{ID: "near", Node: "nas", Mode: Direct, Path: ptr("home-egress")})
		}, "uplink app-db", "{Writes:false Offsite:true OffsiteIndependent:false OffsiteIndependentPlanned:true}"},
		{"A6: a direct writer elsewhere does", func(c *change) {
			c.app().Writers = append(c.app().Writers, Writer{ID: "far", Node: "vps", Mode: Direct, Path: ptr("mesh")})
		}, "uplink app-db", "{Writes:true Offsite:true OffsiteIndependent:false OffsiteIndependentPlanned:true}"},
		{"A6: a queue holds", withQueue, "uplink app-db", "{Writes:false Offsite:true OffsiteIndependent:false OffsiteIndependentPlanned:true}"},
		{"A7: the latest drill, not the last", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-11-02", Outcome: Fail}, {Date: "2026-10-01", Outcome: Pass, MeasuredMinutes: ptr(5.0)}}
		}, "drill", "2026-11-02"},

		{"A7: of one day, the one declared last", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-11-02", Outcome: Fail}, {Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(5.0)}}
		}, "count drilled", "1"},

		{"cell 1: a vendor that can be reached", vendorHeld, "cell target app-db lose-server", "writable none vps=writable,home=writable w0"},
		{"cell 1: a vendor that cannot", vendorHeld, "cell target app-db lose-uplink", "lost none home=lost,vps=writable w0"},
		{"cell 2: the primary before any copy", func(c *change) {}, "cell target app-db lose-uplink", "writable none home=writable,vps=read-only w1"},
		{"cell 3: a copy that serves reads", func(c *change) {}, "cell current app-db lose-server", "read-only 20m vps=read-only,home=restore-required w0"},
		{"A8: reads before a restore", func(c *change) { c.copy("app-db-bucket").Status = Running }, "cell current app-db lose-server", "read-only 20m vps=read-only,home=restore-required w0"},
		{"A16: a replica that serves nothing", func(c *change) { c.copy("app-db-replica").Serves = ServesNothing }, "cell current app-db lose-server", "lost none vps=lost,home=restore-required w0"},
		{"cell 3: minutes are the promoted copy's", func(c *change) {
			x := c.copy("app-db-replica")
			other := *x
			other.ID = "app-db-second"
			c.app().Copies = append([]Copy{other}, c.app().Copies...)
			c.app().Copies[1].Status = Planned
		}, "cell current app-db lose-server", "read-only none vps=read-only,home=restore-required w0"},
		{"cell 3: the promoted copy decides where several serve", func(c *change) {
			other := *c.copy("app-db-replica")
			other.ID = "app-db-second"
			c.app().Copies = append([]Copy{other}, c.app().Copies...)
		}, "cell current app-db lose-server", "read-only 20m vps=read-only,home=restore-required w0"},
		{"cell 3a: automatic promotion", func(c *change) { c.app().Promotion.Trigger = Automatic }, "cell current app-db lose-uplink", "writable none home=writable,vps=writable w2"},
		{"cell 3a: minutes", func(c *change) { c.app().Promotion.Trigger = Automatic }, "cell current app-db lose-server", "writable 20m vps=writable,home=restore-required w1"},
		{"cell 3a: only the copy that the runbook promotes", func(c *change) {
			c.app().Promotion.Trigger = Automatic
			other := *c.copy("app-db-replica")
			other.ID, other.Node, other.Target, other.Path = "app-db-second", "nas", "nas-backups", "lan"
			c.app().Copies = append(c.app().Copies, other)
		}, "cell current app-db lose-server", "writable 20m vps=writable,home=read-only w1"},
		{"cell 3 before 4: a rebuildable store that serves reads", func(c *change) {
			x := *c.copy("app-db-replica")
			x.ID = "cache-replica"
			c.store("cache").Copies = []Copy{x}
		}, "cell current cache lose-server", "read-only none vps=read-only,home=restore-required w0"},
		{"cell 4 before 5: a rebuildable store that has a copy", func(c *change) {
			x := *c.copy("app-db-bucket")
			x.ID, x.Status = "cache-bucket", Running
			c.store("cache").Copies = []Copy{x}
		}, "note current cache lose-server", "Start an empty Redis; users log in again."},
		{"A17: rebuildable needs no internet", func(c *change) { c.store("cache").Primary.Node = "vps" }, "cell current cache lose-uplink", "restore-required none home=restore-required,vps=writable w1"},
		{"cell 4: the procedure, verbatim", func(c *change) {}, "note current cache lose-server", "Start an empty Redis; users log in again."},
		{"cell 5: RTO without a drill", onlyDump, "cell current app-db lose-server", "restore-required 1h vps=lost,home=restore-required w0"},
		{"A14: the measure of a passed drill", func(c *change) {
			onlyDump(c)
			c.app().Restore.Drills = []Drill{{Date: "2026-11-01", Outcome: Pass, MeasuredMinutes: ptr(7.0)}}
		}, "cell current app-db lose-server", "restore-required 7m vps=lost,home=restore-required w0"},
		{"A14: but not of a failed one", func(c *change) {
			onlyDump(c)
			c.app().Restore.Drills = []Drill{{Date: "2026-11-01", Outcome: Fail, MeasuredMinutes: ptr(7.0)}}
		}, "cell current app-db lose-server", "restore-required 1h vps=lost,home=restore-required w0"},
		{"A15: one copy", onlyDump, "note current app-db lose-server", "Only app-db-dump is reachable; recovery here means restoring it."},
		{"A15: several copies", func(c *change) { onlyDump(c); c.dump("app-db-dump2", "nas-backups", "nas", "lan", 60) }, "note current app-db lose-server",
			"Only restorable copies are reachable (app-db-dump, app-db-dump2); recovery here means restoring one."},
		{"cell 6: nothing", func(c *change) { c.bare() }, "note current app-db lose-server", "No copy of this data is reachable from this side of the break."},
		{"A9: the feeder, not the holder", func(c *change) { onlyDump(c); c.copy("app-db-dump").Node = "vps" }, "cell current app-db lose-server", "lost none vps=restore-required,home=lost w0"},
		{"A9: off-site needs internet", func(c *change) {
			c.bare()
			c.app().Primary.Node, c.app().Writers = "vps", nil
			c.dump("b", "bucket", "nas", "home-egress", 60)
		}, "cell current app-db lose-uplink", "lost none home=lost,vps=writable w1"},
		{"A9: internet alone reaches no bucket", func(c *change) { c.bare(); c.dump("b", "bucket", "server", "home-egress", 60) }, "cell current app-db lose-server", "lost none vps=lost,home=lost w0"},
		{"cell: the operator's side, not the best", func(c *change) { c.bare().Primary.Node = "vps"; c.app().Writers = nil }, "cell current app-db lose-uplink", "lost none home=lost,vps=writable w1"},
		{"cell: the operator's side, not the worst", func(c *change) { c.bare() }, "cell current app-db lose-uplink", "writable none home=writable,vps=lost w1"},
		{"cell: planned copies are the target's", onlyPlanned, "cell target app-db lose-server", "restore-required 1h vps=restore-required,home=lost w0"},
		{"cell: and not today's", onlyPlanned, "cell current app-db lose-server", "lost none vps=lost,home=lost w0"},
		{"worst: of all scenarios", onlyPlanned, "worst", "restore-required lost"},
		{"A8: restore-required is worse than read-only", (*change).operatorAtHome, "worst", "restore-required restore-required"},
		{"A11: lost is the target's", onlyPlanned, "scenario lose-server", "0 0 0 2"},
		{"A11: and counts only lost", func(c *change) { c.bare() }, "scenario lose-server", "0 0 1 2"},
		{"surviving: writable or readable", func(c *change) {}, "scenario lose-uplink", "2 2 0 2"},
		{"surviving: per posture", func(c *change) { c.copy("app-db-replica").Status = Planned }, "scenario lose-server", "1 0 0 2"},

		{"finding 1: slower", func(c *change) { c.copy("app-db-replica").Status = Planned }, "finding rpo-not-met app-db", "Application database can be recovered to 1d ago; the objective is 15m. Planned: app-db-replica, app-db-bucket."},
		{"finding 1: none", func(c *change) { c.bare() }, "finding rpo-not-met app-db", "Application database has no running copy anything can be recovered from."},
		{"finding 1: the objective itself is met", func(c *change) { c.copy("app-db-replica").LagSec = ptr(900.0) }, "finding rpo-not-met app-db", ""},
		{"finding 1: rebuildable stores promise nothing", func(c *change) {}, "finding rpo-not-met cache", ""},
		{"finding 2: slower", func(c *change) { c.copy("app-db-replica").LagSec = ptr(3601.0) }, "finding site-rpo-not-met app-db", "Application database can be recovered to 60.1m ago from outside home; the objective is 1h. Planned: app-db-bucket."},
		{"A18: fewer than required, not one", func(c *change) { c.doc.Policy.DomainsRequired = 3 }, "finding copies-single-domain app-db",
			"Application database and every running copy of it sit in home, provider. That domain’s correlated risks are this data’s risks. Planned: app-db-bucket."},
		{"finding 5: only where policy asks", func(c *change) { c.doc.Policy.OffsiteRequired = false }, "finding no-offsite-copy app-db", ""},
		{"finding 6: paths once, closers named", func(c *change) { c.dump("d2", "replica-vps", "vps", "mesh", 60) }, "finding recovery-depends-on-home-uplink app-db",
			"Every running copy of Application database that leaves home is fed over the home uplink (mesh). While that uplink is down the primary keeps accepting writes and none of them are protected off-site — and nothing looks broken. app-db-bucket would close this once running."},
		{"finding 7: any durability", func(c *change) {}, "finding writes-depend-on-home-uplink cache",
			"login on vps writes through a proxy to Sessions and queue over \"mesh\", which crosses the home uplink. While that is down, vps cannot write at all."},
		{"A21: durable without a plan", func(c *change) { c.app().Restore = nil }, "finding restore-never-drilled app-db", "Nobody has ever restored Application database."},
		{"A21: not rebuildable", func(c *change) {}, "finding restore-never-drilled cache", ""},
		{"A21: a failed drill is a drill", func(c *change) { c.app().Restore.Drills = []Drill{{Date: "2026-11-01", Outcome: Fail}} }, "finding restore-never-drilled app-db", ""},
		{"A19: holders, not feeders", func(c *change) { c.bare(); c.dump("b", "bucket", "server", "home-egress", 60) }, "finding store-lost-in-scenario app-db", ""},
		{"A19: lost with every holder", func(c *change) { c.bare(); c.dump("d", "nas-backups", "vps", "mesh", 60) }, "finding store-lost-in-scenario app-db",
			"\"The house is gone\" destroys server, nas, and every copy of Application database that runs today is on it. The data is gone, not merely unreachable."},
		{"finding 10: only critical stores", func(c *change) { c.bare().Criticality = ServiceCritical }, "finding store-lost-in-scenario app-db", ""},
		{"finding 10: estate-critical is critical", func(c *change) { c.bare().Criticality = EstateCritical }, "finding store-lost-in-scenario app-db",
			"\"The server is gone\" destroys server, and every copy of Application database that runs today is on it. The data is gone, not merely unreachable."},
		{"A20: off-site counts", func(c *change) {}, "finding design-not-adopted app-db", "Application database reaches 30s / site 30s only once app-db-bucket is running. Today it is 30s / site 30s."},
		{"A20: copies do not", func(c *change) {
			c.copy("app-db-bucket").Status = Running
			c.doc.Policy.CopiesRequired = 9
			c.dump("more", "nas-backups", "nas", "lan", 60).Status = Planned
		}, "finding design-not-adopted app-db", ""},
		{"A20: the design itself must do", func(c *change) { c.app().Objectives.SiteRPOMinutes = 0.1 }, "finding design-not-adopted app-db", ""},
		{"A20: and its recovery point", func(c *change) { c.app().Objectives.RPOMinutes = 0.1 }, "finding design-not-adopted app-db", ""},
		{"A20: off-site only where policy asks", func(c *change) {
			c.doc.Policy.OffsiteRequired = false
			c.drop("app-db-bucket")
			c.copy("app-db-replica").Status = Planned
		}, "finding design-not-adopted app-db", "Application database reaches 30s / site 30s only once app-db-replica is running. Today it is 1d / site none."},
		{"finding 13: reversible or not", func(c *change) {
			m := c.migration("m-001")
			m.Reversible, m.Rollback.Method = false, RollForward
		}, "finding migration-rollback-untested app-db", "The rollback for \"Add an owner to each task\" has never been executed against anything."},
		{"restore-plan-missing", func(c *change) { c.app().Restore.Steps = nil }, "finding restore-plan-missing app-db", "Nothing says how Application database is restored."},
		{"rebuild-plan-missing", func(c *change) { c.store("cache").Rebuild.Procedure = " " }, "finding rebuild-plan-missing cache", "Nothing says how Sessions and queue is rebuilt."},
		{"gate: a replica cannot be restored from", func(c *change) { c.migration("m-001").BackupGate = ptr("app-db-replica") }, "finding migration-gate-not-running app-db",
			"\"Add an owner to each task\" relies on app-db-replica, which cannot be restored from."},
		{"not drained: only destructive changes", func(c *change) { withQueue(c) }, "finding migration-not-drained app-db", ""},
		{"not drained: the queue that drains here", func(c *change) {
			withQueue(c)
			m := c.migration("m-001")
			m.Style, m.BackupGate = Destructive, ptr("app-db-dump")
		}, "finding migration-not-drained app-db", "\"Add an owner to each task\" does not drain journal first."},
		{"automatic promotion in a large estate", func(c *change) {
			c.app().Promotion.Trigger = Automatic
			c.doc.Policy.QuorumMinDomains = 2
		}, "finding promotion-is-automatic app-db", ""},
		{"a drill of the last day is fresh", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-09-02", Outcome: Pass, MeasuredMinutes: ptr(60.0)}}
		}, "finding restore-drill-stale app-db", ""},
		{"a restore may take its objective", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-09-02", Outcome: Pass, MeasuredMinutes: ptr(60.0)}}
		}, "finding restore-exceeds-rto app-db", ""},
		{"and a promotion too", func(c *change) { c.app().Promotion.Minutes = 60 }, "finding promotion-exceeds-rto app-db", ""},
		{"but not more", func(c *change) { c.app().Promotion.Minutes = 61 }, "finding promotion-exceeds-rto app-db", "Promoting app-db-replica takes 61m; the objective is 1h."},
		{"a measured promotion may take its objective", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(60.0)}}
		}, "finding promotion-exceeds-rto app-db", ""},
		{"and no more", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(60.1), MeasuredMs: ptr(int64(3_600_001))}}
		}, "finding promotion-exceeds-rto app-db", "Promoting app-db-replica took 60.1m on 2026-11-02; the objective is 1h."},
		{"the last that passed counts, not one that failed since", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-03", Outcome: Fail, MeasuredMinutes: ptr(5.0)}, {Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(61.0)}, {Date: "2026-11-01", Outcome: Pass, MeasuredMinutes: ptr(1.0)}}
		}, "finding promotion-exceeds-rto app-db", "Promoting app-db-replica took 61m on 2026-11-02; the objective is 1h."},
		{"a promotion may take what is declared", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(20.0)}}
		}, "finding promotion-slower-than-declared app-db", ""},
		{"and is slower when it takes longer", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(20.1)}}
		}, "finding promotion-slower-than-declared app-db", "Promoting app-db-replica took 20.1m on 2026-11-02; 20m are declared."},
		{"a promotion that was never drilled", func(*change) {}, "finding promotion-drill-failed app-db", ""},
		{"a promotion drill that passed", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-01", Outcome: Fail}, {Date: "2026-11-02", Outcome: Pass, MeasuredMinutes: ptr(1.0)}}
		}, "finding promotion-drill-failed app-db", ""},
		{"a promotion drill that failed", func(c *change) {
			c.app().Promotion.Drills = []Drill{{Date: "2026-11-02", Outcome: Fail}, {Date: "2026-11-01", Outcome: Pass, MeasuredMinutes: ptr(1.0)}}
		}, "finding promotion-drill-failed app-db", "The last promotion drill of Application database, on 2026-11-02, ended in fail."},
		{"a rehearsal closes nothing", func(c *change) {
			c.app().Rehearsals = []Rehearsal{{Date: "2026-11-02", Procedure: Restoring, Outcome: Pass, MeasuredMinutes: ptr(1.0)}}
		}, "finding restore-never-drilled app-db", "Nobody has ever restored Application database from app-db-dump."},
		{"nor may a restore", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-09-02", Outcome: Pass, MeasuredMinutes: ptr(60.1)}}
		}, "finding restore-exceeds-rto app-db", "The last restore of Application database took 60.1m; the objective is 1h."},
		{"a planned copy leaves nothing unencrypted", func(c *change) { c.copy("app-db-bucket").Encrypted = false }, "finding copy-leaves-unencrypted app-db", ""},
		{"a running one does", func(c *change) { x := c.copy("app-db-bucket"); x.Encrypted, x.Status = false, Running }, "finding copy-leaves-unencrypted app-db", "app-db-bucket leaves home for offsite unencrypted."},
		{"a drain of the last day is fresh", func(c *change) { withQueue(c); c.store("journal").LocalFirst.DrainVerifiedOn = ptr(Date("2026-09-02")) }, "finding drain-verification-stale journal", ""},
		{"and of the day before is not", func(c *change) { withQueue(c); c.store("journal").LocalFirst.DrainVerifiedOn = ptr(Date("2026-09-01")) }, "finding drain-verification-stale journal",
			"Journal last drained after a disconnect on 2026-09-01, 91 days ago; policy wants 90."},
		{"a gate as old as it may be", func(c *change) {
			c.migration("m-001").BackupGate = ptr("app-db-dump")
			c.estate.CopyAgeMinutes = Keyed[float64]{{"app-db-dump", 1440}}
		}, "finding migration-gate-stale app-db", ""},
		{"a gate of unknown age", func(c *change) { c.migration("m-001").BackupGate = ptr("app-db-dump") }, "finding migration-gate-stale app-db", ""},
		{"a migration that hurts no running replica", func(c *change) { c.migration("m-001").ReplicaSafe = false; c.copy("app-db-replica").Status = Planned }, "finding migration-not-replica-safe app-db", ""},
		{"a rollback may lose its objective", func(c *change) { c.migration("m-001").Rollback.MaxDataLossMinutes = 15 }, "finding migration-rollback-exceeds-rpo app-db", ""},
		{"and no more", func(c *change) { c.migration("m-001").Rollback.MaxDataLossMinutes = 15.1 }, "finding migration-rollback-exceeds-rpo app-db",
			"The rollback for \"Add an owner to each task\" loses up to 15.1m; the objective is 15m."},
		{"a queue drains its own changes", func(c *change) {
			withQueue(c)
			c.doc.Migrations = append(c.doc.Migrations, Migration{ID: "m-002", Name: "Shrink", Store: "journal", Style: Destructive, ReplicaSafe: true, Rollback: Rollback{Method: RollForward}})
		}, "finding migration-not-drained journal", "\"Shrink\" does not drain journal first."},
		{"an acceptance on its last day holds", func(c *change) { c.on = "2027-06-01"; acceptCopies(c) }, "count accepted", "1"},
		{"and the day after does not", func(c *change) { c.on = "2027-06-02"; acceptCopies(c) }, "count accepted", "0"},
		{"an acceptance is of a store", func(c *change) {
			c.doc.Policy.CopiesRequired = 4
			c.estate.Acceptances = []Acceptance{{"copies-below-policy", "cache", "r", "me", "2027-06-01"}}
		}, "finding acceptance-unused cache", "me accepted copies-below-policy, which no longer applies."},

		{"meetingRpo: today's", func(c *change) { c.copy("app-db-replica").Status = Planned }, "count meetingRpo", "0"},
		{"meetingRpo: the site does not count", func(c *change) { c.app().Objectives.SiteRPOMinutes = 0.1 }, "count meetingRpo", "1"},
		{"A12: the last drill passed", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2026-10-01", Outcome: Pass, MeasuredMinutes: ptr(5.0)}, {Date: "2026-11-02", Outcome: Fail}}
		}, "count drilled", "0"},
		{"A12: age does not count", func(c *change) {
			c.app().Restore.Drills = []Drill{{Date: "2020-10-01", Outcome: Pass, MeasuredMinutes: ptr(5.0)}}
		}, "count drilled", "1"},
		{"A13: exposed writes do not count", func(c *change) {
			c.copy("app-db-bucket").Status = Running
			c.app().Writers = append(c.app().Writers, Writer{ID: "far", Node: "vps", Mode: Direct, Path: ptr("mesh")})
		}, "count uplinkDependent", "0"},
		{"A22: withOffsite is of durable stores", func(c *change) {
			x := *c.copy("app-db-bucket")
			x.ID, x.Status = "cache-bucket", Running
			c.store("cache").Copies = []Copy{x}
		}, "count withOffsiteToday", "0"},
		{"A22: in the design too", func(c *change) {
			x := *c.copy("app-db-bucket")
			x.ID = "cache-bucket"
			c.store("cache").Copies = []Copy{x}
		}, "count withOffsite", "1"},
		{"reversible migrations", func(c *change) {}, "count migrationsReversible", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fact(small(t, c.mutate), c.what); got != c.want {
				t.Errorf("%s\n got %q\nwant %q", c.what, got, c.want)
			}
		})
	}
}

func acceptCopies(c *change) {
	c.doc.Policy.CopiesRequired = 4
	c.estate.Acceptances = []Acceptance{{"copies-below-policy", "app-db", "two will do", "me", "2027-06-01"}}
}

func onlyDump(c *change) {
	c.drop("app-db-replica")
	c.drop("app-db-bucket")
	c.app().Promotion = nil
	c.operatorAtHome()
}

// operatorAtHome puts the operator beside the NAS while the server is gone.
func (c *change) operatorAtHome() {
	for i := range c.doc.Scenarios {
		if s := &c.doc.Scenarios[i]; s.ID == "lose-server" {
			s.Partitions[0].Operator, s.Partitions[1].Operator = false, true
		}
	}
}

func onlyPlanned(c *change) {
	c.drop("app-db-replica")
	c.drop("app-db-dump")
	c.app().Promotion, c.app().Restore = nil, nil
}

func withQueue(c *change) {
	c.app().Writers = append(c.app().Writers, Writer{ID: "far", Node: "vps", Mode: Queued, Path: ptr("mesh"), Via: ptr("journal")})
	c.doc.Stores = append(c.doc.Stores, Store{ID: "journal", Name: "Journal", Durability: Rebuildable, Criticality: Convenience, WriteModel: LocalFirstQueue,
		Primary: Primary{Node: "vps"}, Rebuild: &Rebuild{From: "nothing", Procedure: "start"}, LocalFirst: &LocalFirst{DrainsTo: "app-db"}})
}

func vendorHeld(c *change) {
	s := c.bare()
	s.Primary = Primary{Vendor: "V", Domain: "vendor"}
	s.WriteModel, s.Vendor = VendorManaged, &Vendor{Name: "V", ExitPlan: "leave"}
	s.Writers = nil
}

// A copy that nobody can use protects nothing (A2). Every kind that a document
// can declare is of use, so this is told to the function itself.
func TestUselessCopiesDoNotCount(t *testing.T) {
	c := &Copy{ExposureMinutes: 5, Status: Running}
	p, _ := protection([]copyView{{Copy: c}}, func(*copyView) bool { return true })
	if p.RPOMinutes != nil {
		t.Errorf("rpo %v from a copy that can be neither restored nor promoted", *p.RPOMinutes)
	}
}

// Findings of a store stand in the rules' order, and only severity sorts them.
func TestOrder(t *testing.T) {
	doc := small(t, func(c *change) {
		c.bare()
		c.doc.Policy.CopiesRequired = 3
		acceptCopies(c)
		withQueue(c)
		c.store("journal").LocalFirst.DrainVerifiedOn = ptr(Date("2020-01-01"))
	})
	var got []string
	for _, f := range doc.Findings {
		at := ""
		if f.ScenarioID != nil {
			at = "@" + *f.ScenarioID
		}
		got = append(got, fmt.Sprintf("%s %s %s%s", f.Severity, f.StoreID, f.Code, at))
	}
	want := []string{
		"gap app-db rpo-not-met", "gap app-db site-rpo-not-met", "gap app-db copies-single-domain", "gap app-db no-offsite-copy",
		"gap app-db restore-never-drilled", "gap app-db store-lost-in-scenario@lose-server", "gap app-db store-lost-in-scenario@lose-home",
		"gap app-db restore-plan-missing",
		"gap cache writes-depend-on-home-uplink",
		"gap journal store-not-monitored", "gap journal drain-verification-stale",
		"gap app-db migration-rollback-untested",
		"accepted app-db copies-below-policy",
		"note app-db store-not-monitored", "note cache store-not-monitored",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The seed profile has thirteen codes and lets no acceptance expire.
func TestSeedProfile(t *testing.T) {
	seed, full := 0, 0
	for _, r := range Rules() {
		if r.Profile == Seed {
			seed++
		} else {
			full++
		}
	}
	// Two more came with promotions' drills, which the original does not have.
	if seed != 13 || full != 22+2 {
		t.Errorf("%d rules of the seed, %d further ones; want 13 and 24", seed, full)
	}
	data, _ := Starter("toml")
	s := parse(t, "starter.toml", data)
	s.Declared.Estate.Acceptances = []Acceptance{{"no-offsite-copy", "app-db", "r", "me", "2020-01-01"}, {"rpo-not-met", "app-db", "r", "me", "2020-01-01"}}
	s.Declared.Stores[0].Promotion.Fencing = ""
	for profile, want := range map[Profile]string{Seed: "accepted 1 gaps 4", Full: "accepted 0 gaps 6"} {
		doc, err := s.Derive(Settings{On: "2026-12-01", Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("accepted %d gaps %d", doc.Summary.Accepted, doc.Summary.Gaps); got != want {
			t.Errorf("%s: %s, want %s", profile, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for m, want := range map[float64]string{0: "0m", 0.5: "30s", 0.001: "1s", 1: "1m", 5: "5m", 15: "15m", 1.0 / 3: "20s", 60: "1h", 360: "6h", 90: "90m", 1440: "1d", 2880: "2d", 22.5: "22.5m", 120 + 1.0/60000: "120.1m"} {
		if got := span(&m); got != want {
			t.Errorf("span(%v) = %s, want %s", m, got, want)
		}
	}
	if got := span(nil); got != "none" {
		t.Errorf("span(nil) = %s", got)
	}
}

// Days are counted over any span that dates can have.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		from, to Date
		days     int
	}{{"2026-12-01", "2026-12-01", 0}, {"2026-03-28", "2026-03-30", 2}, {"2024-02-28", "2024-03-01", 2}, {"2026-12-02", "2026-12-01", -1}, {"1000-01-01", "2026-01-01", 374739}, {"0001-01-01", "9999-12-31", 3652058}} {
		if got := c.from.Days(c.to); got != c.days {
			t.Errorf("%s to %s: %d days, want %d", c.from, c.to, got, c.days)
		}
	}
}
