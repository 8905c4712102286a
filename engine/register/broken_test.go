package register

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type sourceFile struct {
	name string
	data []byte
}

// sources are this package's own files, without tests.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var out []sourceFile
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sourceFile{name, data})
	}
	return out
}

// broken documents, each made from the starter by one replacement, with a part
// of the message, which names the place.
var broken = []struct {
	name, file, old, new, want string
}{
	{"wrong type: string for number", "toml", "rpoMinutes = 15 ", `rpoMinutes = "15" `, "stores[0].objectives.rpoMinutes: is a string; a number is wanted"},
	{"wrong type: number for string", "yaml", "name: Home network", "name: 7", "paths[0].name: is a number; a string is wanted"},
	{"wrong type: string for boolean", "yaml", "encrypted: true", "encrypted: yes please", "stores[0].copies[0].encrypted: is a string; a boolean is wanted"},
	{"wrong type: list for table", "toml", `primary = { node = "server" }`, `primary = ["server"]`, "stores[0].primary: is a list; a table is wanted"},
	{"wrong type: string for list", "toml", `transits = ["tunnel"]`, `transits = "tunnel"`, "paths[1].transits: is a string; a list is wanted"},
	{"wrong type: null for string", "yaml", "id: lan", "id: ~", "paths[0].id: is null; a string is wanted"},
	{"wrong type: fraction for whole number", "toml", "copiesRequired = 3 ", "copiesRequired = 2.5 ", "policy.copiesRequired: 2.5 is not a whole number"},
	{"unknown key", "toml", "encrypted = true", "encripted = true", "stores[0].copies[0].encripted: unknown key; is encrypted meant?"},
	{"missing key", "yaml", "durability: durable ", "# ", "stores[0].durability: is missing"},
	{"unknown word", "toml", `kind = "streaming-replica"`, `kind = "replica"`, `stores[0].copies[0].kind: "replica" is not known here; it is one of streaming-replica, wal-archive`},
	{"negative time", "toml", "lagSec = 30", "lagSec = -30", "stores[0].copies[0].lagSec: -30 is negative"},
	{"negative count", "yaml", "drillMaxAgeDays: 90", "drillMaxAgeDays: -1", "policy.drillMaxAgeDays: -1 is negative"},
	{"zero count", "yaml", "drillMaxAgeDays: 90", "drillMaxAgeDays: 0", "policy.drillMaxAgeDays: must be at least 1"},
	{"huge number", "yaml", "intervalMinutes: 1440", "intervalMinutes: 1e308", "stores[0].copies[1].intervalMinutes: 1e+308 is too large"},
	{"number without end", "yaml", "intervalMinutes: 1440", "intervalMinutes: .inf", ".inf is no finite number"},
	{"a number that is none", "toml", "minutes = 20", "minutes = nan", "is no finite number"},
	{"integer beyond all", "yaml", "minutes: 20", "minutes: 99999999999999999999999999999999", "stores[0].promotion.minutes: 1e+32 is too large"},
	{"a day that does not exist", "yaml", "# drills:\n      #   - date: 2026-11-01\n      #     outcome: pass          # partial, fail\n      #     measuredMinutes: 42", "drills:\n        - {date: 2026-02-30, outcome: pass, measuredMinutes: 42}", `stores[0].restore.drills[0].date: "2026-02-30" is not a day that exists`},
	{"a day that is a word", "yaml", "# testedOn: 2026-11-01", "testedOn: soon", `migrations[0].rollback.testedOn: "soon" is not a day that exists`},
	{"a TOML day that does not exist", "toml", "# testedOn = 2026-11-01", "testedOn = 2026-13-01", ""},
	{"reference: path", "toml", `path = "vps-egress"`, `path = "nowhere"`, `stores[0].copies[2].path: there is no path "nowhere"`},
	{"reference: node", "yaml", "primary: {node: server}", "primary: {node: serve}", `stores[0].primary.node: there is no node "serve"`},
	{"reference: target", "toml", `target = "bucket"`, `target = "bin"`, `stores[0].copies[2].target: there is no target "bin"`},
	{"reference: promotion", "toml", `from = "app-db-replica"`, `from = "app-db-dump"`, "stores[0].promotion.from: app-db-dump is a logical-dump; only a streaming-replica can be promoted"},
	{"reference: restore", "yaml", "from: app-db-dump", "from: app-db-replica", "stores[0].restore.from: app-db-replica is a streaming-replica, which cannot be restored from"},
	{"reference: migration", "toml", `store = "app-db"`, `store = "app"`, `migrations[0].store: there is no store "app"`},
	{"reference: gate", "toml", "reversible = true", "reversible = true\nbackupGate = \"none\"", `migrations[0].backupGate: app-db has no copy "none"`},
	{"reference: acceptance", "toml", "# [[estate.acceptances]]\n# code = \"copies-below-policy\"\n# storeId = \"app-db\"\n# reason = \"Two places will do until the second disk arrives.\"\n# acceptedBy = \"you\"\n# reviewOn = \"2027-06-01\"",
		"[[estate.acceptances]]\ncode = \"copies-below-policy\"\nstoreId = \"db\"\nreason = \"x\"\nacceptedBy = \"you\"\nreviewOn = 2027-06-01", `estate.acceptances[0].storeId: there is no store "db"`},
	{"cycle of dependencies", "yaml", "tunnel: [isp]", "tunnel: [isp]\n    isp: [router]\n    router: [tunnel]", "estate.dependsOn.router[0]: depends on itself: tunnel → isp → router → tunnel"},
	{"an entity that needs itself", "toml", `tunnel = ["isp"]`, `tunnel = ["tunnel"]`, "estate.dependsOn.tunnel[0]: depends on itself: tunnel → tunnel"},
	{"duplicate key, toml", "toml", "quorumMinDomains = 3 ", "quorumMinDomains = 3\nquorumMinDomains = 3 ", ""},
	{"duplicate key, yaml", "yaml", "  quorumMinDomains: 3 ", "  quorumMinDomains: 3\n  quorumMinDomains: 3 ", `key "quorumMinDomains" is given twice`},
	{"duplicate id: store", "toml", `id = "cache"`, `id = "app-db"`, `stores[1].id: "app-db" is given twice; the first is stores[0].id`},
	{"duplicate id: copy", "yaml", "id: app-db-dump\n", "id: app-db-bucket\n", `stores[0].copies[2].id: "app-db-bucket" is given twice`},
	{"an id of escapes", "yaml", "id: lan\n", "id: \"\\e[31mlan\"\n", `paths[0].id: holds the control character U+001B`},
	{"an id with spaces", "toml", `id = "lan"`, `id = "lan lan"`, `paths[0].id: "lan lan" cannot be an id`},
	{"a text that turns the writing", "yaml", "name: Home network", "name: \"Home \\u202e network\"", "paths[0].name: holds the control character U+202E"},
	{"nodes: twice", "toml", "lostNodes = [\"server\"]", "lostNodes = [\"server\", \"nas\"]", `scenarios[0].lostNodes[1]: node "nas" is in two places`},
	{"nodes: none", "toml", "lostNodes = [\"server\"]", "", "scenarios[0]: says nothing about node server"},
	{"operators: two", "yaml", "      - id: home\n        nodes: [nas]\n", "      - id: home\n        operator: true\n        nodes: [nas]\n", "scenarios[0].partitions: the operator is on 2 sides"},
	{"continuous without lag", "toml", "lagSec = 30\n", "", "stores[0].copies[0].lagSec: is missing: a continuous copy has a lag"},
	{"periodic with lag", "yaml", "intervalMinutes: 360\n", "intervalMinutes: 360\n        lagSec: 3\n", "stores[0].copies[2].lagSec: does not belong here: only a continuous copy has a lag"},
	{"a dump that serves", "toml", "intervalMinutes = 1440\n", "intervalMinutes = 1440\n  serves = \"reads\"\n", "stores[0].copies[1].serves: only a streaming-replica serves reads"},
	{"durable without objectives", "yaml", "durability: rebuildable", "durability: durable", "stores[1].objectives: is missing: a durable store has objectives"},
	{"vendor block of a node", "toml", `writeModel = "single-writer"      #`, `writeModel = "vendor-managed"      #`, "stores[0].vendor: is missing: a vendor-managed store has a vendor block"},
	{"two primaries", "toml", `primary = { node = "server" }`, `primary = { node = "server", vendor = "V" }`, "stores[0].primary: names a node and a vendor"},
	{"queued without a queue", "toml", `mode = "proxied"`, `mode = "queued"`, "stores[1].writers[0].via: is missing: a queued writer has a store that it goes via"},
	{"far writer without a path", "yaml", "        mode: proxied\n        path: mesh\n", "        mode: proxied\n", "stores[1].writers[0].path: is missing: a writer that is not on the primary's node needs a path"},
	{"watched and not", "toml", "# entityId = \"postgres\" ", "entityId = \"postgres\" ", "stores[0].unmonitored: says why nothing watches the store, but entityId names what does"},
	{"reversible by restore", "toml", `method = "inverse-migration"`, `method = "restore"`, "migrations[0].reversible: is true, but the rollback's method is restore"},
	{"passed without a measure", "toml", "# [[stores.restore.drills]]\n  # date = 2026-11-01\n  # outcome = \"pass\" ", "[[stores.restore.drills]]\n  date = 2026-11-01\n  outcome = \"pass\" ", "stores[0].restore.drills[0].measuredMinutes: is missing: a passed drill has a measured time"},
	{"no estate", "yaml", "estate:\n", "# \n", ""},
	{"byte order mark", "toml", "# A datastore register:", "\ufeff# A datastore register:", "broken.toml:1:1: starts with a byte order mark"},
	{"not UTF-8", "yaml", "name: Home network", "name: Home \xff network", "byte 0xff is not UTF-8"},
	{"carriage returns in a text", "yaml", "name: Home network", "name: \"Home\\r\\nnetwork\"", "paths[0].name: holds the control character U+000D"},
	{"deep nesting", "toml", "transits = [\"tunnel\"]", "transits = " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 64 levels"},
	{"deep nesting, yaml", "yaml", "transits: [tunnel]", "transits: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 64 levels"},
	{"an unclosed text", "toml", `name = "Home network"`, `name = "Home network`, ""},
	{"an alias", "yaml", "uplinkEntities: [isp] ", "uplinkEntities: &x [isp]\n  notes: *x\n  xnotes: ", "aliases (*x) are not read here"},
	{"a second document", "yaml", "# --- stores", "---\n# --- stores", ""},
}

func TestBroken(t *testing.T) {
	if len(broken) < 40 {
		t.Fatalf("%d documents; 40 are wanted", len(broken))
	}
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			data, err := Starter(c.file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), c.old) {
				t.Fatalf("the starter has no %q", c.old)
			}
			message := refusal(t, "broken."+c.file, strings.Replace(string(data), c.old, c.new, 1))
			if !strings.Contains(message, c.want) {
				t.Errorf("says %s\nwant %s", message, c.want)
			}
		})
	}
}

