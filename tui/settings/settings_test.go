package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/tui/keymap"
)

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func origin(s Settings, name string) string {
	for _, v := range s.Values {
		if v.Name == name {
			return v.Value + " from " + v.Origin
		}
	}
	return ""
}

func TestOrigins(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "config.toml", "theme = \"mine\"\n\nascii = true\nmouse = true\nscreen_reader = false\n[keys]\nwhy = \"F5\"\nfind = [\"ctrl-s\", \"f\"]\nfault = [\"/\"]\n")
	write(t, dir, "themes/mine.toml", "[colors]\nok = \"#00ff87\"\n")
	s, err := Read(file, env())
	if err != nil {
		t.Fatal(err)
	}
	if s.Theme.Name() != "mine" || len(s.Themes) != 4 || !s.ASCII || !s.Mouse || s.Reader {
		t.Errorf("%+v", s)
	}
	if s.Keys.Action("f5") != keymap.Why || s.Keys.Action("w") != keymap.None || s.Keys.Action("f") != keymap.Find || s.Keys.Action("/") != keymap.Fault {
		t.Error("the keys are not as they were set")
	}
	for name, want := range map[string]string{
		"theme": "mine from " + file + ":1", "ascii": "true from " + file + ":3", "mouse": "true from " + file + ":4",
		"screen_reader": "false from " + file + ":5", "keys.why": "F5 from " + file + ":7", "keys.find": "ctrl-s f from " + file + ":8",
	} {
		if got := origin(s, name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	s, err = Read(file, env("REFBOX_THEME", "high-contrast", "REFBOX_ASCII", "0", "REFBOX_SCREEN_READER", "1"))
	if err != nil || s.Theme.Name() != "high-contrast" || s.ASCII || !s.Reader || origin(s, "theme") != "high-contrast from REFBOX_THEME" {
		t.Errorf("%v, %+v", err, s.Values)
	}
	s, err = Read(filepath.Join(dir, "none.toml"), env("COLORFGBG", "0;15", "LANG", "C"))
	if err != nil || s.Theme.Name() != "light" || !s.ASCII || origin(s, "ascii") != "true from the locale is not UTF-8" || origin(s, "mouse") != "false from default" {
		t.Errorf("%v, %+v", err, s.Values)
	}
}

// Every fault names the file and the line, and what to do.
func TestFaults(t *testing.T) {
	for content, want := range map[string]string{
		"theme = \"pink\"\n":                      `:1: there is no theme "pink": it is auto, dark, light, high-contrast`,
		"mouse = true\nthem = \"dark\"\n":         `:2: the key "them" is not known`,
		"\nmouse = \"yes\"\n":                     ":2: ",
		"mouse = true\nmouse = false\n":           ":2: ",
		"x = = 1":                                 ":1: ",
		"[keys]\n\nwhy = \"q\"\n":                 `:3: keys of "why": q is already a key of "leave"; give that other keys, or choose another`,
		"[keys]\nwhy = \"z\"\ncopy = [\"z\"]\n":   `:3: keys of "copy": z is already a key of "why"`,
		"[keys]\nleave = \"Z\"\nwhy = []\n":       `:3: keys of "why": it has no key left`,
		"[keys]\ndance = \"d\"\n":                 `:2: keys of "dance": no action is called so`,
		"[keys]\nwhy = \"hyper-w\"\n":             `:2: keys of "why": "hyper-w" is no key`,
		"[keys]\nwhy = 5\n":                       ":2: 5 is neither a key nor a list of keys",
		"[keys]\nwhy = [5]\n":                     ":2: 5 is no key",
		"theme = \"bad\"\n":                       "bad.toml:2: ",
		"theme = \"./themes/bad.toml\"\n":         "bad.toml:2: ",
		"screen_reader = true\n[key]\nwhy = 1\n":  `:2: the key "key`,
		"[keys]\nseat = [\"1\"]\n":                `:2: keys of "seat": it takes 9 keys`,
		"[keys]\nwhy = \"\x1b[2J\"\n":             ":2: ",
		"theme = \"\\u001b[2Jx\"\n":               ":1: there is no theme",
		"theme = \"" + strings.Repeat("x", 1<<21): "is larger than",
	} {
		dir := t.TempDir()
		file := write(t, dir, "config.toml", content)
		write(t, dir, "themes/bad.toml", "[colors]\nok = \"green\"\n")
		_, err := Read(file, env())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), dir) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.60q: %v, want %s", content, err, want)
		}
	}
	if _, err := Read("/nowhere/config.toml", env("REFBOX_THEME", "pink")); err == nil || !strings.HasPrefix(err.Error(), "REFBOX_THEME: there is no theme") {
		t.Error(err)
	}
}

// What is written for a beginner is read, sets nothing, and sets what it says once it is
// uncommented.
func TestStarter(t *testing.T) {
	dir := t.TempDir()
	s, err := Read(write(t, dir, "config.toml", Starter()), env())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Values {
		if v.Origin != "default" {
			t.Errorf("%+v", v)
		}
	}
	var open strings.Builder
	for line := range strings.Lines(Starter()) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(rest, " = ") && !strings.HasPrefix(rest, " ") {
			line = rest
		}
		open.WriteString(line)
	}
	s, err = Read(write(t, dir, "config.toml", open.String()), env())
	if err != nil {
		t.Fatalf("%v\n%s", err, open.String())
	}
	if got, want := s.Keys.Markdown(), keymap.Default().Markdown(); got != want {
		t.Errorf("the keys that are shown are not the default ones:\n%s", got)
	}
	if n := len(s.Values); n != 4+len(keymap.Default().Bindings()) || s.Mouse || s.Reader || s.ASCII || s.Theme.Name() != "dark" {
		t.Errorf("%d values: %+v", n, s.Values[:4])
	}
}
