package arena

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"refbox/engine/internal/shared"
	"refbox/engine/internal/tomlplace"
)

// edit replaces exactly one occurrence of each old text.
func edit(t *testing.T, s string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if strings.Count(s, oldNew[i]) != 1 {
			t.Fatalf("%q occurs %d times", oldNew[i], strings.Count(s, oldNew[i]))
		}
		s = strings.Replace(s, oldNew[i], oldNew[i+1], 1)
	}
	return s
}

// line is the number of the first line that contains what.
func line(t *testing.T, s, what string) int {
	t.Helper()
	before, _, ok := strings.Cut(s, what)
	if !ok {
		t.Fatalf("%q is not in the text", what)
	}
	return strings.Count(before, "\n") + 1
}

func TestFormErrorsNameTheLine(t *testing.T) {
	base := bundledTOML(t)
	tests := []struct {
		name       string
		old, new   string
		at         string // text on the line that must be named
		path, text string
	}{
		{"unknown key", "tick_ms = 1000\n", "tick_ms = 1000\ntick = 1\n", "tick = 1", "rules.tick", "unknown key; the keys here are duration_seconds"},
		{"unknown table", "[rules]\n", "[[stuff]]\na = 1\n[rules]\n", "[[stuff]]", "stuff", "unknown key"},
		{"unknown key in an inline table", "kind = \"proxy\",", "sort = \"proxy\", kind = \"proxy\",", "sort = ", "visualization.nodes[1].sort", "unknown key"},
		{"unknown key in the second of a list", "id = \"failover-two\"\n", "id = \"failover-two\"\ncolour = 1\n", "colour = 1", "territories[1].colour", "unknown key"},
		{"missing", "tick_ms = 1000\n", "", "[rules]", "rules.tick_ms", "is missing"},
		{"negative", "tick_ms = 1000\n", "tick_ms = -1\n", "tick_ms = -1", "rules.tick_ms", "must be a whole number from 0"},
		{"float", "tick_ms = 1000\n", "tick_ms = 1e3\n", "tick_ms = 1e3", "rules.tick_ms", "must be a whole number from 0"},
		{"string for number", "tick_ms = 1000\n", "tick_ms = \"1000\"\n", "tick_ms = \"1000\"", "rules.tick_ms", "must be a whole number, not the string \"1000\""},
		{"number for string", "category = \"stateful-recovery\"\n", "category = 5\n", "category = 5", "arena.category", "must be a string, not the number 5"},
		{"time for string", "category = \"stateful-recovery\"\n", "category = 2020-01-01\n", "category = 2020", "arena.category", "must be a string, not a time"},
		{"u8", "x = 84, y = 43", "x = 256, y = 43", "x = 256", "visualization.nodes[3].x", "must be a whole number from 0 to 255, not 256"},
		{"mode", "mode = \"build_race\"\n", "mode = \"race\"\n", "mode = \"race\"", "arena.mode", "\"race\" is none of build_race, conquest"},
		{"operation", "operation = \"host_reboot\"\n", "operation = \"reboot\"\n", "operation = \"reboot\"", "build.milestones[5].operation", "\"reboot\" is none of"},
		{"node kind", "kind = \"proxy\"", "kind = \"router\"", "kind = \"router\"", "visualization.nodes[1].kind", "is none of client"},
		{"bool", "stop_on_first_durable = true", "stop_on_first_durable = 1", "stop_on_first_durable = 1", "build.stop_on_first_durable", "must be true or false"},
		{"table for array", "forwards = [8081, 8082]", "forwards = {}", "forwards = {}", "guest.forwards", "must be an array, not a table"},
		{"syntax", "tick_ms = 1000\n", "tick_ms = = 1000\n", "tick_ms = =", "", ""},
		{"key twice", "tick_ms = 1000\n", "tick_ms = 1000\ntick_ms = 1\n", "tick_ms = 1\n", "", "rules.tick_ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := edit(t, base, tt.old, tt.new)
			_, problems := Read("arena.toml", []byte(text))
			if len(problems) != 1 {
				t.Fatalf("want one problem, got %v", problems)
			}
			p := problems[0]
			if p.Line != line(t, text, tt.at) || p.Path != tt.path || !strings.Contains(p.Text, tt.text) || p.Warning {
				t.Errorf("got %s, want line %d, %s: %s", p, line(t, text, tt.at), tt.path, tt.text)
			}
			if p.Unknown != strings.HasPrefix(tt.name, "unknown") {
				t.Errorf("Unknown is %v", p.Unknown)
			}
		})
	}
}

