package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func TestParseScript(t *testing.T) {
	got, err := ParseScript("players/right.sh", []byte(`#!/bin/sh
# player right
# skill looks around, then does it right
# Any other comment is a comment.
# pause 2.5s

# note first a look
systemctl --no-pager status   # must be plain
ls /etc
---
# pause 100ms
# note only this
---
# on db
# expect lost
# must
systemctl reboot
---
# repeat until 0 every 1s for 30s
# expect 0
cat <<X | grep -q y
# pause is no directive here
X
---
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{File: "players/right.sh", Player: "right", Skill: "looks around, then does it right", Blocks: []Block{
		{Line: 1, Pause: 2500 * time.Millisecond, Note: "first a look",
			Text: "#!/bin/sh\n\n\n# Any other comment is a comment.\n\n\n\nsystemctl --no-pager status   # must be plain\nls /etc\n"},
		{Line: 11, Pause: 100 * time.Millisecond, Note: "only this"},
		{Line: 14, Machine: "db", Expect: ptr(Lost), Must: true, Text: "systemctl reboot\n"},
		{Line: 19, Expect: ptr(0), Repeat: &Repeat{Every: time.Second, For: 30 * time.Second},
			Text: "cat <<X | grep -q y\n# pause is no directive here\nX\n"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestParseScriptErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "p.sh: the script has no blocks"},
		{"# just a comment\n", "p.sh: the script has no blocks"},
		{"ls\n---\n# pause soon\nls\n", `p.sh:3: "soon" is not a time such as 2.5s`},
		{"# pause -1s\nls\n", `p.sh:1: "-1s" is not a time such as 2.5s`},
		{"\n# must be root\nls\n", `p.sh:2: "# must" takes nothing, not "be root"`},
		{"# expect 256\nls\n", `p.sh:1: "256" is not an exit status, 0 to 255`},
		{"# repeat until 0\nls\n", `p.sh:1: "# repeat" is "# repeat until 0 every 1s for 30s", not "# repeat until 0"`},
		{"# note\nls\n", `p.sh:1: "# note" needs a text`},
		{"ls\n---\n# player late\nls\n", `p.sh:3: "# player" belongs into the first block`},
		{"# must\n---\nls\n", "p.sh:1: the block expects something of commands that it does not have"},
		{"ls\n---\n# note x\necho 'open\n", "p.sh:4:6: reached EOF without closing quote `'`"},
		{"ls\n---\n\nif true; then\n", "p.sh:4:10: "},
		{"ls\n---\necho " + strings.Repeat("x", maxBlock) + "\n", "p.sh:3: a block has at most 98304 bytes"},
	} {
		_, err := ParseScript("p.sh", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("# pause 1s\nls\n---\n# must\nfalse\n")
	f.Add("# repeat until 0 every 1s for 30s\ncat <<X\n---\nX\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScript("p.sh", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p.sh:") {
				t.Fatalf("error without its place: %v", err)
			}
			return
		}
		for _, b := range s.Blocks {
			if strings.Contains("\n"+b.Text, "\n---\n") {
				t.Fatalf("a separator inside block %q", b.Text)
			}
		}
	})
}

type notes struct {
	mu    sync.Mutex
	texts []string
}

func (n *notes) Usage(Usage) {}
func (n *notes) Note(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, s)
}

func playScript(t *testing.T, ctx context.Context, gw *Gateway, text string) (Result, *notes) {
	t.Helper()
	s, err := ParseScript("/of/this/host/p.sh", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var n notes
	r, err := Run(ctx, ScriptPlayer(s), Seat{Territory: "t", Agent: "a", Login: gw.Login(), Budget: Budget{ResourceUnits: 1}}, &n)
	if err != nil {
		t.Fatal(err)
	}
	return r, &n
}

func TestScriptPlayer(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		status     Status
		summary    string
		commands   []string
	}{
		{"plain", "# note hi\necho 1\n---\nfalse\n---\necho 3\n", Completed, "p: 3 blocks, 3 commands", []string{"echo 1", "false", "echo 3"}},
		{"expected", "# expect 3\n# must\nexit 3\n", Completed, "p: 1 block, 1 command", []string{"exit 3"}},
		{"unmet", "# expect 3\ntrue\n---\necho on\n", Completed, "p: 2 blocks, 2 commands, 1 ended otherwise than expected", []string{"true", "echo on"}},
		{"must", "# must\nexit 9\n---\necho on\n", Failed, "p: gave up at p.sh:1: exit 9, expected exit 0", []string{"exit 9"}},
		{"machine", "# on db\necho there\n", Completed, "p: 1 block, 1 command", []string{"echo there"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gw, w := open(t, newGuest(t), "app", "db")
			r, _ := playScript(t, t.Context(), gw, tt.text)
			if r.Status != tt.status || r.Summary != tt.summary {
				t.Fatalf("%s: %s", r.Status, r.Summary)
			}
			w.wait(t, "all finishes", func() bool { return len(w.done) == len(tt.commands) })
			for i, c := range tt.commands {
				if got := w.action(uint64(i + 1)).Command; got != c {
					t.Errorf("command %d is %q, want %q", i+1, got, c)
				}
			}
			if tt.name == "machine" && w.action(1).Machine != "db" {
				t.Errorf("ran on %s", w.action(1).Machine)
			}
		})
	}
}

