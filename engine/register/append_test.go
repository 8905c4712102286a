package register

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stage is a small sound register, as each of the three languages writes it.
var stage = map[string]string{
	"toml": `# the estate
status = "live" # for now
[policy]
copiesRequired = 1
domainsRequired = 1
offsiteRequired = false
drillMaxAgeDays = 90
quorumMinDomains = 3
uplinkEntities = []

[estate.nodes]
here = { domain = "d", compute = true }
[estate.targets]
disk = { domain = "d", node = "here" }

[[paths]]
id = "lan"
name = "LAN"
transits = []

[[stores]]
id = "one" # the first
name = "One"
durability = "durable"
criticality = "convenience"
writeModel = "local-first-queue"
unmonitored = "It is an example."
primary = { node = "here" }
objectives = { rpoMinutes = 15, siteRpoMinutes = 15, rtoMinutes = 30 }
  [[stores.copies]]
  id = "replica"
  kind = "streaming-replica"
  target = "disk"
  node = "here"
  path = "lan"
  mode = "continuous"
  lagSec = 1
  encrypted = true
  status = "running"
  [[stores.copies]]
  id = "dump"
  kind = "logical-dump"
  target = "disk"
  node = "here"
  path = "lan"
  mode = "periodic"
  intervalMinutes = 60
  encrypted = true
  status = "running"
  [stores.localFirst]
  drainsTo = "two"
  durable = true # on disk
  # nobody has tried it
  [stores.promotion]
  trigger = "manual"
  from = "replica"
  minutes = 20
  steps = [
    "a", # first
    "b",
  ]
  # Restores.
  [stores.restore]
  from = "dump"
  verify = """
# not a comment
"""
  # drills go here

# The second store.
[[stores]]
id = "two"
name = "Two"
durability = "rebuildable"
criticality = "convenience"
writeModel = "single-writer"
unmonitored = "It is an example."
primary = { node = "here" }
rebuild = { from = "nothing" }

[[migrations]]
id = "m"
name = "M"
store = "one"
style = "in-place"
reversible = false
rollback.method = "restore"
rollback.maxDataLossMinutes = 0 # none
`,
	"yaml": `# the estate
status: live # for now
policy: {copiesRequired: 1, domainsRequired: 1, offsiteRequired: false, drillMaxAgeDays: 90, quorumMinDomains: 3, uplinkEntities: []}
estate:
  nodes: {here: {domain: d, compute: true}}
  targets: {disk: {domain: d, node: here}}
paths:
- {id: lan, name: LAN, transits: []}
stores:
# The first store.
-   id: one # the first
    name: One
    durability: durable
    criticality: convenience
    writeModel: local-first-queue
    unmonitored: It is an example.
    primary: {node: here}
    objectives: {rpoMinutes: 15, siteRpoMinutes: 15, rtoMinutes: 30}
    copies:
    - {id: replica, kind: streaming-replica, target: disk, node: here, path: lan, mode: continuous, lagSec: 1, encrypted: true, status: running}
    - id: dump
      kind: logical-dump
      target: disk
      node: here
      path: lan
      mode: periodic
      intervalMinutes: 60
      encrypted: true
      status: running
    localFirst:
        drainsTo: two
        durable: true # on disk
        # nobody has tried it
    promotion:
        trigger: manual
        from: replica
        minutes: 20
        steps: [
          "a", # first
          "b",
        ]
    # Restores.
    restore:
        from: dump
        verify: |
            rows
            # not a comment
    # about the next one

# The second store.
-   id: two
    name: Two
    durability: rebuildable
    criticality: convenience
    writeModel: single-writer
    unmonitored: It is an example.
    primary: {node: here}
    rebuild: {from: nothing}
migrations:
- id: m
  name: M
  store: one
  style: in-place
  reversible: false
  rollback: {method: restore, maxDataLossMinutes: 0} # none
`,
	"json": `{
   "status": "live",
   "policy": {"copiesRequired": 1, "domainsRequired": 1, "offsiteRequired": false, "drillMaxAgeDays": 90, "quorumMinDomains": 3, "uplinkEntities": []},
   "estate": {"nodes": {"here": {"domain": "d", "compute": true}}, "targets": {"disk": {"domain": "d", "node": "here"}}},
   "paths": [{"id": "lan", "name": "LAN", "transits": []}],
   "stores": [
      {
         "id": "one", "name": "One", "durability": "durable", "criticality": "convenience",
         "writeModel": "local-first-queue", "unmonitored": "It is an \"example\" ] }.",
         "primary": {"node": "here"},
         "objectives": {"rpoMinutes": 15, "siteRpoMinutes": 15, "rtoMinutes": 30},
         "copies": [
            {"id": "replica", "kind": "streaming-replica", "target": "disk", "node": "here", "path": "lan", "mode": "continuous", "lagSec": 1, "encrypted": true, "status": "running"},
            {"id": "dump", "kind": "logical-dump", "target": "disk", "node": "here", "path": "lan", "mode": "periodic", "intervalMinutes": 60, "encrypted": true, "status": "running"}
         ],
         "localFirst": {"drainsTo": "two", "durable": true, "drainVerifiedOn": null},
         "promotion": {
            "trigger": "manual",
            "from": "replica",
            "minutes": 20
         },
         "restore": {
            "from": "dump",
            "drills": []
         }
      },
      {"id": "two", "name": "Two", "durability": "rebuildable", "criticality": "convenience", "writeModel": "single-writer", "unmonitored": "x", "primary": {"node": "here"}, "rebuild": {"from": "nothing"}}
   ],
   "migrations": [{"id": "m", "name": "M", "store": "one", "style": "in-place", "reversible": false, "rollback": {"method": "restore", "maxDataLossMinutes": 0}}]
}
`}

