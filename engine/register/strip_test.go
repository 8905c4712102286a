package register

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spoil walks a decoded document beside its type and calls at on every derived
// or joined field; what at returns takes the field's place.
func spoil(v any, t reflect.Type, path string, at func(path, tag string, v any) any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			spoil(v[i], t.Elem(), fmt.Sprintf("%s[%d]", path, i), at)
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			old, there := v[key]
			if !there {
				continue
			}
			if tag := f.Tag.Get("reg"); tag == "derived" || tag == "joined" {
				v[key] = at(join(path, key), tag, old)
				continue
			}
			spoil(old, f.Type, join(path, key), at)
		}
	}
}

func decoded(t testing.TB, data []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func encoded(t testing.TB, doc any) []byte {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// With the externals given, no derived field is looked at: whatever stands in
// their place, the derivation is the seed to the byte.
func TestGarbageInDerivedFields(t *testing.T) {
	want := bytes.TrimSuffix(read(t, "seeds", "datastores.json"), []byte("\n"))
	externals := read(t, "register", "externals.json")
	rapid.Check(t, func(r *rapid.T) {
		garbage := rapid.SampledFrom([]any{nil, true, -1.5, 1e300, "garbage", "\x1b[2J", []any{map[string]any{"x": nil}}, map[string]any{"code": 3.0, "acceptance": "no"}})
		doc := decoded(t, want)
		n := 0
		spoil(doc, reflect.TypeFor[Document](), "", func(_, _ string, _ any) any { n++; return garbage.Draw(r, "garbage") })
		if n < 130 {
			r.Fatalf("only %d derived and joined fields were replaced", n)
		}
		s, err := Parse("spoilt.json", encoded(t, doc))
		if err != nil {
			r.Fatal(err)
		}
		if err := s.ParseEstate("externals.json", externals); err != nil {
			r.Fatal(err)
		}
		got, err := s.Derive(Settings{On: "2026-08-15", Profile: Seed})
		if err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(got.Encode(), want) {
			r.Fatalf("not byte-identical: %v", form(got.Encode(), want))
		}
	})
}

// Without externals only what the inference needs is looked at: where
// primaries, copies and paths are, what is joined, and the acceptances.
func TestGarbageBesideTheInference(t *testing.T) {
	want := bytes.TrimSuffix(read(t, "seeds", "datastores.json"), []byte("\n"))
	doc := decoded(t, want)
	n := 0
	spoil(doc, reflect.TypeFor[Document](), "", func(path, tag string, v any) any {
		switch {
		case tag == "joined", strings.HasSuffix(path, ".domain"), strings.HasSuffix(path, ".homeDomain"), strings.HasSuffix(path, ".dependsOnUplink"):
			return v
		case path == "findings":
			var kept []any
			for _, f := range v.([]any) {
				if f.(map[string]any)["acceptance"] != nil {
					kept = append(kept, f)
				}
			}
			return kept
		}
		n++
		return "garbage"
	})
	got, err := parse(t, "spoilt.json", encoded(t, doc)).Derive(Settings{On: "2026-08-15"})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 || !bytes.Equal(got.Encode(), want) {
		t.Errorf("%d fields; %v", n, form(got.Encode(), want))
	}
}

// Every derived field that is changed alone is found, and nothing else is.
func TestCheckFindsEachField(t *testing.T) {
	want := read(t, "seeds", "datastores.json")
	externals := read(t, "register", "externals.json")
	var paths []string
	spoil(decoded(t, want), reflect.TypeFor[Document](), "", func(path, _ string, v any) any { paths = append(paths, path); return v })
	for _, target := range paths {
		if target == "available" {
			continue // given, not derived: it is what the externals say
		}
		doc := decoded(t, want)
		spoil(doc, reflect.TypeFor[Document](), "", func(path, _ string, v any) any {
			if path == target {
				return []any{"changed"}
			}
			return v
		})
		s := parse(t, "changed.json", encoded(t, doc))
		if err := s.ParseEstate("externals.json", externals); err != nil {
			t.Fatal(err)
		}
		r, err := s.Check(Settings{On: "2026-08-15"})
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if r.Holds || r.Total == 0 {
			t.Errorf("%s: not found", target)
		}
		for _, d := range r.Differences {
			if d.Line == 0 || d.Path != target && !strings.HasPrefix(d.Path, target+"[") {
				t.Errorf("%s: %+v", target, d)
			}
		}
	}
	if len(paths) < 130 {
		t.Errorf("only %d fields", len(paths))
	}
}

// Check also finds what is only written otherwise, and forgives one newline.
func TestCheckForm(t *testing.T) {
	data := read(t, "seeds", "datastores.json")
	set := Settings{On: "2026-08-15"}
	for name, c := range map[string]struct {
		data []byte
		line int // 0: holds
	}{
		"newline":    {append(bytes.TrimSuffix(data, []byte("\n")), '\n'), 0},
		"crlf":       {bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), 1},
		"indent":     {bytes.Replace(data, []byte("\n  \"note\""), []byte("\n   \"note\""), 1), 4},
		"escape":     {bytes.Replace(data, []byte("Redis"), []byte("\\u0052edis"), 1), 381},
		"no newline": {bytes.TrimSuffix(data, []byte("\n")), 0},
	} {
		r, err := parse(t, "form.json", c.data).Check(set)
		if err != nil {
			t.Fatal(err)
		}
		if r.Total != 0 || r.Holds != (c.line == 0) {
			t.Errorf("%s: %d differences, holds %t", name, r.Total, r.Holds)
		}
		if c.line > 0 && (r.Form == nil || r.Form.Line < 1 || c.line < 300 && r.Form.Line != c.line) {
			t.Errorf("%s: %+v", name, r.Form)
		}
	}
}

// No id of the seed may stand in the engine: it knows the rules, not the estate.
func TestNoSeedInTheEngine(t *testing.T) {
	doc := seed(t, false).Declared
	var ids []string
	for i := range doc.Stores {
		ids = append(ids, doc.Stores[i].ID, doc.Stores[i].Name)
		for j := range doc.Stores[i].Copies {
			ids = append(ids, doc.Stores[i].Copies[j].ID)
		}
	}
	for i := range doc.Scenarios {
		ids = append(ids, doc.Scenarios[i].Name)
	}
	ids = append(ids, "jarvis", "coolify", "home1", "wireguard", "fd-home-rack")
	for _, file := range sources(t) {
		for _, id := range ids {
			if bytes.Contains(file.data, []byte(id)) {
				t.Errorf("%s holds %q", file.name, id)
			}
		}
	}
}
