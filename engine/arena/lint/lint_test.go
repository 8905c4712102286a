package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
)

func packageOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "My arena")
	id, err := arena.Init(dir)
	if err != nil || id != "my-arena" {
		t.Fatalf("Init: %q, %v", id, err)
	}
	return dir
}

// edit replaces the first of each old by its new in a file.
func edit(t *testing.T, file string, oldNew ...string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := string(data)
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(s, oldNew[i]) {
			t.Fatalf("%s does not hold %q", file, oldNew[i])
		}
		s = strings.Replace(s, oldNew[i], oldNew[i+1], 1)
	}
	if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
}

// line is where a text first stands in a file.
func line(t *testing.T, file, text string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(data), text)
	if !ok {
		t.Fatalf("%s does not hold %q", file, text)
	}
	return strings.Count(before, "\n") + 1
}

func TestTemplateIsValid(t *testing.T) {
	r, err := Validate(packageOf(t))
	if err != nil || !r.Valid || len(r.Errors)+len(r.Warnings) > 0 || r.Arena != "my-arena" || r.SchemaVersion != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, id := range arena.Bundled() {
		if r, err := Validate(id); err != nil || !r.Valid {
			t.Errorf("%s: %+v, %v", id, r.Errors, err)
		}
	}
}

func TestInitLeavesWhatIsThere(t *testing.T) {
	dir := packageOf(t)
	if _, err := arena.Init(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second time: %v", err)
	}
	if _, err := arena.Init(filepath.Join(t.TempDir(), "hello-service")); err == nil {
		t.Error("it takes the name of a bundled arena")
	}
}

// TestEverythingAtOnce: faults of form, of rules, of the package, of a verifier and
// of a script are all told, each where it stands.
func TestEverythingAtOnce(t *testing.T) {
	dir := packageOf(t)
	toml := filepath.Join(dir, "arena.toml")
	edit(t, toml, "tick_ms = 2000", "tick_ms = \"fast\"", "points = 30", "points = 0", "verify/host-reboot.star", "verify/none.star",
		"memory_mib = 512", "memory_mib = 5", "port = 8080", "port = 8080\nfrobnicate = 1", "result = \"service-up\"", "result = \"nowhere\"",
		"script = \"players/by-hand.sh\"", "script = \"players/gone.sh\"", "depends_on = [\"service-up\"]", "depends_on = [\"service-up\", \"service-up\"]",
		"duration_seconds = 600", "duration_seconds = 0", "[guest]", "[guest]\nlibrary = [\"/opt/arena/wire.py\", \"/opt/none.py\"]")
	edit(t, filepath.Join(dir, "verify/service-up.star"), "def holds(seat):", "def holds(seat):\n    nothing_like_this()")
	edit(t, filepath.Join(dir, "verify/service-restart.star"), "timeout = 10", "timeout = 100")
	edit(t, filepath.Join(dir, "players/right.sh"), "# pause 1s", "# pause for ever")
	edit(t, filepath.Join(dir, "CONTRACT.md"), "- When time", "- The race takes 10 minutes.\n- When time")
	if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	r, err := Validate(dir)
	if err != nil || r.Valid {
		t.Fatalf("valid, %v", err)
	}
	at := func(file, text, says string) string {
		p := filepath.Join(dir, file)
		return fmt.Sprintf("%s:%d: %s", p, line(t, p, text), says)
	}
	errors := []string{
		at("arena.toml", "tick_ms", "rules.tick_ms: must be a whole number"),
		at("arena.toml", "frobnicate", "territories[0].service.frobnicate: unknown key"),
		at("arena.toml", "duration_seconds", "rules.duration_seconds: must be more than 0"),
		at("arena.toml", "points = 0", "build.milestones[1].points: must be more than 0"),
		at("arena.toml", "memory_mib = 5", "classes[0].resources.memory_mib: must be 128 or more"),
		at("arena.toml", "\"/opt/none.py\"", "guest.library[1]: refbox's library has no file \"none.py\" (it has sql.py, wire.py)"),
		at("arena.toml", "\"nowhere\"", "players[1].result: \"nowhere\" is neither"),
		at("arena.toml", "verify/none.star", "build.milestones[2].verifier: the package has no file"),
		at("arena.toml", "players/gone.sh", "players[2].script: the package has no file"),
		at("verify/service-up.star", "nothing_like_this", "undefined: nothing_like_this"),
		at("players/right.sh", "# pause for ever", ""),
	}
	warnings := []string{
		at("arena.toml", "depends_on", "build.milestones[1].depends_on: names \"service-up\" twice"),
		at("verify/service-restart.star", "timeout = 100", "waits for up to 100 s"),
		at("CONTRACT.md", "10 minutes", "speaks of 10 minutes, and rules.duration_seconds is 0"),
		toml + ": the package has no README.md",
	}
	check := func(what string, got []arena.Problem, want []string) {
		var lines []string
		for _, p := range got {
			lines = append(lines, p.String())
		}
		for _, w := range want {
			if !slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, w) }) {
				t.Errorf("no %s says\n  %s\nin\n  %s", what, w, strings.Join(lines, "\n  "))
			}
		}
	}
	check("error", r.Errors, errors)
	check("warning", r.Warnings, warnings)
	// One timeout too long for a heat of no length each, and nothing else.
	if n := len(errors) + 3 + 2; len(r.Errors) != n {
		t.Errorf("%d errors, want %d: %v", len(r.Errors), n, r.Errors)
	}
}

// TestJSON: the same, of a manifest in JSON, with line and byte.
func TestJSON(t *testing.T) {
	dir := packageOf(t)
	p, err := arena.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Manifest.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "arena.toml")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "arena.json")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Validate(dir); err != nil || !r.Valid || r.Manifest != file {
		t.Fatalf("as it is: %+v, %v", r, err)
	}
	edit(t, file, `"tick_ms": 2000`, `"tick_ms": true`, `"players/by-hand.sh"`, `"players/gone.sh"`, `"points": 30`, `"points": 0`)
	r, err := Validate(dir)
	if err != nil || r.Valid || len(r.Errors) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, text := range []string{`"tick_ms"`, `"points": 0`, `"players/gone.sh"`} {
		if p := r.Errors[i]; p.Line != line(t, file, text) || p.Offset == 0 {
			t.Errorf("%s: line %d, byte %d", p, p.Line, p.Offset)
		}
	}
}

func TestSyntaxAlone(t *testing.T) {
	dir := packageOf(t)
	edit(t, filepath.Join(dir, "arena.toml"), "tick_ms = 2000", "tick_ms =")
	r, err := Validate(dir)
	if err != nil || r.Valid || len(r.Errors) != 1 || r.Errors[0].Line != line(t, filepath.Join(dir, "arena.toml"), "tick_ms =") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Validate(filepath.Join(dir, "none")); err == nil {
		t.Error("an arena that is not there is valid")
	}
}