// additions are one of each kind, and a second drill behind each first.
func additions() []Addition {
	drill := func(day Date, ms int64) Drill {
		return Drill{Date: day, Outcome: Pass, MeasuredMinutes: ptr(TenthsUp(ms)), MeasuredMs: &ms, Heat: "heat-1@0123456789ab/one", RestoredTo: `a "scratch" machine`, Note: "1 of 3 — 'won' # no comment: {x}, [y]"}
	}
	return []Addition{
		{Store: "one", Procedure: Restoring, Drill: drill("2026-11-01", 38_987)},
		{Store: "one", Procedure: Restoring, Drill: Drill{Date: "2026-11-02", Outcome: Fail}},
		{Store: "one", Procedure: Restoring, Drill: drill("2026-11-03", 1)},
		{Store: "one", Procedure: Promoting, Drill: drill("2026-11-01", 207_909)},
		{Store: "one", Procedure: Promoting, Drill: drill("2026-11-02", 7)},
		{Store: "one", Procedure: Draining, Drill: drill("2026-11-01", 8)},
		{Store: "one", Procedure: Draining, Drill: drill("2026-11-02", 8)},
		{Store: "one", Procedure: RollingBack, Migration: "m", Drill: drill("2026-11-01", 9)},
		{Store: "one", Procedure: RollingBack, Migration: "m", Drill: drill("2026-11-02", 9)},
		{Store: "one", Procedure: Promoting, Rehearses: true, Drill: drill("2026-11-01", 10)},
		{Store: "one", Procedure: RollingOut, Rehearses: true, Drill: Drill{Date: "2026-11-01", Outcome: Fail}},
		{Store: "two", Procedure: Restoring, Rehearses: true, Drill: drill("2026-11-01", 10)},
	}
}

// kept makes sure that a text came out of another by additions alone: that nothing
// of the old one is gone but dates that later ones replaced, and JSON's nulls.
func kept(t interface{ Errorf(string, ...any) }, before, after string) {
	i := 0
	for j := 0; j < len(after) && i < len(before); j++ {
		if before[i] == after[j] {
			i++
		}
	}
	if i == len(before) {
		return
	}
	t.Errorf("bytes are gone from %d on: %q\n%s", i, before[i:min(len(before), i+40)], after)
}

