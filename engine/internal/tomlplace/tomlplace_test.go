package tomlplace

import (
	"strings"
	"testing"
)

func TestTooDeep(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{"a = 1\nb = [[[1]]]\n", -1},
		{"a = 1\nb = [[[[1]]]]\n", 14}, // the fourth level's first byte
		{"a = \"[[[[[[[[\"\n", -1},
		{"a.b.c.d = 1\n", -1},
		{"a.b.c.d.e = 1\n", 7},
		{"b = " + strings.Repeat("[", 1<<20), 8},
	} {
		if got := Find([]byte(tt.text), 3).TooDeep; got != tt.at {
			t.Errorf("%.20q is too deep at %d, want %d", tt.text, got, tt.at)
		}
	}
}

func TestFind(t *testing.T) {
	const text = "a = {b = 1}\n[[t]]\nx.y = [1, '''\n''']\n[t.z]\n"
	p := Find([]byte(text), 64)
	for path, at := range map[string]int{
		"": 0, Key("a"): 0, Key("a") + Key("b"): 5, Key("t") + Index(0): 12, Key("t") + Index(0) + Key("x") + Key("y"): 18,
		Key("t") + Index(0) + Key("x") + Key("y") + Index(1): 28, Key("t") + Index(0) + Key("z"): 37,
	} {
		if got, ok := p.Keys[path]; !ok || got != at {
			t.Errorf("%q is at %d, %t, want %d", path, got, ok, at)
		}
	}
	if len(p.Headers) != 2 || p.Headers[1] != (Header{37, 42, Key("t") + Index(0) + Key("z")}) {
		t.Errorf("headers %+v", p.Headers)
	}
}
