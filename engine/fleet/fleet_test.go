package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/agent/llm/llmtest"
	"refbox/engine/arena"
)

const whole = `schema_version = 1

[[players]]
id = "glm"
territory = "failover-two"
adapter = "llm"
model = "z-ai/glm"
reasoning_effort = "high"
endpoint = "https://openrouter.ai/api/v1"
key_env = "REFBOX_TEST_KEY"
prices = { input = 600000, output = 2200000 }
limits = { turns = 50, tokens = 900000, cost_microusd = 250000, time = "10m" }

[[players]]
id = "mine"
adapter = "command"
command = ["sh", "-c", "true"]
env = ["REFBOX_TEST_OTHER"]
`

func TestSeat(t *testing.T) {
	t.Setenv("REFBOX_TEST_KEY", "marked-key")
	t.Setenv("REFBOX_TEST_OTHER", "marked-other")
	f, err := Parse("fleet.toml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	before := pkg.Manifest.Agents[0].ID
	s, err := f.Seat(pkg)
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Manifest.Agents[0].ID != before {
		t.Error("the package itself was changed")
	}
	at := map[string]arena.Agent{}
	for _, a := range s.Package.Manifest.Agents {
		at[a.Territory] = a
	}
	if a := at["failover-two"]; a.ID != "glm" || a.Adapter != "llm:glm" || a.Model != "z-ai/glm" || a.ReasoningEffort != "high" || a.Script != nil {
		t.Errorf("%+v", a)
	}
	if a := at["failover-one"]; a.ID != "mine" || a.Adapter != "command:mine" || a.Model != "sh" {
		t.Errorf("%+v", a)
	}
	if a := at["failover-three"]; a.Script == nil {
		t.Errorf("the arena's own player is gone: %+v", a)
	}
	if _, _, err := s.Package.Seats(s.Players.Knows); err != nil {
		t.Error(err)
	}
	for _, spec := range []string{"llm:glm", "command:mine"} {
		if _, err := s.Players.Player(spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if _, err := s.Players.Player("llm:mine"); err == nil {
		t.Error("a player of another adapter is made")
	}
	b := s.Budgets["glm"]
	if b.Turns != 50 || b.Tokens != 900000 || *b.MaxCostMicroUSD != 250000 || b.Time != 10*time.Minute || b.ResourceUnits == 0 {
		t.Errorf("%+v", b)
	}
	if os.Getenv("REFBOX_TEST_KEY")+os.Getenv("REFBOX_TEST_OTHER") != "" {
		t.Error("the keys are still in the environment")
	}
	if got := s.Secrets.HideText("marked-key marked-other"); strings.Contains(got, "marked") {
		t.Errorf("%q", got)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"schema_version = 1\n", "names no players"},
		{"schema_version = 2\n[[players]]\nid = \"a\"\nadapter = \"script\"\nscript = \"careful\"\n", "schema_version must be 1"},
		{"schema_version = 1\n[[players]\n", "fleet.toml:"},
		{"schema_version = 1\n[[players]]\nid = \"A b\"\nadapter = \"script\"\nscript = \"x\"\n", `id must be of a-z`},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"telepathy\"\n", "adapter must be"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"command\"\n", "name the program"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"command\"\ncommand = [\"x\"]\nkey_env = \"K\"\n", "key_env is only for adapter llm"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"command\"\ncommand = [\"x\"]\nenv = [\"K=marked\"]\n", "without values"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"llm\"\nmodel = \"m\"\nendpoint = \"x\"\n", "endpoint"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"llm\"\nmodel = \"m\"\nendpoint = \"http://x/v1\"\nkey_env = \"sk-marked\"\n", "does not belong here"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"llm\"\nendpoint = \"http://x/v1\"\n", "name the model"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"script\"\nscript = \"x\"\nlimits = {time = \"soon\"}\n", "limits.time"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"script\"\nscript = \"x\"\nsurprise = 1\n", "players.surprise is not known"},
		{"schema_version = 1\n[[players]]\nid = \"a\"\nadapter = \"script\"\nscript = \"x\"\n[[players]]\nid = \"a\"\nadapter = \"script\"\nscript = \"x\"\n", "another player has this id"},
	} {
		_, err := Parse("fleet.toml", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "fleet.toml") || strings.Contains(err.Error(), "marked") {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestSeatSaysWhatIsWrong(t *testing.T) {
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	one := func(id, more string) string {
		return "[[players]]\nid = \"" + id + "\"\n" + more + "\n"
	}
	script := "adapter = \"script\"\nscript = \"careful\""
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("k"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, want string }{
		{one("a", script+"\nterritory = \"moon\""), `no territory "moon"; it has failover-one`},
		{one("a", script) + one("b", script) + one("c", script) + one("d", script), "which are taken"},
		{one("hasty", script), "has this id"},
		{one("a", "adapter = \"script\"\nscript = \"nobody\""), `no player "nobody"`},
		{one("a", "adapter = \"command\"\ncommand = [\"no-such-program-here\"]"), "no-such-program-here"},
		{one("a", "adapter = \"command\"\ncommand = [\"sh\"]\nenv = [\"REFBOX_TEST_UNSET\"]"), "export REFBOX_TEST_UNSET"},
		{one("a", "adapter = \"llm\"\nmodel = \"m\"\nendpoint = \"http://x/v1\"\nkey_file = \""+key+"\""), "chmod 600"},
	} {
		f, err := Parse("fleet.toml", []byte("schema_version = 1\n"+tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seat(pkg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	s := (&llmtest.Server{Key: "marked-right-key", Plan: []llmtest.Turn{{Commands: []string{"true"}, Cost: 0.00002}}}).Start()
	defer s.Close()
	t.Setenv("REFBOX_TEST_KEY", "marked-right-key")
	t.Setenv("REFBOX_TEST_WRONG", "marked-wrong-key")
	text := `schema_version = 1
[[players]]
id = "good"
adapter = "llm"
model = "m"
endpoint = "` + s.Endpoint() + `"
key_env = "REFBOX_TEST_KEY"
[[players]]
id = "wrong"
adapter = "llm"
model = "m"
endpoint = "` + s.Endpoint() + `"
key_env = "REFBOX_TEST_WRONG"
[[players]]
id = "silent"
adapter = "llm"
model = "m"
endpoint = "http://127.0.0.1:1/v1"
[[players]]
id = "there"
adapter = "aoe"
command = ["sh"]
[[players]]
id = "missing"
adapter = "command"
command = ["no-such-program-here"]
`
	f, err := Parse("fleet.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := f.Check(t.Context())
	for i, want := range []struct {
		ok     bool
		detail string
		cost   *uint64
	}{{true, "answered in", new(uint64)}, {false, "401", nil}, {false, "cannot be reached", nil}, {true, "found /", new(uint64)}, {false, "no-such-program-here", new(uint64)}} {
		g := got[i]
		if g.OK != want.ok || !strings.Contains(g.Detail, want.detail) || strings.Contains(g.Detail, "marked") || (g.CostMicroUSD == nil) != (want.cost == nil) {
			t.Errorf("%+v, want %+v", g, want)
		}
	}
	if *got[0].CostMicroUSD != 20 {
		t.Errorf("trying cost %d", *got[0].CostMicroUSD)
	}
}

// A fleet's keys are read once and then held: a second heat is seated with them too,
// though the environment has them no more.
func TestSeatOften(t *testing.T) {
	t.Setenv("FLEET_TEST_KEY", "k-123456789")
	f, err := Parse("fleet.toml", []byte(`
schema_version = 1
[[players]]
id = "prog"
adapter = "command"
command = ["/bin/sh"]
env = ["FLEET_TEST_KEY"]
[[players]]
id = "ann"
adapter = "human"
territory = "failover-three"
limits = { time = "10m" }
`))
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s, err := f.Seat(pkg)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("FLEET_TEST_KEY") != "" {
			t.Error("the key is still in the environment")
		}
		if s.Secrets.HideText("k-123456789") == "k-123456789" {
			t.Error("the key is not known to be one")
		}
		p, err := s.Players.Player("human:ann")
		if err != nil || !agent.IsHuman(p) || !slices.Equal(s.Persons, []string{"failover-three"}) {
			t.Errorf("%v, %v, persons %v", p, err, s.Persons)
		}
	}
	for _, found := range f.Check(t.Context()) {
		if !found.OK {
			t.Errorf("%+v", found)
		}
	}
}

func TestOfPerson(t *testing.T) {
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"Ann Öst": "ann-st", "": "person", "..": "person", strings.Repeat("x", 99): strings.Repeat("x", 64)} {
		s, err := OfPerson(name, "failover-two").Seat(pkg)
		if err != nil || s.Persons[0] != "failover-two" || s.Package.Manifest.Agents[1].ID != id {
			t.Errorf("%q: %v, %+v", name, err, s)
		}
	}
	if _, err := OfPerson("ann", "nowhere").Seat(pkg); err == nil || !strings.Contains(err.Error(), "no territory") {
		t.Errorf("a seat that there is not: %v", err)
	}
}

// What plays is known by every file of the fleet's folder that its command names, and by
// no other; a path of the file's folder reaches the program.
func TestHashesCoverArguments(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("agent.py", "1")
	put("etc/conf", "1")
	put("else", "1")
	put("fleet.toml", `schema_version = 1
[[players]]
id = "a"
adapter = "command"
command = ["sh", "./agent.py", "--conf=etc/conf", "--loud", "none", "../outside", "/etc/hostname"]
`)
	load := func() *Fleet {
		t.Helper()
		f, err := Load(filepath.Join(dir, "fleet.toml"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	hash := func() string {
		t.Helper()
		h, err := load().Hashes()
		if err != nil {
			t.Fatal(err)
		}
		return h["a"]
	}
	if got := load().Players[0].Command; got[1] != filepath.Join(dir, "agent.py") || got[2] != "--conf=etc/conf" || got[4] != "none" {
		t.Errorf("%q", got)
	}
	was := hash()
	for _, x := range []struct {
		file    string
		covered bool
	}{{"else", false}, {"agent.py", true}, {"etc/conf", true}} {
		put(x.file, "2")
		now := hash()
		if (now != was) != x.covered {
			t.Errorf("%s was changed: covered %t", x.file, now != was)
		}
		was = now
	}
}