// inOne makes sure that a text is another with something more in one place, or in two
// with a remark between them, or with a scalar in the place of one.
func inOne(t interface{ Errorf(string, ...any) }, before, after string) {
	from, most := 0, min(len(before), len(after))
	for from < most && before[from] == after[from] {
		from++
	}
	to := 0
	for to < most-from && before[len(before)-1-to] == after[len(after)-1-to] {
		to++
	}
	gone := before[from : len(before)-to]
	scalar := strings.Contains("null ~", gone) || len(gone) <= 12 && strings.Trim(gone, "0123456789-\"'") == ""
	if !scalar && !strings.Contains(after[from:len(after)-to], gone) {
		t.Errorf("%q is gone", gone)
	}
}

// Every kind of addition goes into each language: read again, the register declares
// what it did and the addition; comments, order, line ends and the rest of the bytes
// stay.
func TestAdd(t *testing.T) {
	for _, lang := range []string{"toml", "yaml", "json"} {
		for name, change := range map[string]func(string) string{
			"as it is":      func(s string) string { return s },
			"CRLF":          func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
			"no newline":    func(s string) string { return strings.TrimRight(s, "\n") },
			"spaces behind": func(s string) string { return strings.ReplaceAll(s, "\n", "  \n") },
			"blank lines":   func(s string) string { return s + "\n\n\n" },
			"tabs, where they may be": func(s string) string {
				if lang == "yaml" {
					return s
				}
				return strings.ReplaceAll(s, "\n  ", "\n\t")
			},
		} {
			t.Run(lang+" "+name, func(t *testing.T) {
				text := change(stage[lang])
				src := parse(t, "x."+lang, []byte(text))
				if _, err := src.Derive(Settings{On: "2026-12-01"}); err != nil {
					t.Fatal(err)
				}
				for _, a := range additions() {
					e, err := src.Add([]Addition{a})
					if err != nil {
						t.Fatalf("%+v: %v", a, err)
					}
					after := string(e.After.data)
					inOne(t, string(src.data), after)
					if name == "CRLF" && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
						t.Errorf("a line ends otherwise than the others:\n%q", after)
					}
					if strings.Count(after, "#") < strings.Count(string(src.data), "#") {
						t.Errorf("a comment is gone:\n%s", after)
					}
					if _, err := e.After.Derive(Settings{On: "2026-12-01"}); err != nil {
						t.Fatalf("%v\n%s", err, after)
					}
					src = e.After
				}
				one := src.Declared.Stores[0]
				if len(one.Restore.Drills) != 3 || len(one.Promotion.Drills) != 2 || len(one.Rehearsals) != 2 || len(src.Declared.Stores[1].Rehearsals) != 1 ||
					*one.LocalFirst.DrainVerifiedOn != "2026-11-02" || *src.Declared.Migrations[0].Rollback.TestedOn != "2026-11-02" {
					t.Errorf("%+v", one)
				}
				if d := one.Restore.Drills[0]; *d.MeasuredMinutes != 0.7 || *d.MeasuredMs != 38_987 || d.Note != additions()[0].Drill.Note {
					t.Errorf("%+v", d)
				}
			})
		}
	}
}

