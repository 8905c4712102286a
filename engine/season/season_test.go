package season

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"refbox/engine/internal/shared"
)

// The vectors are those of the seasons reference, section 1.3.
func TestStream(t *testing.T) {
	s := newStream("infra-weekly/2026-W37-20260911")
	if s.state != 0x8cdb0f4a491fac1d {
		t.Errorf("state %016x", s.state)
	}
	for _, want := range []uint64{0x7b82f97c774a333b, 0x60724d4907f421dc, 0xc741a28ba3fd464e} {
		if got := s.next(); got != want {
			t.Errorf("output %016x, want %016x", got, want)
		}
	}
	list := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	shuffle(newStream("season/2026-W37"), list)
	if want := []int{8, 1, 7, 2, 5, 0, 9, 6, 4, 3}; !slices.Equal(list, want) {
		t.Errorf("shuffle %v, want %v", list, want)
	}
	s = newStream("season/2026-W37")
	var below []int
	for range 8 {
		below = append(below, s.below(4))
	}
	if want := []int{1, 1, 2, 0, 2, 3, 2, 1}; !slices.Equal(below, want) {
		t.Errorf("below(4) %v, want %v", below, want)
	}
	var pool []Entrant
	for i := range 8 {
		pool = append(pool, Entrant{ID: fmt.Sprintf("m%d", i)})
	}
	var ids []string
	for _, e := range sample("cup/week", pool, 5) {
		ids = append(ids, e.ID)
	}
	if got := strings.Join(ids, " "); got != "m3 m1 m5 m2 m7" {
		t.Errorf("sample %s", got)
	}
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		field, size int
		want        string
	}{
		{3, 3, "3:1/0/0"}, {4, 3, "4:1/1/1 3:1/0/0"}, {5, 3, "5:1/2/0 3:1/0/0"}, {6, 3, "6:2/0/1 3:1/0/0"},
		{7, 3, "7:2/1/0 3:1/0/0"}, {8, 3, "8:2/2/2 6:2/0/1 3:1/0/0"}, {9, 3, "9:3/0/0 3:1/0/0"},
		{12, 3, "12:4/0/2 6:2/0/1 3:1/0/0"}, {3, 2, "3:1/1/0 2:1/0/0"}, {5, 2, "5:2/1/1 4:2/0/0 2:1/0/0"}, {5, 4, "5:1/1/2 4:1/0/0"},
	} {
		shape, err := Shape(c.field, c.size)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, s := range shape {
			parts = append(parts, fmt.Sprintf("%d:%d/%d/%d", s.Field, s.Heats, s.Byes, s.Wildcards))
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%d by %d: %s, want %s", c.field, c.size, got, c.want)
		}
	}
	for _, c := range [][2]int{{5, 1}, {2, 3}, {maxEntrants + 1, 3}} {
		if _, err := Shape(c[0], c[1]); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}

