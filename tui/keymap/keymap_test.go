package keymap

import (
	"strings"
	"testing"
)

func TestDefaultIsSound(t *testing.T) {
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range m.Bindings() {
		if b.Short == "" || b.Long == "" || b.Group == "" || len(b.Keys) == 0 {
			t.Errorf("%s: incomplete binding %+v", b.Action, b)
		}
	}
}

// Brackets, braces and the like need a modifier, or are missing, on many
// keyboard layouts: whatever is bound to one has a second key without it.
func TestEveryAwkwardKeyHasASecond(t *testing.T) {
	for _, b := range Default().Bindings() {
		if len(b.Keys[0]) == 1 && strings.ContainsAny(b.Keys[0], "[]{}<>/:+_,.?") && len(b.Keys) < 2 {
			t.Errorf("%s is only on %q", b.Action, b.Keys[0])
		}
	}
}

func TestRemap(t *testing.T) {
	m, err := New(map[Action][]string{Why: {"Z"}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Action("Z") != Why || m.Action("w") != None {
		t.Errorf("Z is %q, w is %q", m.Action("Z"), m.Action("w"))
	}
	for name, bad := range map[string]map[Action][]string{
		"no action is called":         {"dance": {"d"}},
		"is no key":                   {Why: {"ctrl-banana"}},
		"one for each seat":           {Seat: {"1"}},
		"already a key of":            {Why: {"q"}},
		`Z is already a key of "why"`: {Why: {"Z", "Z"}},
		"no key left":                 {Why: {}},
	} {
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want an error with %q", bad, err, name)
		}
	}
}

// Whatever key a person reads somewhere can be written into the configuration.
func TestNamesAreRead(t *testing.T) {
	for _, b := range Default().Bindings() {
		for _, k := range b.Keys {
			if got, ok := Parse(Name(k)); !ok || got != k {
				t.Errorf("%q is shown as %q, which is read as %q", k, Name(k), got)
			}
			if got, ok := Parse(k); !ok || got != k {
				t.Errorf("%q is read as %q", k, got)
			}
		}
	}
	for name, want := range map[string]string{"space": " ", "SPACE": " ", "f5": "f5", "F5": "f5", "ctrl-x": "ctrl+x", "alt-x": "alt+x", "alt-+": "alt++", "shift-tab": "shift+tab", "é": "é", "-": "-"} {
		if got, ok := Parse(name); !ok || got != want {
			t.Errorf("%q is read as %q, not %q", name, got, want)
		}
	}
	for _, name := range []string{"", "\x01", "ctrl-", "banana", "alt-", "ctrl-é", "ww"} {
		if got, ok := Parse(name); ok {
			t.Errorf("%q is read as %q", name, got)
		}
	}
}