// What it looks like.
func TestAddLooks(t *testing.T) {
	drill := Addition{Store: "one", Procedure: Restoring, Drill: Drill{Date: "2026-11-01", Outcome: Pass, MeasuredMinutes: ptr(0.7)}}
	for _, x := range []struct{ name, lang, old, new, want string }{
		{"a section", "toml", "", "", "\"\"\"\n\n  [[stores.restore.drills]]\n  date = 2026-11-01\n  outcome = \"pass\"\n  measuredMinutes = 0.7\n\n  # drills go here\n"},
		{"behind others", "toml", "  # drills go here", "    [[stores.restore.drills]]\n    date = 2026-01-01 # new year\n    outcome = \"fail\"", "# new year\n    outcome = \"fail\"\n\n    [[stores.restore.drills]]\n    date = 2026-11-01\n    outcome = \"pass\"\n"},
		{"in braces", "toml", "  [stores.restore]\n  from = \"dump\"\n  verify = \"\"\"\n# not a comment\n\"\"\"\n", "  [stores.restore]\n  from = \"dump\"\n  drills = [ {date = 2026-01-01, outcome = \"fail\"} ] # one\n", "{date = 2026-01-01, outcome = \"fail\"}, { date = 2026-11-01, outcome = \"pass\", measuredMinutes = 0.7 } ] # one"},
		{"in an empty list", "toml", "  [stores.restore]\n  from = \"dump\"\n", "  [stores.restore]\n  from = \"dump\"\n  drills = []\n", "drills = [{ date = 2026-11-01,"},
		{"in lines with a comma behind", "toml", "  [stores.restore]\n  from = \"dump\"\n", "  [stores.restore]\n  from = \"dump\"\n  drills = [\n     { date = 2026-01-01, outcome = \"fail\" }, # x\n  ]\n", "# x\n     { date = 2026-11-01, outcome = \"pass\", measuredMinutes = 0.7 },\n  ]"},
		{"in lines without", "toml", "  [stores.restore]\n  from = \"dump\"\n", "  [stores.restore]\n  from = \"dump\"\n  drills = [\n     { date = 2026-01-01, outcome = \"fail\" } # x\n  ]\n", "\"fail\" }, # x\n     { date = 2026-11-01, outcome = \"pass\", measuredMinutes = 0.7 }\n  ]"},
		{"a list", "yaml", "", "", "# not a comment\n        drills:\n          - date: 2026-11-01\n            outcome: pass\n            measuredMinutes: 0.7\n    # about the next one\n"},
		{"a list that has one", "yaml", "        verify: |\n            rows\n            # not a comment\n", "        drills:\n        -   date: 2026-01-01\n            outcome: fail # sad\n", "fail # sad\n        - date: 2026-11-01\n          outcome: pass\n"},
		{"a list of braces", "yaml", "        verify: |\n            rows\n            # not a comment\n", "        drills:\n         - {date: 2026-01-01, outcome: fail}\n", "fail}\n         - {date: 2026-11-01, outcome: pass, measuredMinutes: 0.7}\n"},
		{"a list in brackets", "yaml", "        verify: |\n            rows\n            # not a comment\n", "        drills: [{date: 2026-01-01, outcome: fail}]\n", "fail}, {date: 2026-11-01, outcome: pass, measuredMinutes: 0.7}]\n"},
		{"an empty key", "yaml", "        verify: |\n            rows\n            # not a comment\n", "        drills: # none\n", "drills: [{date: 2026-11-01, outcome: pass, measuredMinutes: 0.7}] # none\n"},
		{"nothing", "yaml", "        verify: |\n            rows\n            # not a comment\n", "        drills: ~ # none\n", "drills: [{date: 2026-11-01, outcome: pass, measuredMinutes: 0.7}] # none\n"},
		{"restore in braces", "yaml", "    restore:\n        from: dump\n        verify: |\n            rows\n            # not a comment\n", "    restore: {from: dump}\n", "restore: {from: dump, drills: [{date: 2026-11-01, outcome: pass, measuredMinutes: 0.7}]}\n"},
		{"an empty list", "json", "", "", "\"drills\": [\n               {\n                  \"date\": \"2026-11-01\",\n                  \"outcome\": \"pass\",\n                  \"measuredMinutes\": 0.7\n               }\n            ]\n         }"},
		{"no list", "json", ",\n            \"drills\": []", "", "\"from\": \"dump\",\n            \"drills\": [\n               {\n                  \"date\""},
		{"a list on a line", "json", "\"drills\": []", "\"drills\": [{\"date\": \"2026-01-01\", \"outcome\": \"fail\", \"measuredMinutes\": null}]", "null}, {\"date\": \"2026-11-01\", \"outcome\": \"pass\", \"measuredMinutes\": 0.7}]"},
	} {
		if !strings.Contains(stage[x.lang], x.old) {
			t.Fatalf("%s: no %q", x.name, x.old)
		}
		src := parse(t, "x."+x.lang, []byte(strings.Replace(stage[x.lang], x.old, x.new, 1)))
		e, err := src.Add([]Addition{drill})
		if err != nil {
			t.Errorf("%s %s: %v", x.lang, x.name, err)
			continue
		}
		if got := string(e.After.data); !strings.Contains(got, x.want) {
			t.Errorf("%s %s: want %s\ngot %s", x.lang, x.name, x.want, e.Diff())
		}
		kept(t, strings.Replace(string(src.data), "~", "", 1), string(e.After.data))
	}
	// A file of one line stays one.
	compact := parse(t, "x.json", []byte(strings.NewReplacer("\n", "", "   ", "", "\": ", "\":", ", \"", ",\"").Replace(stage["json"])))
	e, err := compact.Add([]Addition{drill, {Store: "one", Procedure: Promoting, Drill: drill.Drill}})
	if err != nil || bytes.ContainsAny(e.After.data, "\n") {
		t.Errorf("%v\n%s", err, e.After.data)
	}
}