// published are the draws of the reference with their weeks.
var published = []string{"infra-weekly_20260911", "opencode-cup_20260913"}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(shared.Shared(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func publishedWeek(t *testing.T, name string) *Week {
	t.Helper()
	w, _, err := ReadWeek(read(t, "seasons", name+".week.json"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPublishedDrawsRecompute(t *testing.T) {
	for _, name := range published {
		data := read(t, "seasons", name+".draw.json")
		d, digest, odd, err := ReadDraw(data)
		if err != nil || len(odd) > 0 {
			t.Fatal(err, odd)
		}
		w := publishedWeek(t, name)
		if w.DrawDigest == nil || *w.DrawDigest != digest {
			t.Errorf("%s: digest %s, the week has %v", name, digest, w.DrawDigest)
		}
		m := &Manifest{File: d.SeasonManifest, ID: d.SeasonID, Rules: d.Rules, Fleet: d.Fleet}
		again, err := NewDraw(m, d.Arenas, Order{Week: d.Week, Secret: *w.VariationSeed})
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(data), string(got)); diff != "" {
			t.Errorf("%s: drawn anew it differs (-published +ours):\n%s", name, diff)
		}
		wk, err := w.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(wk) {
			t.Error("the week's JSON is not")
		}
	}
}

const seasonTOML = `schema_version = 1
[season]
id = "cup"
display_name = "Cup"
[[fleet]]
id = "b"
model = "m/b"
adapter = "claux"
[[fleet]]
id = "a"
model = "m/a"
adapter = "claux"
reasoning_effort = "low"
[[fleet]]
id = "c"
model = "m/c"
adapter = "claux"
[[arenas]]
manifest = "../arenas/x/agents-real.toml"
`

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "season.toml")
	write := func(data string) string {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	m, err := ReadManifest(write(seasonTOML))
	if err != nil {
		t.Fatal(err)
	}
	if m.Arenas[0] != dir+"/../arenas/x/agents-real.toml" {
		t.Errorf("arena %s is normalised", m.Arenas[0])
	}
	if m.Fleet[0].ReasoningEffort != "high" || m.Fleet[1].ReasoningEffort != "low" || m.Rules.UnavailableReplays != 1 || m.Rules.Draws() != 1 {
		t.Errorf("defaults: %+v", m)
	}
	for _, c := range []struct{ old, new, want string }{
		{"schema_version = 1", "schema_version = 2", "schema_version is 2"},
		{`id = "cup"`, `id = "a cup"`, "season.id"},
		{`id = "a"`, `id = "b"`, "twice"},
		{`display_name = "Cup"`, "display_name = \"Cup\"\nheat_size = 3", "unknown key season.heat_size"},
		{"[[fleet]]\nid = \"c\"\nmodel = \"m/c\"\nadapter = \"claux\"\n", "", "at least 3"},
		{"[[arenas]]\nmanifest = \"../arenas/x/agents-real.toml\"\n", "", "no [[arenas]]"},
		{"[[fleet]]\nid = \"b\"", "[rules]\nmemory_mib = 64\n[[fleet]]\nid = \"b\"", "at least 128"},
		{"[[fleet]]\nid = \"b\"", "[pool]\nregistry = \"x\"\nprovider = \"vercel\"\n[[fleet]]\nid = \"b\"", "exactly one"},
		{`id = "cup"`, `id = `, "season.toml:3"},
	} {
		if _, err := ReadManifest(write(strings.Replace(seasonTOML, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.new, err, c.want)
		}
	}
}

func TestPool(t *testing.T) {
	dir := t.TempDir()
	pool := `{"schema_version":1,"checked_at":"2026-09-01","models":[
{"id":"zed","name":"Z","family":"z","routes":{"vercel":{"model":"z/1","reasoning_effort":"high","status":"eligible","listed":true}}},
{"id":"arc","name":"A","family":"a","routes":{"vercel":{"model":"a/1","reasoning_effort":"low","status":"eligible","listed":true},"opencode-go":{"model":"a1","reasoning_effort":"low","status":"eligible","listed":true,"definition":{"id":"a1"}}}},
{"id":"Big","name":"B","family":"b","routes":{"vercel":{"model":"b/1","reasoning_effort":"max","status":"eligible","listed":true}}},
{"id":"off","name":"O","family":"o","routes":{"vercel":{"model":"o/1","reasoning_effort":"high","status":"disabled","listed":true}}},
{"id":"hid","name":"H","family":"h","routes":{"vercel":{"model":"h/1","reasoning_effort":"high","status":"eligible","listed":false}}}]}`
	manifest := strings.Split(seasonTOML, "[[fleet]]")[0] + "[pool]\nregistry = \"pool.json\"\nprovider = \"vercel\"\n[[arenas]]\nmanifest = \"x.toml\"\n"
	put := func(name, data string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put("pool.json", pool)
	m, err := ReadManifest(put("season.toml", manifest))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entrant{{"Big", "vercel/b/1", "claux", "max", ""}, {"arc", "vercel/a/1", "claux", "low", ""}, {"zed", "vercel/z/1", "claux", "high", ""}}
	if diff := cmp.Diff(want, m.Fleet); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"family":"z"`, `"family":"xai"`, "may not be eligible"},
		{`"model":"z/1"`, `"model":"z 1"`, "may only have"},
		{`"status":"disabled"`, `"status":"odd"`, "not eligible, disabled or blocked"},
		{`"reasoning_effort":"max"`, `"reasoning_effort":"huge"`, "none of"},
	} {
		put("pool.json", strings.Replace(pool, c.old, c.new, 1))
		if _, err := ReadManifest(file(dir)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
	put("pool.json", strings.Replace(pool, `"definition":{"id":"a1"}`, `"definition":{"id":"a2"}`, 1))
	put("season.toml", strings.Replace(manifest, `"vercel"`, `"opencode-go"`, 1))
	if _, err := ReadManifest(file(dir)); err == nil || !strings.Contains(err.Error(), "definition") {
		t.Errorf("a route without its definition: %v", err)
	}
}

func file(dir string) string { return filepath.Join(dir, "season.toml") }

func TestEntropyCannotBeChosenAlone(t *testing.T) {
	m := &Manifest{File: "s.toml", ID: "cup", Rules: Rules{UnavailableReplays: 1}}
	for i := range 9 {
		m.Fleet = append(m.Fleet, Entrant{ID: fmt.Sprint("e", i), Model: "m", Adapter: "a", ReasoningEffort: "high"})
	}
	arenas := []Arena{{ID: "x", Manifest: "x", CompatibilityKey: "k", Territories: []string{"t1", "t2", "t3"}}}
	commit := func(who, nonce string) Contribution { return Contribution{who, Commit("cup", "w1", who, nonce), nonce} }
	a, b := commit("ann", NewSecret()), commit("bob", NewSecret())
	o := Order{Week: "w1", Secret: NewSecret(), RuleSet: &Refbox, Nonces: []Contribution{b, a}}
	d, err := NewDraw(m, arenas, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Nonces = []Contribution{a, b}
	if again, err := NewDraw(m, arenas, o); err != nil || again.DrawSeed != d.DrawSeed {
		t.Errorf("the order of nonces matters: %v", err)
	}
	o.Nonces = []Contribution{a, commit("bob", NewSecret())}
	if other, err := NewDraw(m, arenas, o); err != nil || other.DrawSeed == d.DrawSeed {
		t.Errorf("a nonce does not matter: %v", err)
	}
	wrong := b
	wrong.Nonce = NewSecret()
	missing := b
	missing.Nonce = ""
	for name, nonces := range map[string][]Contribution{"exchanged": {a, wrong}, "withheld": {a, missing}, "alone": {a}, "twice": {a, a}} {
		o.Nonces = nonces
		if _, err := NewDraw(m, arenas, o); err == nil {
			t.Errorf("%s: drawn", name)
		}
	}
	o.Nonces, o.Week = []Contribution{a, b}, "w2"
	if _, err := NewDraw(m, arenas, o); err == nil {
		t.Error("nonces committed for one week draw another")
	}
}

// TestBracketProperties: everybody is seated once or has a bye, no byes after the
// first round, one heat at the end.
func TestBracketProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 6).Draw(t, "size")
		field := rapid.IntRange(size, 200).Draw(t, "field")
		shape, err := Shape(field, size)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range shape {
			if i > 0 && s.Byes != 0 {
				t.Fatalf("round %d has %d byes", s.Round, s.Byes)
			}
			if s.Heats*size+s.Byes != s.Field {
				t.Fatalf("round %d does not seat its field: %+v", s.Round, s)
			}
			if i+1 < len(shape) && shape[i+1].Field != s.Heats+s.Byes+s.Wildcards {
				t.Fatalf("round %d sends on another number than round %d takes: %+v", s.Round, s.Round+1, shape)
			}
		}
		if last := shape[len(shape)-1]; last.Heats != 1 || last.Byes != 0 || last.Wildcards != 0 {
			t.Fatalf("it ends in %+v", last)
		}
		var list, territories []string
		for i := range field {
			list = append(list, fmt.Sprint("e", i))
		}
		for i := range size {
			territories = append(territories, fmt.Sprint("t", i))
		}
		s := seat(newStream(rapid.String().Draw(t, "seed")), 1, list, territories)
		var seated []string
		for _, h := range s.Heats {
			if len(h.Seats) != size {
				t.Fatalf("heat %d seats %d", h.Heat, len(h.Seats))
			}
			for _, id := range h.Seats {
				seated = append(seated, id)
			}
		}
		seated = append(seated, s.Byes...)
		slices.Sort(seated)
		slices.Sort(list)
		if !slices.Equal(seated, list) {
			t.Fatalf("seated %v of %v", seated, list)
		}
	})
}

func BenchmarkDraw10000(b *testing.B) {
	m := &Manifest{File: "s.toml", ID: "cup"}
	for i := range 10_000 {
		m.Fleet = append(m.Fleet, Entrant{ID: fmt.Sprintf("e%05d", i), Model: "m", Adapter: "a", ReasoningEffort: "high"})
	}
	arenas := []Arena{{ID: "x", Territories: []string{"t1", "t2", "t3"}}}
	secret := NewSecret()
	for b.Loop() {
		d, err := NewDraw(m, arenas, Order{Week: "w", Secret: secret, Entrants: 10_000})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.JSON(); err != nil {
			b.Fatal(err)
		}
	}
}