// JSON has its own ways to be broken.
func TestBrokenJSON(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"empty":          {"", "b.json:1:1: the file ends early"},
		"cut off":        {"{\"status\": \"x\",\n", "b.json:2:1: the file ends early"},
		"two values":     {"{}\n{}", "b.json:2:1: something follows the end"},
		"a list":         {"[]", "b.json:1:1: is a list; a table is wanted"},
		"duplicate key":  {"{\"note\": \"\",\n \"note\": \"\"}", `b.json:2:2: key "note" is given twice`},
		"lone literal":   {"{\"note\": nul}", "b.json:1:10: invalid character"},
		"comment":        {"{ // no\n}", "b.json:1:3: invalid character"},
		"many unknown":   {"{" + strings.Repeat(`"x":1,`, 1) + `"y":2}`, "b.json:1:2: x: unknown key"},
		"escape in key":  {"{\"\\u001b[31m\": 1}", `"\x1b[31m": unknown key`},
		"deep":           {strings.Repeat("{\"a\":", 200), "nested deeper"},
		"derived wanted": {`{"policy": {}, "stores": []}`, "policy.copiesRequired: is missing"},
	} {
		if got := refusal(t, "b.json", c.data); !strings.Contains(got, c.want) {
			t.Errorf("%s: says %s\nwant %s", name, got, c.want)
		}
	}
}