func TestRuleErrorsNameTheLine(t *testing.T) {
	text := edit(t, bundledTOML(t), "tick_ms = 1000\n", "tick_ms = 0\n", "x = 84, y = 79", "x = 184, y = 79", "cidr = \"10.81.0.0/24\"\n", "cidr = \"1.0.0.0/24\"\n")
	_, problems := Read("arena.toml", []byte(text))
	want := []int{line(t, text, "cidr ="), line(t, text, "tick_ms ="), line(t, text, "x = 184")}
	var got []int
	for _, p := range problems {
		got = append(got, p.Line)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("lines (-want +got):\n%s\n%v", d, problems)
	}
}

func TestJSONErrorsNameThePlace(t *testing.T) {
	data, err := valid(t).JSON()
	if err != nil {
		t.Fatal(err)
	}
	base := string(data)
	tests := []struct{ name, old, new, at, path, text string }{
		{"unknown key", `"tick_ms": 1000,`, `"tick_ms": 1000, "tick": 2,`, `"tick": 2`, "rules.tick", "unknown key"},
		{"twice", `"tick_ms": 1000,`, `"tick_ms": 1000, "tick_ms": 2,`, `"tick_ms": 2`, "", `key "tick_ms" is given twice`},
		{"null", `"tick_ms": 1000`, `"tick_ms": null`, `"tick_ms": null`, "rules.tick_ms", "must be a whole number, not null"},
		{"float", `"tick_ms": 1000`, `"tick_ms": 1000.0`, `"tick_ms": 1000.0`, "rules.tick_ms", "must be a whole number"},
		{"comma", `"tick_ms": 1000,`, `"tick_ms": 1000`, `"tick_ms": 1000`, "", "invalid character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := edit(t, base, tt.old, tt.new)
			_, problems := Read("arena.json", []byte(text))
			if len(problems) != 1 {
				t.Fatalf("want one problem, got %v", problems)
			}
			p := problems[0]
			if at := line(t, text, tt.at); p.Line != at && p.Line != at+1 || p.Path != tt.path || !strings.Contains(p.Text, tt.text) {
				t.Errorf("got %s, want line %d, %s: %s", p, at, tt.path, tt.text)
			}
			start := int64(strings.Index(text, tt.at))
			if p.Offset < start || p.Offset > start+40 {
				t.Errorf("offset %d, want about %d", p.Offset, start)
			}
		})
	}
	for _, bad := range []string{"", "{", `{"a":`, "[]", "null", base + "x", strings.Repeat(`{"a":`, 5000), strings.Repeat("[", 100000)} {
		if _, problems := Read("arena.json", []byte(bad)); len(problems) == 0 {
			t.Errorf("%.20q was accepted", bad)
		}
	}
}

