package step

import (
	"strings"
	"testing"

	"refbox/tui/canvas"
)

// styleAt is how a word of a text is shown.
func styleAt(t *testing.T, s, grammar, word string) canvas.Style {
	t.Helper()
	i := strings.Index(s, word)
	for _, sp := range colored(s, grammar) {
		if sp.from <= i && i < sp.to {
			return sp.style
		}
	}
	t.Fatalf("%q of %q is not coloured", word, s)
	return canvas.Style{}
}

func TestLanguagesInsideACommand(t *testing.T) {
	keyword := styleAt(t, "def f(): pass", "python", "def")
	for name, s := range map[string]string{
		"python":      "cd /x && python3 - <<'EOF'\nimport os\ndef f(): pass\nEOF\necho done",
		"a script":    "cat > /opt/a.py <<EOF\ndef f(): pass\nEOF",
		"through tee": "sudo tee /opt/a.py <<\"PY\"\ndef f(): pass\nPY\nls",
		"unended":     "python - <<PY\ndef f(): pass\n",
	} {
		if got := styleAt(t, s, "bash", "def"); got != keyword {
			t.Errorf("%s: def is %+v, not %+v", name, got, keyword)
		}
		at := 0
		for _, sp := range colored(s, "bash") {
			if sp.from != at {
				t.Fatalf("%s: a span begins at %d, not %d", name, sp.from, at)
			}
			at = sp.to
		}
		if at != len(s) {
			t.Errorf("%s: the spans end at %d of %d", name, at, len(s))
		}
	}
	if got := styleAt(t, "sqlite3 x.db <<E\nselect a from b;\nE", "bash", "select"); got == styleAt(t, "x <<E\nselect a\nE", "bash", "select") {
		t.Error("SQL is not told from text")
	}
}

// Every grammar that is brought along can be read, and keeps the text.
func TestGrammars(t *testing.T) {
	files, err := grammars.ReadDir("lexers")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d grammars, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".xml")
		s := "a = 'b' # c\n[x]\nif true; then echo \"$y\"; fi\n"
		if spans := colored(s, name); len(spans) < 2 || end(spans) != len(s) {
			t.Errorf("%s: %d spans", name, len(spans))
		}
	}
	long := strings.Repeat("echo \"word $x\" # comment\n", 2000)
	if spans := colored(long, "bash"); end(spans) != len(long) || spans[len(spans)-1].from > maxColored {
		t.Error("a long text is not coloured in its beginning only")
	}
}

// The places of effects are marked where they stand, also behind tabs and
// sequences.
func TestMarksKeepTheirPlaces(t *testing.T) {
	raw := "\tx\x1b[31m; systemctl stop a\n"
	i := strings.Index(raw, "systemctl")
	p := &paper{w: 60}
	p.code(raw, "", []span{{i, i + len("systemctl stop a"), canvas.Fg(canvas.Warn).With(canvas.Underline)}})
	marked := ""
	for _, r := range p.rows {
		for _, c := range r.cells {
			if c.S.Attr&canvas.Underline != 0 {
				marked += string(c.R)
			}
		}
	}
	if marked != "systemctl stop a" {
		t.Errorf("marked is %q in %q", marked, p.rows[0].words())
	}
}