// refusal is the message of a document that must not derive. Each of its lines
// names a place.
func refusal(t *testing.T, file, data string) string {
	t.Helper()
	src, err := Parse(file, []byte(data))
	if err == nil {
		_, err = src.Derive(Settings{On: "2026-12-01"})
	}
	var bad *Invalid
	if !errors.As(err, &bad) {
		t.Fatalf("%T: %v", err, err)
	}
	for _, p := range bad.Problems {
		if p.File != file || p.Line == 0 || p.Message == "" {
			t.Errorf("no place: %+v", p)
		}
	}
	if strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("an escape in the message: %q", err)
	}
	return err.Error()
}

// One run names many problems, but not without end.
func TestManyProblems(t *testing.T) {
	data, _ := Starter("toml")
	var b strings.Builder
	for range 200 {
		b.WriteString("[[paths]]\nid = \"lan\"\nname = \"x\"\ntransits = []\n")
	}
	src, err := Parse("many.toml", append(data, b.String()...))
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.Derive(Settings{On: "2026-12-01"})
	var bad *Invalid
	if !errors.As(err, &bad) || len(bad.Problems) != maxProblems || bad.More != 200-maxProblems {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(bad.Error(), "and 150 more") {
		t.Error(bad)
	}
}

// A queue that drains in a ring is a cycle too.
func TestDrainCycle(t *testing.T) {
	data, _ := Starter("toml")
	s := parse(t, "starter.toml", data)
	c := &change{t, &s.Declared, s.Declared.Estate, "2026-12-01"}
	withQueue(c)
	c.app().WriteModel, c.app().LocalFirst = LocalFirstQueue, &LocalFirst{DrainsTo: "journal"}
	_, err := s.Derive(Settings{On: c.on})
	if err == nil || !strings.Contains(err.Error(), "drains into itself: app-db → journal → app-db") {
		t.Error(err)
	}
}