// A later date stays; a rendered register, an unknown store, and what the store does
// not declare are refused.
func TestAddRefuses(t *testing.T) {
	src := parse(t, "x.toml", []byte(strings.Replace(stage["toml"], "rollback.method", "rollback.testedOn = 2026-12-01\nrollback.method", 1)))
	e, err := src.Add([]Addition{{Store: "one", Procedure: RollingBack, Migration: "m", Drill: Drill{Date: "2026-11-01"}}})
	if err != nil || e.Diff() != "" {
		t.Errorf("%v %s", err, e.Diff())
	}
	for want, a := range map[string]Addition{
		"no store three":                      {Store: "three", Procedure: Restoring},
		"two declares no restore":             {Store: "two", Procedure: Restoring},
		"two declares no promotion":           {Store: "two", Procedure: Promoting},
		"two declares no drain":               {Store: "two", Procedure: Draining},
		"one declares no rollback that":       {Store: "one", Procedure: RollingBack, Migration: "n"},
		"one declares no rollout that a dril": {Store: "one", Procedure: RollingOut},
	} {
		if _, err := src.Add([]Addition{a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	doc, err := src.Derive(Settings{On: "2026-12-01"})
	if err != nil {
		t.Fatal(err)
	}
	rendered := parse(t, "x.json", doc.Encode())
	if _, err := rendered.Add(additions()[:1]); err == nil || !strings.Contains(err.Error(), "is rendered") {
		t.Errorf("a rendered register: %v", err)
	}
	// A byte order mark is refused before anything: there is nothing to add to.
	for lang, text := range stage {
		if _, err := Parse("x."+lang, []byte("\ufeff"+text)); err == nil {
			t.Errorf("%s: a byte order mark", lang)
		}
	}
	// Where the shape leaves no place, the addition is told, to be made by hand.
	odd := strings.Replace(stage["yaml"], "    restore:\n        from: dump\n        verify: |\n            rows\n            # not a comment\n", "    restore:\n        ? from\n        : dump\n", 1)
	src = parse(t, "x.yaml", []byte(odd))
	if e, err := src.Add(additions()[:1]); err == nil {
		kept(t, odd, string(e.After.data))
	} else if !strings.Contains(err.Error(), "stores[0].restore.drills yourself") {
		t.Error(err)
	}
}

// Writing replaces the file whole, keeps its mode and a link to it, and refuses one
// that was changed meanwhile.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.toml"), filepath.Join(dir, "link.toml")
	if err := os.WriteFile(file, []byte(stage["toml"]), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.toml", link); err != nil {
		t.Fatal(err)
	}
	load := func() *Edit {
		t.Helper()
		src, err := Load(link)
		if err != nil {
			t.Fatal(err)
		}
		e, err := src.Add(additions())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := load()
	if d := e.Diff(); !strings.Contains(d, "\n+  [[stores.restore.drills]]\n") || strings.Contains(d, "\n-  ") || !strings.HasPrefix(d, "--- "+link+"\n+++ "+link+"\n") {
		t.Errorf("%s", d)
	}
	before, _ := os.Stat(file)
	if err := e.Write(); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(link)
	if err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", st, err)
	}
	after, _ := os.Stat(file)
	if after.Mode() != before.Mode() || os.SameFile(before, after) {
		t.Errorf("mode %v, was %v; replaced: %t", after.Mode(), before.Mode(), !os.SameFile(before, after))
	}
	data, _ := os.ReadFile(file)
	if !bytes.Equal(data, e.After.data) {
		t.Errorf("%s", data)
	}

	e = load()
	changed := append(slices.Clone(data), "# mine\n"...)
	if err := os.WriteFile(file, changed, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); err == nil || !strings.Contains(err.Error(), "has changed since it was read") {
		t.Errorf("%v", err)
	}
	if data, _ = os.ReadFile(file); !bytes.Equal(data, changed) {
		t.Errorf("it was written over:\n%s", data)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); err == nil {
		t.Error("a file that is gone was made anew")
	}
	if files, _ := filepath.Glob(dir + "/.refbox*"); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// However a register is written, an addition loses not a byte, and what is read then
// is what was declared and the addition; or it is refused, and nothing is changed.
func TestAddLosesNothing(t *testing.T) {
	tried, added := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		lang := rapid.SampledFrom([]string{"toml", "yaml", "json"}).Draw(t, "language")
		text := written(t, lang)
		src, err := Parse("x."+lang, []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for range rapid.IntRange(1, 4).Draw(t, "additions") {
			a := rapid.SampledFrom(additions()).Draw(t, "addition")
			before := string(src.data)
			tried++
			e, err := src.Add([]Addition{a})
			if err != nil {
				if string(src.data) != before {
					t.Fatalf("changed by a refusal")
				}
				continue
			}
			added++
			after := string(e.After.data)
			inOne(t, before, after)
			if _, err := e.After.Derive(Settings{On: "2026-12-01"}); err != nil {
				t.Fatalf("%v\n%s", err, after)
			}
			if strings.Contains(before, "\r\n") && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
				t.Fatalf("line ends are mixed:\n%q", after)
			}
			src = e.After
		}
	})
	if added < tried*9/10 {
		t.Errorf("only %d of %d additions had a place", added, tried)
	}
}

// written writes the stage in a random way: other indents, comments where they may be,
// other line ends, drills in another form or none.
func written(t *rapid.T, lang string) string {
	text := stage[lang]
	swap := func(old string, news ...string) {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q", old)
		}
		text = strings.Replace(text, old, rapid.SampledFrom(append(news, old)).Draw(t, "form"), 1)
	}
	fail := map[string]string{"toml": `{ date = 2026-01-01, outcome = "fail" }`, "yaml": "{date: 2026-01-01, outcome: fail}", "json": `{"date": "2026-01-01", "outcome": "fail", "measuredMinutes": null}`}[lang]
	switch lang {
	case "toml":
		swap("  [stores.restore]\n  from = \"dump\"\n  verify = \"\"\"\n# not a comment\n\"\"\"\n",
			"  [stores.restore]\n  from = \"dump\"\n  drills = ["+fail+"]\n",
			"  [stores.restore]\n  drills = [\n"+fail+",\n     # between\n   "+fail+" # last\n  # end\n]\n  from = \"dump\"\n",
			"  [stores.restore]\n  from = 'dump'\n\n   [[ stores . restore.drills ]]\ndate = 2026-01-01\n  outcome = 'fail'\n\n",
			"  [stores.restore]\n  from = \"dump\"\n  drills = [ ]\n")
		swap("  [stores.localFirst]\n  drainsTo = \"two\"\n  durable = true # on disk\n", "  [stores.localFirst]\n  drainVerifiedOn = 2025-01-01 # old\n  durable = true\n\n\n  drainsTo = \"two\"\n")
		swap("rollback.method = \"restore\"\nrollback.maxDataLossMinutes = 0 # none\n", "rollback = { method = \"restore\", maxDataLossMinutes = 0 }\n", "[migrations.rollback]\nmethod = \"restore\"\nmaxDataLossMinutes = 0\n", "rollback.testedOn = \"2020-01-01\"\nrollback.method = \"restore\"\nrollback.maxDataLossMinutes = 0\n")
	case "yaml":
		swap("        verify: |\n            rows\n            # not a comment\n",
			"", "        drills: []\n", "        drills:\n", "        drills:\n        - "+fail+"\n", "        drills:\n          -  date: 2026-01-01\n             outcome: fail\n             note: >-\n                # long\n\n                text\n",
			"        drills: [\n           "+fail+", # x\n           "+fail+"\n         ]\n", "        verify: 'it''s # {'\n", "        verify: \"a\n            b: [\"\n")
		swap("        durable: true # on disk\n", "        durable: true\n        drainVerifiedOn: 2025-01-01 # old\n", "        durable: true\n        drainVerifiedOn: '2025-01-01'\n", "        drainVerifiedOn:\n        durable: true\n")
		swap("  rollback: {method: restore, maxDataLossMinutes: 0} # none\n", "  rollback:\n    method: restore\n    maxDataLossMinutes: 0\n", "  rollback: { method: restore,\n    maxDataLossMinutes: 0, testedOn: ~ }\n")
	case "json":
		swap(",\n            \"drills\": []", "", ", \"drills\" : [ "+fail+" ]", ",\n            \"drills\": [\n"+fail+"\n]", ",\"drills\":[{\n\"date\":\"2026-01-01\",\"outcome\":\"fail\",\"note\":\"] \\\\\\\" {\",\"measuredMinutes\":null}\n\n]")
		swap("\"drainVerifiedOn\": null", "\"drainVerifiedOn\" : \"2025-01-01\"")
		swap("\"maxDataLossMinutes\": 0}", "\"maxDataLossMinutes\": 0, \"testedOn\": null}", "\"testedOn\": null , \"maxDataLossMinutes\":0}")
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		inText := lang == "toml" && (strings.HasPrefix(l, "#") && strings.Contains(l, "not a comment") || l == `"""` || strings.HasSuffix(l, `"""`))
		if inText || lang == "yaml" && (strings.Contains(l, ">-") || strings.Contains(l, "|") || strings.Contains(l, "\"a") || strings.Contains(l, "b: [")) {
			continue
		}
		switch rapid.IntRange(0, 12).Draw(t, "line") {
		case 0:
			if lang != "json" && l != "" && !strings.Contains(l, "text") && !strings.Contains(l, "rows") && !strings.Contains(l, "#") {
				lines[i] = l + "   # [remark] {\" '"
			}
		case 1:
			if !strings.Contains(l, "text") && !strings.Contains(l, "rows") && !strings.Contains(l, "not a comment") {
				lines[i] = l + "  "
			}
		case 2:
			if lang == "toml" && !strings.Contains(l, `"""`) || lang == "json" {
				lines[i] = "\t" + l
			}
		}
	}
	text = strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end"))
	if rapid.Bool().Draw(t, "cut") {
		text = strings.TrimRight(text, "\r\n")
	}
	return text
}

// However a register's text is damaged, adding to what can still be read neither
// fails nor adds anything else than what was asked for.
func TestAddToOddTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lang := rapid.SampledFrom([]string{"toml", "yaml", "json"}).Draw(t, "language")
		text := []byte(written(t, lang))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			put := rapid.SampledFrom([]string{"", "\n", " ", "#", "'", "\"", "[", "]", "{", "}", ",", ":", "=", "- ", "\t", "ü", "x"}).Draw(t, "put")
			text = append(append(append([]byte{}, text[:at]...), put...), text[min(len(text), at+rapid.IntRange(0, 2).Draw(t, "gone")):]...)
			if len(text) == 0 {
				return
			}
		}
		src, err := Parse("x."+lang, text)
		if err != nil {
			return
		}
		for _, a := range additions() {
			e, err := src.Add([]Addition{a})
			if err == nil {
				inOne(t, string(src.data), string(e.After.data))
			}
		}
	})
}
