package review

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/assets"
	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/heat"
	"refbox/engine/recording"
	"refbox/vm/sim"
	"refbox/vm/sim/failover"
)

const arenaID = "primary-failover"

// recorded is a heat on simulated machines: one player is right, one only claims a
// fence, one switches and promotes nothing. It is run once.
var recorded = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "refbox-review-")
	if err != nil {
		return "", err
	}
	pkg, err := packageWith(filepath.Join(dir, "arena"), nil)
	if err != nil {
		return dir, err
	}
	for i, script := range []string{"right", "marker-only", "hasty"} {
		file := "players/" + script + ".sh"
		pkg.Manifest.Agents[i].Adapter, pkg.Manifest.Agents[i].Script = "script", &file
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, err = heat.Run(ctx, heat.Config{Package: pkg, Driver: sim.New(sim.Config{Programs: failover.Programs()}),
		Dir: filepath.Join(dir, "heat"), Runtime: filepath.Join(dir, "r"), Disks: filepath.Join(dir, "d")})
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := recorded(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// packageWith is the bundled arena in a folder, with some files changed.
func packageWith(dir string, edit map[string]func(string) string) (*arena.Package, error) {
	sub, err := fs.Sub(assets.Arenas(), arenaID)
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, sub); err != nil {
		return nil, err
	}
	for name, f := range edit {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(f(string(data))), 0o644); err != nil {
			return nil, err
		}
	}
	return arena.Load(dir)
}

