package tree

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// show prints a value with the place of every leaf and key.
func show(v *Value) string {
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return fmt.Sprint(v.Bool)
	case Number:
		return v.Text
	case String:
		return fmt.Sprintf("%q", v.Text)
	case List:
		var s []string
		for _, c := range v.Items {
			s = append(s, show(c))
		}
		return "[" + strings.Join(s, " ") + "]"
	default:
		var s []string
		for _, f := range v.Fields {
			s = append(s, fmt.Sprintf("%s@%d:%d=%s", f.Key, f.Pos.Line, f.Pos.Col, show(f.Value)))
		}
		return "{" + strings.Join(s, " ") + "}"
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		syntax   Syntax
		in, want string
	}{
		{JSON, "{\"z\": 1,\n  \"a\": [true, null, -0.5],\n \"é\": {\"k\":\"v\"}}", `{z@1:2=1 a@2:3=[true null -0.5] é@3:2={k@3:8="v"}}`},
		{TOML, "z = 1\na = [true, -0.5]\nd = 2026-07-12\n[t]\nq = 1.0\n[[s]]\nid = \"a\"\n  [[s.c]]\n  id = 'b'\n[[s]]\nx.y = \"\"\"m\"\"\"\n",
			`{z@1:1=1 a@2:1=[true -0.5] d@3:1="2026-07-12" t@4:1={q@5:1=1.0} s@6:1=[{id@7:1="a" c@8:3=[{id@9:3="b"}]} {x@11:1={y@11:1="m"}}]}`},
		{YAML, "z: 1\na: [true, null, -0.5]\nd: 2026-07-12\nq: 1.0\ns:\n  - id: \"a\"\n    n: 0x10\n  - ~\n",
			`{z@1:1=1 a@2:1=[true null -0.5] d@3:1="2026-07-12" q@4:1=1.0 s@5:1=[{id@6:5="a" n@7:5=16} null]}`},
	} {
		v, err := Parse(c.syntax, []byte(c.in), "")
		if err != nil {
			t.Errorf("%s: %v", c.syntax, err)
			continue
		}
		if got := show(v); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.syntax, got, c.want)
		}
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		syntax   Syntax
		in, want string
	}{
		{JSON, "", "1:1 the file ends early"},
		{JSON, "{\"a\": 1", "1:8 the file ends early"},
		{JSON, "{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", `3:2 key "a" is given twice`},
		{JSON, "{} {}", "1:4 something follows"},
		{JSON, "[1]", "1:1 is a list; a table is wanted"},
		{JSON, "{\"a\":\n  tru }", "2:3 invalid character"},
		{JSON, "\xef\xbb\xbf{}", "1:1 starts with a byte order mark"},
		{JSON, "{\"a\":\n \"\xff\"}", "2:3 byte 0xff is not UTF-8"},
		{JSON, `{"a":` + deep(100) + "}", "1:70 nested deeper"},
		{TOML, "a = 1\na = 2\n", "2:"},
		{TOML, "x = inf\n", "1:1 is no finite number"},
		{TOML, "a = " + deep(100), "1:70 nested deeper"},
		{TOML, strings.Repeat("a.", 100) + "a = 1", "1:130 nested deeper"},
		{TOML, "a = 2026-02-30", "1:"},
		{YAML, "", "1:1 the file is empty"},
		{YAML, "a: 1\nb: 2\na: 3\n", `3:1 key "a" is given twice`},
		{YAML, "a: &x 1\nb: *x\n", "2:4 aliases (*x) are not read"},
		{YAML, "a: 1\n---\nb: 2\n", "2:1 a second document"},
		{YAML, "a: .inf\n", "1:4 .inf is no finite number"},
		{YAML, "a: {<<: {b: 1}}\n", "1:5 a key must be a plain string"},
		{YAML, "a: " + deep(100), "1:"},
		{YAML, "a: [1\nb: 2\n", ":"},
		{YAML, "a: !!binary aGk=\n", "1:4 the tag !!binary"},
	} {
		_, err := Parse(c.syntax, []byte(c.in), "")
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%s %q: %v", c.syntax, c.in, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d %s", e.Pos.Line, e.Pos.Col, e.Text); !strings.Contains(got, c.want) {
			t.Errorf("%s %.40q: %s, want %s", c.syntax, c.in, got, c.want)
		} else if e.Pos.Line == 0 {
			t.Errorf("%s %.40q: no place: %s", c.syntax, c.in, got)
		}
	}
}

