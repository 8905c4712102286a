package place

import (
	"testing"

	"github.com/BurntSushi/toml"
)

func TestFault(t *testing.T) {
	for file, want := range map[string]int{
		"a = 1\nb = = 2\n":  2,
		"a = \"x\"\n":       1,
		"b = 1\n\na = [1]":  3,
		"[c]\nd = 1\nd = 2": 3,
	} {
		var v struct{ A, B int }
		_, err := toml.Decode(file, &v)
		if err == nil {
			t.Fatalf("%q is read", file)
		}
		if line, what := Fault(err); line != want || what == "" {
			t.Errorf("%q: line %d, not %d: %q", file, line, want, what)
		}
	}
}

func TestLine(t *testing.T) {
	file := []byte("# a = 0\na = 1\n[b]\na = 2\n  \"c\" = 3 # x = 4\n[ d.e ]\nf=1\n[[g]]\n")
	for _, tc := range []struct {
		key  []string
		want int
	}{
		{[]string{"a"}, 2}, {[]string{"b"}, 3}, {[]string{"b", "a"}, 4}, {[]string{"b", "c"}, 5}, {[]string{"d", "e", "f"}, 7},
		{[]string{"g"}, 8}, {[]string{"f"}, 0}, {[]string{"x"}, 0},
	} {
		if got := Line(file, tc.key...); got != tc.want {
			t.Errorf("%v: line %d, not %d", tc.key, got, tc.want)
		}
	}
}