func TestScriptRepeats(t *testing.T) {
	gw, w := open(t, newGuest(t))
	dir := t.TempDir()
	r, n := playScript(t, t.Context(), gw, fmt.Sprintf("# note wait\n# repeat until 0 every 10ms for 20s\n# must\necho x >>%s/n; test $(wc -l <%s/n) -ge 3\n", dir, dir))
	if r.Status != Completed || len(w.started) != 3 || len(n.texts) != 1 {
		t.Fatalf("%+v after %d commands, notes %v", r, len(w.started), n.texts)
	}
	r, _ = playScript(t, t.Context(), gw, "# repeat until 0 every 10ms for 300ms\n# must\nexit 8\n")
	if r.Status != Failed || !strings.HasSuffix(r.Summary, "exit 8, expected exit 0") {
		t.Fatalf("%+v", r)
	}
	// The block's time also ends a command that hangs.
	r, _ = playScript(t, t.Context(), gw, "# repeat until 0 every 10ms for 300ms\nsleep 1000\n---\necho on\n")
	if r.Status != Completed || !strings.Contains(r.Summary, "1 ended otherwise") {
		t.Fatalf("%+v", r)
	}
}

func TestScriptSurvivesAReboot(t *testing.T) {
	guest := newGuest(t)
	gw, w := open(t, guest)
	done := make(chan Result, 1)
	go func() {
		r, _ := playScript(t, t.Context(), gw, "# expect lost\n# must\necho going; sleep 1000\n---\n# must\necho back\n")
		done <- r
	}()
	w.wait(t, "the first command", func() bool { return len(w.casts) == 1 })
	w.tape(1).waitFor(t, 'o', "going")
	guest.down()
	w.wait(t, "the second command", func() bool { return len(w.started) == 2 })
	guest.up()
	if r := <-done; r.Status != Completed {
		t.Fatalf("%+v", r)
	}
	if f := w.finish(t, 2); f.Output != "back" {
		t.Fatalf("%+v", f)
	}
}

func TestScriptIsCut(t *testing.T) {
	gw, w := open(t, newGuest(t))
	for _, text := range []string{"sleep 1000\n", "true\n---\n# pause 1h\ntrue\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		before := len(w.started)
		go func() {
			w.wait(t, "a command", func() bool { return len(w.started) > before })
			cancel()
		}()
		r, _ := playScript(t, ctx, gw, text)
		if r.Status != Interrupted || !strings.Contains(r.Summary, "cut") {
			t.Fatalf("%+v", r)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if r, _ := playScript(t, ctx, gw, "sleep 1000\n"); r.Status != TimedOut {
		t.Fatalf("%+v", r)
	}
}

func TestScriptWithAForeignPassword(t *testing.T) {
	gw, _ := open(t, newGuest(t))
	s, err := ParseScript("p.sh", []byte("ls\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := gw.Login()
	l.Password = "wrong"
	r, err := Run(t.Context(), ScriptPlayer(s), Seat{Login: l}, nil)
	if err != nil || r.Status != HarnessError || !strings.Contains(r.Summary, "unable to authenticate") {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestRegistry(t *testing.T) {
	reg := Registry{
		"good": func(arg string) (Player, error) { return ScriptPlayer(&Script{Player: arg}), nil },
		"bad":  func(string) (Player, error) { return nil, errors.New("no key") },
	}
	if p, err := reg.Player("good:a:b"); err != nil || p.(scriptPlayer).s.Player != "a:b" {
		t.Errorf("%v, %v", p, err)
	}
	for spec, want := range map[string]string{
		"bad:x": `adapter "bad:x": no key`,
		"claux": `adapter "claux" is not known here; known are: bad, good`,
	} {
		if _, err := reg.Player(spec); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
