package register

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(shared.Shared(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t testing.TB, file string, data []byte) *Source {
	t.Helper()
	s, err := Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// seed is the rendered register of the original; given adds its externals.
func seed(t testing.TB, given bool) *Source {
	t.Helper()
	s := parse(t, "datastores.json", read(t, "seeds", "datastores.json"))
	if given {
		if err := s.ParseEstate("externals.json", read(t, "register", "externals.json")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// declared is the seed's declared part with its externals.
func declared(t testing.TB) *Source {
	t.Helper()
	s := parse(t, "declared.json", read(t, "register", "declared.json"))
	if err := s.ParseEstate("externals.json", read(t, "register", "externals.json")); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSeedRoundTrip(t *testing.T) {
	want := bytes.TrimSuffix(read(t, "seeds", "datastores.json"), []byte("\n"))
	for name, s := range map[string]*Source{"inferred": seed(t, false), "given": seed(t, true), "declared": declared(t)} {
		t.Run(name, func(t *testing.T) {
			set := Settings{On: "2026-08-15"}
			if name == "declared" {
				set.Profile = Seed
			}
			r, err := s.Check(set)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Holds || r.Total != 0 || r.Profile != Seed {
				t.Errorf("%d differences, profile %s, form %v: %+v", r.Total, r.Profile, r.Form, r.Differences)
			}
			if got := r.Document.Encode(); !bytes.Equal(got, want) {
				t.Errorf("not byte-identical: %v", form(got, want))
			}
		})
	}
}

// The matrix is compared cell by cell, and a difference is told by its place.
func TestCheckFindsACell(t *testing.T) {
	text := string(read(t, "seeds", "datastores.json"))
	at := strings.LastIndex(text, `"outcome": "lost"`)
	changed := text[:at] + `"outcome": "writable"` + text[at+len(`"outcome": "lost"`):]
	line := 1 + strings.Count(text[:at], "\n")
	r, err := parse(t, "datastores.json", []byte(changed)).Check(Settings{On: "2026-08-15"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Holds || r.Total != 1 || r.Differences[0].Line != line || !strings.HasPrefix(r.Differences[0].Path, "matrix[") || r.Differences[0].Want != `"lost"` {
		t.Errorf("%d differences, want one in line %d: %+v", r.Total, line, r.Differences)
	}
	// A cell with a key given twice is no cell.
	twice := strings.Replace(text, `"posture": "target",`, `"posture": "target", "posture": "target",`, 1)
	r, err = parse(t, "datastores.json", []byte(twice)).Check(Settings{On: "2026-08-15"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Holds || r.Total != 1 || r.Differences[0].Path != "matrix[0]" {
		t.Errorf("%+v", r.Differences)
	}
}
