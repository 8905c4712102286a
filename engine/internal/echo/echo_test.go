package echo

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Steps begin with what they are: < typed, > printed, . the end.
func play(steps ...string) (lines []Line) {
	var i Input
	for _, s := range steps {
		switch s[0] {
		case '<':
			lines = append(lines, i.Typed([]byte(s[1:]))...)
		case '>':
			lines = append(lines, i.Printed([]byte(s[1:]))...)
		}
	}
	return append(lines, i.End()...)
}

func TestRule(t *testing.T) {
	shown := func(s string) Line { return Line{s, true} }
	flood := ">" + strings.Repeat("line\r\n", 1000)
	for _, tc := range []struct {
		name  string
		steps []string
		want  []Line
	}{
		{"echoed key by key", []string{">$ ", "<l", ">l", "<s", ">s", "<\r", ">\r\nbin\r\n"}, []Line{shown("ls")}},
		{"echoed at once", []string{"<ls -l\r", ">ls -l\r\n"}, []Line{shown("ls -l")}},
		{"a silent password", []string{">Password: ", "<hunter2\r", ">\r\n$ "}, []Line{{}}},
		{"a prompt in other words", []string{">Geheimwort? ", "<hunter2\r", ">\r\n$ "}, []Line{{}}},
		{"pasted ahead of its prompt", []string{"<su\rhunter2\rid\r", ">su\r\n", ">Password: ", ">\r\n# ", ">id\r\n"}, []Line{shown("su"), {}, shown("id")}},
		{"the echo comes late", []string{"<sleep 9\r", ">sleep 9\r\n", "<ls\r", ">$ ", ">ls\r\n"}, []Line{shown("sleep 9"), shown("ls")}},
		{"stars", []string{"<hunter2\r", ">*******\r\n"}, []Line{{}}},
		{"what was printed before", []string{">hunter2\r\nPassword: ", "<hunter2\r", ">\r\n"}, []Line{{}}},
		{"what is printed much later", []string{"<hunter2\r", flood, ">hunter2\r\n"}, []Line{{}}},
		{"in the middle of a line", []string{"<hunter2\r", ">hunter2 is no password\r\n"}, []Line{{}}},
		{"its letters apart", []string{"<ab\r", ">a b\r\n", ">a", ">\r\n", ">b\r\n"}, []Line{{}}},
		{"named by the next line", []string{"<hunter2\r", ">\r\n$ ", "<echo hunter2\r", ">echo hunter2\r\n"}, []Line{{}, shown("echo hunter2")}},
		{"rubbed out", []string{"<lx\x7fs\r", ">lx\b \bs\r\n"}, []Line{shown("ls")}},
		{"colours and bracketed paste", []string{"<\x1b[200~ls ü\x1b[201~\r", ">\x1b[7mls\x1b[m ü\x1b[?2004l\r\r\n"}, []Line{shown("ls ü")}},
		{"a title", []string{"<ls\r", ">\x1b]0;t\x07l\x1b]0;t\x1b\\s\r\n"}, []Line{shown("ls")}},
		{"completed", []string{"<cat /etc/pas\t\r", ">cat /etc/passwd\r\n"}, []Line{{}}},
		{"Enter alone", []string{"<\r\r\n", ">\r\n\r\n"}, nil},
		{"never entered", []string{"<hunter2", ">hunter2\r\n"}, []Line{{}}},
		{"too long", []string{"<" + strings.Repeat("x", maxLine+1) + "\r", ">" + strings.Repeat("x", maxLine+1) + "\r\n"}, []Line{{}}},
		{"idle output between", []string{"<a\r", ">a\r\n", flood, flood, "<b\r", ">b\r\n"}, []Line{shown("a"), shown("b")}},
	} {
		if got := play(tc.steps...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// Whatever is typed and printed, in whatever pieces: what is kept stands in the
// output, every line is told once, and what is remembered is bounded.
func TestNothingIsKeptThatWasNotShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var i Input
		var keys, screen filter
		var printed, typed strings.Builder
		text := func(f *filter, s string, to *strings.Builder) {
			for _, b := range []byte(s) {
				if b = f.next(b); b != 0 {
					to.WriteByte(b)
				}
			}
		}
		piece := rapid.StringOfN(rapid.SampledFrom([]rune("ab\r\n\x1b[m")), 0, 12, -1)
		var lines []Line
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			s := piece.Draw(t, "piece")
			if rapid.Bool().Draw(t, "typed") {
				text(&keys, s, &typed)
				lines = append(lines, i.Typed([]byte(s))...)
			} else {
				text(&screen, s, &printed)
				lines = append(lines, i.Printed([]byte(s))...)
			}
			if len(i.printed) > maxPrinted || len(i.waiting) > maxWaiting {
				t.Fatal("it remembers too much")
			}
		}
		lines = append(lines, i.End()...)
		at, from := 0, 0
		for _, l := range lines {
			if !l.Shown {
				if l.Text != "" {
					t.Fatal("a line that was not shown has text")
				}
				continue
			}
			n := strings.Index(printed.String()[at:], l.Text)
			m := strings.Index(typed.String()[from:], l.Text)
			if n < 0 || m < 0 {
				t.Fatalf("%q is kept; printed %q, typed %q", l.Text, printed.String(), typed.String())
			}
			at, from = at+n+len(l.Text), from+m+len(l.Text)
		}
	})
}

func FuzzInput(f *testing.F) {
	f.Add([]byte("ls\r"), []byte("ls\r\n"))
	f.Add([]byte("\x7f\x1b[A\r"), []byte("\b\x1b]\x07"))
	f.Fuzz(func(t *testing.T, typed, printed []byte) {
		var i Input
		lines := append(i.Typed(typed), i.Printed(printed)...)
		for _, l := range append(lines, i.End()...) {
			if strings.ContainsAny(l.Text, "\x1b\x00\r\n\x7f") {
				t.Fatalf("%q", l.Text)
			}
		}
	})
}

// However the output comes in pieces, the same lines are kept.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.StringMatching(`([ab]{0,3}\r){1,5}`).Draw(t, "typed")
		printed := rapid.StringMatching(`([ab]{1,3}|\r\n|[\x08]|\$ ){0,20}`).Draw(t, "printed")
		whole := play("<"+typed, ">"+printed)
		steps := []string{"<" + typed}
		for rest := printed; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			steps, rest = append(steps, ">"+rest[:n]), rest[n:]
		}
		if got := play(steps...); !slices.Equal(got, whole) {
			t.Fatalf("%q: %v, whole %v", steps, got, whole)
		}
	})
}

// What is printed before the Enter counts: a message may have ended the line.
func TestInterruptedLine(t *testing.T) {
	want := []Line{{"ls", true}}
	if got := play("<ls", ">ls", ">\r\n[ 1.0] a card came up\r\n", "<\r", ">\r\n"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
