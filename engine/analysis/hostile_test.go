package analysis

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// holds is what every judgement promises, whatever the text.
func holds(t interface {
	Errorf(string, ...any)
}, a Action, before bool) {
	j := Classify(a, before)
	text := a.Text()
	for _, e := range j.Effects {
		if e.Span.Start < 0 || e.Span.End < e.Span.Start || e.Span.End > len(text) {
			t.Errorf("span %v is outside of %d bytes: %q", e.Span, len(text), clip(text, 200))
		}
		if e.Sort == "" || e.By == "" || strings.Contains(e.Target, unknown) || len(e.Shows) > 160 {
			t.Errorf("%q: effect %+v", clip(text, 200), e)
		}
	}
	if len(j.Effects) > maxEffects {
		t.Errorf("%d effects", len(j.Effects))
	}
	if j.Kind == Validation && !before {
		t.Errorf("%q is validation before any change", clip(text, 200))
	}
	if j.Changed && j.Kind != Mutation && j.Kind != Lifecycle {
		t.Errorf("%q changed something and is %s", clip(text, 200), j.Kind)
	}
	if again := Classify(a, before); !reflect.DeepEqual(j, again) {
		t.Errorf("%q is judged differently the second time", clip(text, 200))
	}
}

// pieces of commands, to be put together in any order.
var pieces = []string{"systemctl restart a", "rm -rf /opt/x", "cat <<'EOF'\n", "EOF\n", "python3 - <<PY\n", "import os\n", "os.remove('/x')\n", "PY\n",
	"$(", ")", "\"", "'", "`", "${", "}", "{", "((", "))", "[[", "]]", "; ", " && ", " || ", " | ", " & ", "\n", "if ", "then ", "fi\n", "for x in a b; do ",
	"done", "while ", "case x in a) ", "esac", "f() {", "f ", "eval ", "bash -c ", "xargs ", "find / -exec ", "\\;", "trap f EXIT", "sqlite3 /x.db ",
	"insert into t values (1);", "select * from t;", "begin;", "rollback;", "> /opt/y", "2>&1", "<<<", "def g(x):\n", "    g(x)\n", "g(1)\n", "lambda: ",
	"for i in [1,2]:\n", "f'{g(1)}'", "\"\"\"", "$x", "x=$x$x", "x=(a b)", "${x[@]}", "\x00", "\xff", "…", "é", "-", "--", "=", "\\", "~/", "*", "curl -X PUT ", "%s"}

func TestPromisesHoldForAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "parts")
		tool := rapid.SampledFrom([]string{"Bash", "", "python", "Write", "sftp", "apply_patch"}).Draw(t, "tool")
		a := Action{Tool: tool, Command: strings.Join(parts, ""), Output: strings.Join(parts, "\n"), Success: rapid.Bool().Draw(t, "ok")}
		holds(t, a, rapid.Bool().Draw(t, "before"))
	})
}

// Every prefix of real commands is read, within its promises.
func TestPrefixesOfRealCommands(t *testing.T) {
	for i, l := range readLabels(t) {
		if i%7 != 0 {
			continue
		}
		for n := 0; n < len(l.Command); n += 1 + n/20 {
			text := l.Command[:n]
			holds(t, Action{Tool: l.Tool, Command: text, Success: true}, true)
		}
	}
}

// Text made to exhaust a reader: each is read in bounded work.
func TestExhaustingText(t *testing.T) {
	big := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, text := range map[string]string{
		"parentheses":   big("(", 200000),
		"substitutions": big("$(", 100000),
		"backquotes":    big("`", 100000),
		"braces":        "touch " + big("{a,b}", 40),
		"sequence":      "touch /opt/{1..999999999}",
		"quotes":        big("\"'", 100000),
		"heredocs":      big("cat <<A\n", 20000),
		"ifs":           big("if ", 80000),
		"nots":          big("! ", 80000),
		"chain":         big("true && ", 30000) + "rm -rf /opt/x",
		"pipe":          big("cat | ", 30000) + "tee /opt/x",
		"doubling":      "x=aaaaaaaaaaaaaaaa;" + big("x=$x$x;", 200) + "touch $x",
		"fork bomb":     "f() { f | f & f; }; f",
		"loops":         big("for i in 1 2 3 4 5 6 7 8; do ", 12) + "touch /opt/$i" + big("; done", 12),
		"evals":         big("eval ", 5000) + "ls",
		"nested bash":   big("bash -c ", 5000) + "ls",
		"python calls":  "python3 - <<'E'\ndef f(x):\n    f(x)\n    f(x)\nf(1)\nE",
		"python open":   "python3 - <<'E'\n" + big("(", 100000) + "\nE",
		"python blocks": "python3 - <<'E'\n" + big("if x: ", 30000) + "\nE",
		"python nots":   "python3 - <<'E'\nx = " + big("not ", 50000) + "1\nE",
		"python minus":  "python3 - <<'E'\nx = " + big("-", 100000) + "1\nE",
		"fstrings":      "python3 - <<'E'\nx = " + big("f'{", 20000) + "\nE",
		"python loops": "python3 - <<'E'\n" + func() string {
			s := ""
			for i := range 12 {
				s += big(" ", i) + "for x in [1,2,3,4,5,6,7,8]:\n"
			}
			return s + big(" ", 13) + "open('/opt/x','w')\n"
		}() + "E",
		"exec":      "python3 -c 'x=\"exec(x)\"; exec(x)'",
		"sql":       "sqlite3 /x.db \"" + big("(", 100000) + "\"",
		"sql many":  "sqlite3 /x.db \"" + big("insert into t values (1);", 8000) + "\"",
		"globs":     "touch /opt/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab; rm /opt/" + big("*a", 30) + "c",
		"long":      "rm -rf /opt/x; echo " + big("a", 2<<20),
		"many":      big("touch /opt/a; rm /opt/b\n", 10000),
		"self":      "cat > /tmp/s.sh <<'E'\n. /tmp/s.sh; /tmp/s.sh; bash /tmp/s.sh\nE\nbash /tmp/s.sh",
		"no lines":  big("\n", 200000),
		"semicolon": big(";", 100000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			holds(t, Action{Tool: "Bash", Command: text, Success: true}, false)
			t.Logf("%d bytes in %v (twice)", len(text), time.Since(start))
		})
	}
	if j := Classify(Action{Tool: "Bash", Command: big("true && ", 30000) + "rm -rf /opt/x", Success: true}, false); j.Kind != Mutation && !j.Degraded {
		t.Error("the end of a long chain is lost without a word")
	}
	many := ""
	for i := range 500 {
		many += "curl -s localhost/" + big("x", i%7) + " -o /dev/null; ls\n"
	}
	if j := Classify(Action{Tool: "Bash", Command: many + "rm -rf /opt/x", Success: true}, false); j.Kind != Mutation {
		t.Error("a change is lost behind many reads")
	}
}

func FuzzClassify(f *testing.F) {
	for _, p := range pieces {
		f.Add("Bash", p, false)
	}
	f.Add("Bash", "cd /x; python3 - <<'PY'\nimport os\nwith open('a','w') as f: f.write('b')\nPY\nsystemctl restart a", true)
	f.Add("python", "import sqlite3\nsqlite3.connect('x').execute('insert into t values (1)')", true)
	f.Add("Write", "Write /opt/x", false)
	f.Fuzz(func(t *testing.T, tool, command string, before bool) {
		if len(command) > 16<<10 || !utf8.ValidString(tool) {
			return
		}
		holds(t, Action{Tool: tool, Command: command, Output: command, Success: true}, before)
	})
}