// Hostile files end in an error, soon.
func TestHostile(t *testing.T) {
	const n = 200_000
	for name, c := range map[string]struct {
		syntax Syntax
		in     string
	}{
		"dotted key":      {TOML, strings.Repeat("a.", n) + "a = 1"},
		"hidden brackets": {TOML, "a = " + strings.Repeat(`["]", `, n)},
		"inline tables":   {TOML, "a = " + strings.Repeat(`{a = `, n)},
		"headers":         {TOML, "[" + strings.Repeat("a.", n) + "a]"},
		"flow":            {YAML, strings.Repeat("[", n)},
		"hidden flow":     {YAML, strings.Repeat(`["]", `, n)},
		"blocks":          {YAML, strings.Repeat("- ", n)},
		"laughs":          {YAML, "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\n"},
		"json":            {JSON, strings.Repeat(`{"a":`, n)},
	} {
		start := time.Now()
		if _, err := Parse(c.syntax, []byte(c.in), ""); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

func TestAt(t *testing.T) {
	v, err := Parse(JSON, []byte("{\n \"a.b\": {\"c\": [1,\n {\"d\": 2}]},\n \"a\": 1\n}"), "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Pos{
		"":             {1, 1},
		"a":            {4, 2},
		"a.b":          {2, 2},
		"a.b.c[1].d":   {3, 3},
		"a.b.c[1].e.f": {3, 2},
		"a.b.c[7]":     {2, 10},
	} {
		if got := v.At(path); got != want {
			t.Errorf("At(%q) = %v, want %v", path, got, want)
		}
	}
}

// A packed list has the items, and the places, that it has unpacked.
func TestPacked(t *testing.T) {
	const doc = "{\"x\": [0],\n \"m\": [ {\"é\": [1, null],\n\t\"b\": \"x\"} , 7,\n\n  [], \"\" ], \"y\": {\"m\": [2]}}"
	plain, err := Parse(JSON, []byte(doc), "")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Parse(JSON, []byte(doc), "m")
	if err != nil {
		t.Fatal(err)
	}
	m := packed.Get("m")
	if m.packed == nil || m.Items != nil || m.Len() != 4 || packed.Get("y").Get("m").packed != nil {
		t.Fatalf("%+v", m)
	}
	for i := range m.Len() {
		if want, got := plain.Get("m").Item(i), m.Item(i); !reflect.DeepEqual(got, want) {
			t.Errorf("item %d is %+v, want %+v", i, got, want)
		}
	}
	if got, want := packed.At("m[0].b"), plain.At("m[0].b"); got != want || got.Line != 3 {
		t.Errorf("%v, want %v", got, want)
	}
	// What is no plain value is null; what is no JSON is an error with its place.
	odd, err := Parse(JSON, []byte("{\"m\": [1,\n {\"a\": 1, \"a\": 2}]}"), "m")
	if err != nil {
		t.Fatal(err)
	}
	if v := odd.Get("m").Item(1); v.Kind != Null || v.Pos != (Pos{2, 2}) {
		t.Errorf("%+v", v)
	}
	var bad *Error
	if _, err := Parse(JSON, []byte("{\"m\": [1,\n {\"a\" 1}]}"), "m"); !errors.As(err, &bad) || bad.Pos.Line != 2 {
		t.Errorf("%v", err)
	}
	if _, err := Parse(JSON, []byte("{\"m\": [1,\n {\"a\": "), "m"); err == nil || err.Error() != "the file ends early" {
		t.Errorf("%v", err)
	}
}

// What is too long is refused by name of the bound, and of what helps.
func TestTooLong(t *testing.T) {
	for syntax, most := range map[Syntax]string{YAML: "64 MiB", TOML: "64 MiB", JSON: "512 MiB"} {
		size := MaxBytes
		if syntax == JSON {
			if testing.Short() {
				continue // half a gigabyte
			}
			size = MaxJSONBytes
		}
		_, err := Parse(syntax, make([]byte, size+1), "")
		if err == nil || !strings.Contains(err.Error(), most) || !strings.Contains(err.Error(), "split the register") {
			t.Errorf("%s: %v", syntax, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"{}", "a = 1", "a: 1", "[[a]]\nb.c = [1, {d = 2}]", "- a: [b, {c: d}]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, syntax := range []Syntax{JSON, TOML, YAML} {
			v, err := Parse(syntax, []byte(s), "matrix")
			if err != nil {
				if _, ok := err.(*Error); !ok {
					t.Fatalf("%s: %T %v", syntax, err, err)
				}
				continue
			}
			if v.Kind != Object {
				t.Fatalf("%s: %v", syntax, v.Kind)
			}
		}
	})
}