// copied is the recorded heat, to be changed.
func copied(t *testing.T) string {
	t.Helper()
	from, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "heat")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(from, "heat"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func reviewed(t *testing.T, dir string, pkg *arena.Package, newer bool) Report {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := Heat(t.Context(), rec, pkg, newer, "no package is at hand")
	if err != nil {
		t.Fatal(err)
	}
	if r.Follow+r.Differ+r.Insufficient+r.Ruled != len(r.Verdicts) {
		t.Errorf("the sums are wrong: %+v", r)
	}
	return r
}

func bundled(t *testing.T) *arena.Package {
	t.Helper()
	pkg, err := arena.Load(arenaID)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func with(t *testing.T, file string, f func(string) string) *arena.Package {
	t.Helper()
	pkg, err := packageWith(filepath.Join(t.TempDir(), "arena"), map[string]func(string) string{file: f})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func only(r Report, s Status) (out []Verdict) {
	for _, v := range r.Verdicts {
		if v.Status == s {
			out = append(out, v)
		}
	}
	return out
}

func TestEveryVerdictFollows(t *testing.T) {
	r := reviewed(t, copied(t), bundled(t), false)
	kinds := map[string]int{}
	for _, v := range r.Verdicts {
		kinds[v.Kind+" "+v.Ruled.Verdict]++
		if v.Status != Follows {
			t.Errorf("%+v", v)
		}
	}
	for _, k := range []string{"milestone passed", "milestone failed", "attack withstood", "attack failed", "durable durable", "outcome won by failover-one"} {
		if kinds[k] == 0 {
			t.Errorf("nothing of kind %q was reviewed: %v", k, kinds)
		}
	}
}

func TestWithoutVerifiers(t *testing.T) {
	r := reviewed(t, copied(t), nil, false)
	if r.Differ != 0 || r.Insufficient < 10 || r.Follow != 2 { // durable, outcome
		t.Errorf("%d differ, %d follow", r.Differ, r.Follow)
	}
}

// rewrite changes an evidence file, and puts its new digest in the log, as whoever
// falsified a recording would.
func rewrite(t *testing.T, dir, record string, edit func(string) string) {
	t.Helper()
	file, log := filepath.Join(dir, record), filepath.Join(dir, "events.jsonl")
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now := []byte(edit(string(was)))
	if bytes.Equal(was, now) {
		t.Fatalf("%s was not changed", record)
	}
	events, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	events = bytes.ReplaceAll(events, []byte(digest(was)), []byte(digest(now)))
	if err := os.WriteFile(file, now, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, events, 0o644); err != nil {
		t.Fatal(err)
	}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func find(t *testing.T, r Report, kind, territory, milestone, verdict string) Verdict {
	t.Helper()
	for _, v := range r.Verdicts {
		if v.Kind == kind && v.Territory == territory && v.Milestone == milestone && v.Ruled.Verdict == verdict {
			return v
		}
	}
	t.Fatalf("no %s %s of %s in %s", kind, verdict, milestone, territory)
	return Verdict{}
}

// What was falsified is found, whichever part of it.
func TestFalsifiedVerdictsDiffer(t *testing.T) {
	pkg := bundled(t)
	clean := reviewed(t, copied(t), pkg, false)
	reads := find(t, clean, "milestone", "failover-one", "reads-restored", "passed")
	fence := find(t, clean, "attack", "failover-one", "old-primary-fenced", "withstood")
	lost := find(t, clean, "attack", "failover-two", "old-primary-fenced", "failed")
	for name, x := range map[string]struct {
		do   func(t *testing.T, dir string)
		want string // of the first that differs: what follows
	}{
		"an answer": {func(t *testing.T, dir string) {
			rewrite(t, dir, reads.Record, func(s string) string {
				return strings.Replace(strings.Replace(s, `"body":"primary","bytes":7`, `"body":"replica","bytes":7`, 1), `"body": "primary"`, `"body": "replica"`, 1)
			})
		}, "reads come from a replica"},
		"an attack's answer": {func(t *testing.T, dir string) {
			rewrite(t, dir, fence.Record, func(s string) string { return strings.Replace(s, `"state": "closed"`, `"state": "open"`, 1) })
		}, "and it came up"},
		"the file alone": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, reads.Record), []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"the log alone": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "events.jsonl")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte("GET /health: 502"), []byte("GET /health: 503")), 0o644); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"a verdict in both": {func(t *testing.T, dir string) {
			reason, _ := json.Marshal(lost.Ruled.Reason)
			file := filepath.Join(dir, "events.jsonl")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.ReplaceAll(data, []byte(`"held":false,"detail":`+string(reason)), []byte(`"held":true,"detail":"withstood"`))
			data = bytes.ReplaceAll(data, []byte(`"undone":false`), []byte(`"undone":true`))
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			rewrite(t, dir, lost.Record, func(s string) string {
				var e map[string]any
				if err := json.Unmarshal([]byte(s), &e); err != nil {
					t.Fatal(err)
				}
				e["verdict"], e["reason"] = "withstood", "withstood"
				delete(e, "category")
				out, _ := json.Marshal(e)
				return string(out)
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t)
			x.do(t, dir)
			bad := only(reviewed(t, dir, pkg, false), Differs)
			if len(bad) == 0 {
				t.Fatal("nothing differs")
			}
			if x.want != "" && (bad[0].Derived == nil || !strings.Contains(bad[0].Derived.Reason, x.want)) {
				t.Errorf("%+v", bad[0])
			}
		})
	}
}

// Newer verifiers over old records: they settle what they can.
func TestNewerVerifiers(t *testing.T) {
	const star = "verify/reads-restored.star"
	dir := copied(t)
	reads := func(r Report) Verdict { return find(t, r, "milestone", "failover-one", "reads-restored", "passed") }

	pkg := with(t, star, func(s string) string { return s + "\n# newer\n" })
	if v := reads(reviewed(t, dir, pkg, false)); v.Status != Insufficient || !strings.Contains(v.Why, "has changed since") {
		t.Errorf("another verifier was taken for the one that ruled: %+v", v)
	}
	r := reviewed(t, dir, pkg, true)
	if v := reads(r); v.Status != Follows || v.SameVerifier || r.Differ+r.Insufficient != 0 {
		t.Errorf("a comment changed a verdict: %+v", v)
	}

	pkg = with(t, star, func(s string) string {
		return strings.Replace(s, `require(role == "primary",`, `require(role == "emperor",`, 1)
	})
	if v := reads(reviewed(t, dir, pkg, true)); v.Status != Differs || v.Derived.Verdict != "failed" {
		t.Errorf("a stricter verifier: %+v", v)
	}

	pkg = with(t, star, func(s string) string {
		return strings.Replace(s, "def verify(seat):\n", "def verify(seat):\n    require(not seat.guest.exists(\"/etc/forged\"), \"forged\")\n", 1)
	})
	if v := reads(reviewed(t, dir, pkg, true)); v.Status != Insufficient || !strings.Contains(v.Why, "/etc/forged") || !strings.Contains(v.Why, "was not recorded") {
		t.Errorf("what was never asked: %+v", v)
	}

	pkg = with(t, star, func(s string) string {
		return strings.Replace(s, "def verify(seat):\n", "def verify(seat):\n    seat.guest.systemctl(\"restart\", \"x.service\")\n", 1)
	})
	if v := reads(reviewed(t, dir, pkg, true)); v.Status != Insufficient {
		t.Errorf("another disturbance: %+v", v)
	}

	pkg = with(t, "verify/old-primary-fenced.star", func(s string) string {
		return strings.Replace(s, `attack("the old primary's unit is started",`, `attack("it is set on fire",`, 1)
	})
	r = reviewed(t, dir, pkg, true)
	if v := find(t, r, "milestone", "failover-one", "old-primary-fenced", "passed"); v.Status != Insufficient || !strings.Contains(v.Why, "was not made") {
		t.Errorf("another attack: %+v", v)
	}
	if v := find(t, r, "attack", "failover-one", "old-primary-fenced", "withstood"); v.Status != Insufficient || !strings.Contains(v.Why, "no such attack") {
		t.Errorf("an attack that is no more: %+v", v)
	}
}

// What a person ruled is not derived, and says who.
func TestRuledVerdicts(t *testing.T) {
	dir := copied(t)
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := &reviewer{ctx: t.Context(), rec: rec, manifest: rec.Manifest(), w: rec.World(rec.Len()), begun: map[string]begun{}, byRecord: map[string]int{}, verifiers: map[string]verifier{}}
	for _, b := range []event.Body{
		event.RefereeRuling{Ruling: event.RulingRevoked, Territory: "one", Milestone: "m", Author: "ann", Reason: "x"},
		event.MilestoneRevoked{Territory: "one", Milestone: "m", Reason: "ruled by ann: x"},
		event.RefereeRuling{Ruling: event.RulingUpheld, Territory: "one", Milestone: "m", Author: "bob", Reason: "y"},
		event.MilestonePassed{Territory: "one", Milestone: "m"},
		event.MilestonePassed{Territory: "one", Milestone: "other"}, // nobody ruled about that
	} {
		x.event(0, event.Event{Body: b})
		x.last = b
	}
	if len(x.out) != 3 || x.out[0].Status != Ruled || x.out[0].Why != "revoked by ann: x" || x.out[1].Status != Ruled || x.out[1].Why != "upheld by bob: y" || x.out[2].Status != Insufficient {
		t.Errorf("%+v", x.out)
	}
}
