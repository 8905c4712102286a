package probe

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// peak is how far the heap grows while f runs.
func peak(f func()) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var most uint64
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	f()
	close(done)
	watch.Wait()
	return most - min(most, before)
}

// Each of these takes gigabytes, or for ever, in an interpreter without guards.
func TestHostileFilesAreBounded(t *testing.T) {
	ok := func(w http.ResponseWriter, q *http.Request) { w.Write([]byte(strings.Repeat("x", maxBody))) }
	r := newRig(t, ok)
	for _, body := range []string{
		`x = "a" * (1 << 29)`,
		`x = [0] * (1 << 27)`,
		`x = (1 << 29) * b"a"`,
		"x = 'abcdefgh'\nfor _ in range(40):\n    x = x + x",
		"x = 'abcdefgh'\nfor _ in range(40):\n    x += x",
		"x = [1]\nfor _ in range(40):\n    x += x",
		"x = [1]\nfor _ in range(40):\n    x.extend(x)",
		"x = 'a' * 1000000\nkeep = []\nfor _ in range(100000):\n    x += 'b'\n    keep.append(x)",
		"x = 3\nfor _ in range(60):\n    x = x * x",
		"x = 3\nfor _ in range(60):\n    x *= x",
		"x = 'ab'\nfor _ in range(60):\n    x = x.replace('a', x)",
		"x = 'ab' * 1000\nfor _ in range(60):\n    x = x.join([x] * 1000)",
		"x = 'ab' * 1000\nfor _ in range(60):\n    x = ('{0}' * 1000).format(x)",
		"x = 'ab' * 1000\nfor _ in range(60):\n    x = ('%s' * 100) % tuple([x] * 100)",
		"x = 'a' * 1000000\nkeep = []\nfor _ in range(100000):\n    keep.append(x.upper())",
		"x = [0] * 100000\nkeep = []\nfor _ in range(100000):\n    keep.append(x[:])",
		"up = ('a' * 1000000).upper\nkeep = []\nfor _ in range(100000):\n    keep.append(up())",
		`x = sorted([[""] * 1000] * 1000, key = ("a" * 10000).join)`,
		`x = list(range(1 << 40))`,
		`x = [0]` + "\nx.extend(range(1 << 40))",
		`x = any(range(0, -1 << 40, -1)) or all(range(1, 1 << 40))`,
		`x = max(range(1 << 40))`,
		`x = [list(("a" * 1000000).codepoints()) for _ in range(1000)]`,
		`x = int("9" * 10000000)`,
		`x = json.decode("[" * 10000000)`,
		"x = [0] * 100\nfor _ in range(20):\n    x = [x] * 100\ny = str(x)",
		"x = [0] * 100\nfor _ in range(20):\n    x = [x] * 100\ny = json.encode(x)",
		"x = [0] * 100\ny = [0] * 100\nfor _ in range(9):\n    x = [x] * 100\n    y = [y] * 100\nz = x == y",
		"x = (0, 0)\nfor _ in range(60):\n    x = (x, x)\ny = {x: 1}",
		"x = []\nfor _ in range(100000):\n    x = [x]\ny = repr(x)",
		"keep = []\nfor _ in range(1 << 40):\n    keep.append({})",
		"keep = [{} for _ in range(1 << 30)]",
		"keep = []\nfor i in range(1 << 40):\n    keep.append(seat.http('GET', '/').body + str(i))",
	} {
		var err error
		start := time.Now()
		grew := peak(func() { _, _, err = r.verify(t, t.Context(), body) })
		var f *Failure
		if !errors.As(err, &f) || f.Category != Broken {
			t.Errorf("%s: %v", body, err)
		}
		t.Logf("%4d MiB %6d ms  %.60q", grew>>20, time.Since(start).Milliseconds(), body)
		if grew > 4*maxMemory || time.Since(start) > 20*time.Second {
			t.Errorf("%s: took %d MiB and %v", body, grew>>20, time.Since(start))
		}
	}
}

// What the guards stand for means what it meant.
func TestGuardsKeepTheLanguage(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {})
	for _, expr := range []string{
		`1 + 2 == 3 and "a" + "b" == "ab" and [1] + [2] == [1, 2] and (1,) + (2,) == (1, 2)`,
		`2 * 3 == 6 and "ab" * 2 == "abab" and 2 * [1] == [1, 1] and 7 // 2 == 3 and 7 % 4 == 3 and 7 / 2 == 3.5`,
		`"%s-%d" % ("a", 1) == "a-1" and "{}{}".format(1, "b") == "1b" and ",".join(["a", "b"]) == "a,b"`,
		`1 in [1] and 2 not in [1] and "a" in "cab" and not (1 in {2: 3}) and 1 != 2 and 1 < 2 and 2 >= 2`,
		`[1, 2, 3][1:] == [2, 3] and "abc"[::-1] == "cba" and (1, 2)[:1] == (1,)`,
		`sorted([3, 1, 2], key = lambda x: -x) == [3, 2, 1] and max([1, 5, 2]) == 5 and list(range(3)) == [0, 1, 2]`,
		`{"a": 1} | {"b": 2} == {"a": 1, "b": 2} and dict(a = 1) == {"a": 1} and 6 & 3 == 2 and 6 ^ 3 == 5 and 1 << 4 == 16`,
		`json.decode(json.encode({"a": [1, None]})) == {"a": [1, None]} and struct(a = 1).a == 1 and str([1]) == "[1]"`,
		`(lambda x, y = 1 + 1: x + y)(1) == 3 and [a + b for a, b in [(1, 2)] if a < b] == [3] and (1 if 1 < 2 else 2) == 1`,
		`changed() == [[1, 2, 3], [1, 2, 3], 5, "ab", {"k": 2}, 1, 2]`,
		`int("12") == 12 and float("1.5") == 1.5 and "a b".split() == ["a", "b"] and getattr("a", "upper")() == "A"`,
	} {
		_, _, err := r.verify(t, t.Context(), `def changed():
    x = [1]
    y = x
    x += [2]
    x += (3,)
    n = 10
    n -= 5
    s = "a"
    s += "b"
    d = {}
    d["k"] = 2
    (p, q) = (1, 2)
    return [x, y, n, s, d, p, q]
require(`+expr+`, "it is not so")
return {}`)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
	for src, want := range map[string]string{
		"def verify(seat):\n    f(*[1])":               "t.star:2:7: a verifier may not use * on arguments",
		"def verify(seat):\n    d = {}\n    d[1] += 1": "t.star:3:10: a verifier may use += on a name only",
		"def verify(seat):\n    d = 1\n    d |= 2":     "t.star:3:7: a verifier may not use |=",
		"x = 'a' * (1 << 29)":                          "t.star:1:9: the verifier takes more than 64 MiB",
	} {
		if _, err := loadStarlark("t.star", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
	// An error still names its place.
	_, _, err := r.verify(t, t.Context(), "x = 1\ny = x + 'a'")
	if err == nil || !strings.Contains(fmt.Sprint(err), "unknown binary op: int + string") || !strings.Contains(fmt.Sprint(err), ".star:") {
		t.Errorf("%v", err)
	}
}