func TestDefaultsAreMaterialised(t *testing.T) {
	m, problems := Read("arena.toml", []byte(edit(t, bundledTOML(t), "mode = \"build_race\"\n", "", "category = \"stateful-recovery\"\n", "",
		"allow_public_internet = false\n", "")))
	if len(problems) == 0 || m.Arena.Mode != Conquest {
		t.Errorf("the default mode is %q", m.Arena.Mode)
	}
	data, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"category": null`, `"fog_of_war": null`, `"allow_public_internet": false`, `"depends_on": []`, `"operation": "observe"`,
		`"required": true`, `"label": null`, `"strengths": []`, `"reasoning_effort": "default"`, `"max_cost_microusd": null`, `"milestone": null`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("arena.json lacks %s", want)
		}
	}
	again, problems := Read("arena.json", data)
	if d := cmp.Diff(m, again); d != "" {
		t.Errorf("read back (-want +got):\n%s%v", d, problems)
	}
}

func TestReferencesManifestKeepsItsBytes(t *testing.T) {
	data, err := os.ReadFile(shared.Shared(t, "seeds", "arena.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, problems := Read("arena.json", data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Errorf("differs (-want +got):\n%s", cmp.Diff(string(data), string(got)))
	}
}

func TestRecordedManifests(t *testing.T) {
	n := 0
	for _, dir := range shared.Recordings(t) {
		data, err := os.ReadFile(dir + "/arena.json")
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		m, problems := Read("arena.json", data)
		for _, p := range problems {
			if !p.Warning {
				t.Errorf("%s: %s", dir, p)
			}
		}
		if m == nil {
			continue
		}
		var want, got any
		out, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(data, &want) != nil || json.Unmarshal(out, &got) != nil {
			t.Fatalf("%s: no JSON", dir)
		}
		// Keys that a recording of an earlier era lacks may be added.
		if d := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool {
			i, ok := p.Last().(cmp.MapIndex)
			return ok && (i.Key().String() == "category" || i.Key().String() == "fog_of_war")
		}, cmp.Ignore())); d != "" {
			t.Errorf("%s (-want +got):\n%s", dir, d)
		}
	}
	if n == 0 {
		t.Skip("no recording has an arena.json")
	}
}

const oddTOML = `# comment [x]
a = 1 # [not.a.table]
"b c" . 'd' = """
[x]
y = 1
"""""
e = ['''
x]''', # one
  { f = 1, "g]" = [ 2 , 3 ] }, "\"]",
]
[ h . i ]
j.k = 2020-01-01T00:00:00Z
[[h.list]]
l = 'x\'
[[h.list]]
l = "\u0041"
[h.list.m]
n = +1_000
`

func TestLocate(t *testing.T) {
	lines := linesOf([]byte(oddTOML), tomlplace.Find([]byte(oddTOML), maxNesting).Keys)
	want := map[string]int{
		"a": 2, "b c": 3, "b c/d": 3, "e": 7, "e/#0": 7, "e/#1": 9, "e/#1/f": 9, "e/#1/g]": 9, "e/#1/g]/#1": 9, "e/#2": 9,
		"h": 11, "h/i": 11, "h/i/j": 12, "h/i/j/k": 12, "h/list": 13, "h/list/#0": 13, "h/list/#0/l": 14,
		"h/list/#1": 15, "h/list/#1/l": 16, "h/list/#1/m": 17, "h/list/#1/m/n": 18, "": 1,
	}
	got := map[string]int{}
	for p, n := range lines {
		p = strings.ReplaceAll(strings.ReplaceAll(p, "\x01", "/#"), "\x00", "/")
		got[strings.TrimPrefix(p, "/")] = n
	}
	want["e/#1/g]/#0"] = 9
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// everyPath are the paths of a decoded document.
func everyPath(v any, path string, visit func(string)) {
	visit(path)
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			everyPath(x, path+tomlplace.Key(k), visit)
		}
	case []map[string]any:
		for i, x := range v {
			everyPath(x, path+tomlplace.Index(i), visit)
		}
	case []any:
		for i, x := range v {
			everyPath(x, path+tomlplace.Index(i), visit)
		}
	}
}

func FuzzLocate(f *testing.F) {
	f.Add(oddTOML)
	f.Add(bundledTOML(f))
	f.Add("a={b=[{c=1}]}\r\n[[x.y]]\r\nz='''\n'''''")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 64<<10 {
			t.Skip()
		}
		places := tomlplace.Find([]byte(s), maxNesting) // never hangs or panics, whatever it is
		if places.TooDeep >= 0 {
			return
		}
		lines := linesOf([]byte(s), places.Keys)
		var raw map[string]any
		if _, err := toml.Decode(s, &raw); err != nil {
			return
		}
		everyPath(raw, "", func(p string) {
			if n := lines[p]; n < 1 || n > strings.Count(s, "\n")+1 {
				t.Errorf("%q has line %d in %q", p, n, s)
			}
		})
	})
}

func FuzzRead(f *testing.F) {
	data, err := valid(f).JSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, data)
	f.Add(false, []byte(bundledTOML(f)))
	f.Add(true, []byte(`{"schema_version":1,"arena":{"id":"a","display_name":"A","mode":null}}`))
	f.Add(false, []byte("schema_version = 1\n[[agents]]\n[agents.budget]\nresource_units = 1.5"))
	f.Fuzz(func(t *testing.T, isJSON bool, data []byte) {
		name := "arena.toml"
		if isJSON {
			name = "arena.json"
		}
		m, problems := Read(name, data)
		for _, p := range problems {
			if p.File != name || p.Text == "" || p.Line > bytes.Count(data, []byte("\n"))+1 || p.Offset > int64(len(data)) {
				t.Errorf("problem without a place: %+v", p)
			}
			if strings.ContainsAny(p.String(), "\x1b\n\x00") {
				t.Errorf("problem shows raw text: %q", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		out, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, problems := Read("arena.json", out)
		if d := cmp.Diff(m, again); d != "" || len(problems) > 0 {
			t.Errorf("what was written does not read back: %v\n%s", problems, d)
		}
	})
}

// Read is read, without where things stand.
func Read(file string, data []byte) (*Manifest, []Problem) {
	m, _, problems := read(file, data)
	return m, problems
}
