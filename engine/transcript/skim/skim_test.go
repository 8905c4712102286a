package skim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tree reads a value as encoding/json would.
func tree(r *Reader, depth int) any {
	switch r.Kind() {
	case Object:
		m := map[string]any{}
		for key := range r.Keys() {
			m[key] = tree(r, depth+1)
		}
		return m
	case Array:
		a := []any{}
		for range r.Items() {
			a = append(a, tree(r, depth+1))
		}
		return a
	case String:
		s, _ := r.Text(1 << 20)
		return s
	case Number:
		f, _ := r.Float()
		return f
	case True, False:
		b, _ := r.Bool()
		return b
	}
	r.Skip()
	return nil
}

func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		top := 6
		if depth > 3 {
			top = 4
		}
		switch rapid.IntRange(0, top).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "b")
		case 2:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "f")
		case 3, 4:
			return rapid.String().Draw(t, "s")
		case 5:
			return rapid.SliceOfN(value(depth+1), 0, 4).Draw(t, "a")
		}
		m := rapid.MapOfN(rapid.String(), value(depth+1), 0, 4).Draw(t, "m")
		out := map[string]any{}
		for k, v := range m {
			out[k] = v
		}
		return out
	})
}

// What is JSON is read as encoding/json reads it, in memory and through a window,
// and its end is where it is.
func TestReadsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(0).Draw(t, "v")
		b, err := json.Marshal(v)
		if err != nil {
			t.Skip()
		}
		if rapid.Bool().Draw(t, "indent") {
			var out bytes.Buffer
			json.Indent(&out, b, " ", "\t")
			b = out.Bytes()
		}
		pad := rapid.IntRange(0, 20).Draw(t, "pad")
		src := append(bytes.Repeat([]byte("x"), pad), b...)
		for _, r := range []*Reader{Bytes(b, int64(pad)), At(slow{src}, int64(pad), int64(len(src)))} {
			got, _ := json.Marshal(tree(r, 0))
			want, _ := json.Marshal(v)
			if !r.AtEnd() || !bytes.Equal(got, want) {
				t.Fatalf("%s is read as %s, error %v", b, got, r.Err())
			}
			if r.Offset() != int64(len(src)) {
				t.Fatalf("ends at %d of %d", r.Offset(), len(src))
			}
		}
		skip := At(slow{src}, int64(pad), int64(len(src)))
		if skip.Skip(); !skip.AtEnd() {
			t.Fatalf("%s is not skipped: %v", b, skip.Err())
		}
	})
}

// slow gives few bytes at a time, so that windows end everywhere.
type slow struct{ b []byte }

func (s slow) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.b)) {
		return 0, fmt.Errorf("behind the end")
	}
	return copy(p[:min(len(p), 3)], s.b[off:]), nil
}

// Every beginning of a document is noticed as truncated, at its end.
func TestEveryCutIsNoticed(t *testing.T) {
	doc := `{"a":[1,{"b":"c\"d\u00e9\\"},true,null,-1.5e3],"e":{},"f":[],"g":"x"}`
	for n := range len(doc) {
		r := Bytes([]byte(doc[:n]), 0)
		r.Skip()
		if !Truncated(r.Err()) {
			t.Errorf("%q: %v", doc[:n], r.Err())
		}
		keys := Bytes([]byte(doc[:n]), 0)
		for range keys.Keys() {
		}
		if n > 0 && !Truncated(keys.Err()) {
			t.Errorf("keys of %q: %v", doc[:n], keys.Err())
		}
	}
}

func TestDamageIsNoticed(t *testing.T) {
	for _, doc := range []string{`{"a":"xx{"b":1}`, `{"a" 1}`, `{"a":1 "b":2}`, `[1 2]`, `{a:1}`, `[tru]`, `{"a":nul}`, `[1}`, `{"a":1]`, `?`, `{"a":x}`,
		`{"a":{"b":"half{"type":"t"}}`, "[\x00]"} {
		r := Bytes([]byte(doc), 0)
		if r.Skip(); r.AtEnd() {
			t.Errorf("%q is taken for whole", doc)
		}
	}
}

func TestLeniency(t *testing.T) {
	r := Bytes([]byte(`{"n":NaN,"i":-Infinity,"k":1,"k":2,"s":"\ud800 \ud83d\ude00 \uZZ","raw":"a`+"\n\x01"+`b","t":[1,],}`), 0)
	keys := 0
	for key := range r.Keys() {
		keys++
		switch key {
		case "n":
			if f, ok := r.Float(); !ok || !math.IsNaN(f) {
				t.Errorf("NaN is %v", f)
			}
		case "i":
			if n, ok := r.Int(); ok {
				t.Errorf("infinity is the integer %d", n)
			}
		case "s":
			if s := r.Str(100); s != "\ufffd 😀 \\uZZ" {
				t.Errorf("%q", s)
			}
		case "raw":
			if s := r.Str(100); s != "a\n\x01b" {
				t.Errorf("%q", s)
			}
		}
	}
	if !r.AtEnd() || keys != 7 || r.Lone != 1 {
		t.Errorf("%v, %d keys, %d lone", r.Err(), keys, r.Lone)
	}
}

func TestTextIsCut(t *testing.T) {
	long := strings.Repeat(`é\n`, 1000)
	r := Bytes([]byte(`["`+long+`",5]`), 0)
	for i := range r.Items() {
		switch i {
		case 0:
			s, size := r.Text(100)
			if len(s) > 100 || len(s) < 98 || size < 3000 || !strings.HasPrefix(s, "é\né") {
				t.Errorf("%d bytes of %d", len(s), size)
			}
		case 1:
			if n, ok := r.Int(); !ok || n != 5 {
				t.Errorf("behind a cut text is %d", n)
			}
		}
	}
	if !r.AtEnd() {
		t.Error(r.Err())
	}
}

func TestReturn(t *testing.T) {
	r := At(slow{[]byte(`{"a":{"x":1},"b":[2,3],"c":4}`)}, 0, 29)
	var at int64
	for key := range r.Keys() {
		if key == "a" {
			at = r.Offset()
		}
	}
	end := r.Offset()
	r.Return(at)
	raw, _ := r.Raw(100)
	r.Return(end)
	if string(raw) != `{"x":1}` || !r.AtEnd() {
		t.Errorf("%q %v", raw, r.Err())
	}
}

func TestDepthIsBounded(t *testing.T) {
	r := Bytes([]byte(strings.Repeat("[", 1<<20)), 0)
	if r.Skip(); r.Err() == nil || Truncated(r.Err()) {
		t.Error(r.Err())
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"a":[1,"b\u00e9",null],"c":{"d":NaN}}`), 5)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = max(0, min(limit, 1<<16))
		a, w := Bytes(b, 0), At(slow{b}, 0, int64(len(b)))
		a.Skip()
		w.Skip()
		if (a.Err() == nil) != (w.Err() == nil) || a.Err() == nil && a.Offset() != w.Offset() {
			t.Fatalf("in memory: %v at %d; through a window: %v at %d", a.Err(), a.Offset(), w.Err(), w.Offset())
		}
		if json.Valid(b) && (a.Err() != nil || !a.AtEnd()) {
			t.Fatalf("JSON is refused: %v", a.Err())
		}
		r := At(slow{b}, 0, int64(len(b)))
		if v := tree(r, 0); r.Err() == nil && json.Valid(b) {
			_ = v
		}
		s := Bytes(b, 0)
		if text, size := s.Text(limit); len(text) > limit || size < int64(len(text)) {
			t.Fatalf("%d bytes of %d with a limit of %d", len(text), size, limit)
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	doc := []byte(`{"type":"user","message":{"content":[` + strings.Repeat(`{"type":"text","text":"some words with \"quotes\" and more of them to read"},`, 1000) + `1]}}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		r := Bytes(doc, 0)
		r.Skip()
	}
}
