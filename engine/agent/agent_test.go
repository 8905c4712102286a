package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"refbox/engine/event"
)

type playerFunc func(context.Context, Seat, Report) Result

func (f playerFunc) Play(ctx context.Context, s Seat, r Report) Result { return f(ctx, s, r) }

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		play   playerFunc
		budget Budget
		cancel bool
		late   bool
		want   Status
		source string
	}{
		{name: "done", play: func(context.Context, Seat, Report) Result { return Result{Status: Completed} }, want: Completed, source: "player"},
		{name: "panic", play: func(context.Context, Seat, Report) Result { panic("boom") }, want: HarnessError, source: "harness"},
		{name: "no status", play: func(context.Context, Seat, Report) Result { return Result{} }, want: HarnessError, source: "harness"},
		{name: "odd status", play: func(context.Context, Seat, Report) Result { return Result{Status: "won"} }, want: HarnessError, source: "harness"},
		{name: "cut", cancel: true, play: func(ctx context.Context, _ Seat, _ Report) Result { <-ctx.Done(); return Result{} }, want: Interrupted, source: "arena"},
		{name: "late", late: true, play: func(ctx context.Context, _ Seat, _ Report) Result { <-ctx.Done(); return Result{} }, want: TimedOut, source: "player"},
		{name: "provider", play: func(context.Context, Seat, Report) Result { return Result{Status: Unavailable} }, want: Unavailable, source: "provider"},
		{name: "units", budget: Budget{ResourceUnits: 2}, play: func(context.Context, Seat, Report) Result {
			return Result{Status: Completed, Usage: Usage{ResourceUnits: 3}}
		}, want: BudgetExceeded, source: "player"},
		{name: "cost", budget: Budget{MaxCostMicroUSD: ptr(uint64(5))}, play: func(context.Context, Seat, Report) Result {
			return Result{Status: Failed, Usage: Usage{CostMicroUSD: ptr(uint64(6))}}
		}, want: BudgetExceeded, source: "player"},
		{name: "unknown cost", budget: Budget{MaxCostMicroUSD: ptr(uint64(5))}, play: func(context.Context, Seat, Report) Result {
			return Result{Status: Completed}
		}, want: Completed, source: "player"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seat := Seat{Territory: "one", Agent: "ann", Budget: tt.budget, Dir: dir}
			if tt.cancel {
				cancel()
			}
			if tt.late {
				seat.Deadline = time.Now().Add(time.Millisecond)
			}
			r, err := Run(ctx, tt.play, seat, nil)
			if err != nil || r.Status != tt.want || r.Status.Source() != tt.source {
				t.Fatalf("%+v charged to %s, %v; want %s, %s", r, r.Status.Source(), err, tt.want, tt.source)
			}
			var f resultFile
			data, err := os.ReadFile(filepath.Join(dir, "result.json"))
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(data))
			d.DisallowUnknownFields()
			if err := d.Decode(&f); err != nil || f.Status != tt.want || f.Agent != "ann" || f.Territory != "one" || f.SchemaVersion != 1 {
				t.Fatalf("%s: %v", data, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
				t.Fatalf("left %v", left)
			}
		})
	}
}

func TestResultFile(t *testing.T) {
	dir := t.TempDir()
	r := Result{Status: Completed, Summary: "all \x1b[31mgood\x07", Usage: Usage{ToolCalls: ptr(uint64(3)), ResourceUnits: 1}}
	if err := writeResult(dir, Seat{Agent: "ann", Territory: "one"}, r, nil); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "result.json"))
	want := `{
  "schema_version": 1,
  "agent": "ann",
  "territory": "one",
  "status": "completed",
  "summary": "all good␇",
  "usage": {
    "tool_calls": 3,
    "resource_units": 1
  },
  "transcript": null
}
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Fatal(d)
	}
	if err := writeResult(filepath.Join(dir, "nowhere"), Seat{Agent: "ann"}, r, nil); err == nil || !strings.Contains(err.Error(), "ann") {
		t.Fatalf("%v", err)
	}
}

func TestLoginHidesThePassword(t *testing.T) {
	seat := Seat{Login: Login{User: "root", Addr: "127.0.0.1:1", Password: password}}
	for _, s := range []string{fmt.Sprint(seat), fmt.Sprintf("%+v", seat), fmt.Sprintf("%v", &seat), fmt.Sprint(seat.Login)} {
		if strings.Contains(s, password) || !strings.Contains(s, "root@127.0.0.1:1") {
			t.Error(s)
		}
	}
}

func TestResultEvent(t *testing.T) {
	for status, want := range map[Status]event.Body{
		Completed:   event.AgentFinished{Agent: "a", Source: "player", Success: true, Detail: "s"},
		Failed:      event.AgentFinished{Agent: "a", Source: "player", Detail: "s"},
		Unavailable: event.AgentFinished{Agent: "a", Source: "provider", Detail: "s"},
		Interrupted: event.AgentInterrupted{Agent: "a", Source: "arena", Detail: "s"},
	} {
		if d := cmp.Diff(want, Result{Status: status, Summary: "s"}.Event("a")); d != "" {
			t.Error(d)
		}
	}
}

func TestExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 3000),
			rapid.Map(rapid.IntRange(0, 9000), func(n int) []byte { return bytes.Repeat([]byte("a"), n) }),
		), 0, 12).Draw(t, "chunks")
		var e excerpt
		var all []byte
		for _, c := range chunks {
			e.add(c)
			all = append(all, c...)
		}
		got := e.String()
		if len(got) > textLimit {
			t.Fatalf("%d bytes", len(got))
		}
		if e.total != uint64(len(all)) {
			t.Fatalf("counted %d of %d", e.total, len(all))
		}
		if !bytes.HasPrefix(all, e.head) || len(e.head) != min(len(all), excerptPart) {
			t.Fatal("the head is not the head")
		}
		tail := e.tail(excerptPart)
		if !bytes.HasSuffix(all, tail) || len(tail) != min(len(all)-len(e.head), excerptPart) {
			t.Fatal("the tail is not the tail")
		}
		for _, r := range got {
			if r < 0x20 && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("control %q in the excerpt", r)
			}
		}
	})
}

func TestAnnouncer(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain \x1b[31mtext\x1b[0m", ""},
		{"\x1b]133;A\x07$ \x1b]133;B\x07", ""},
		{"\x1b]133;C\x07out\x1b]133;D;2\x07", "+|-2|"},
		{"\x1b]133;C;cmdline_url=ls%20-l%3B\x1b\\\x1b]133;D\x1b\\", "+ls -l;|-?|"},
		{"\x1b]633;E;a\\x3bb\\\\c;nonce\x07\x1b]633;C\x07\x1b]633;D;0\x07", "+a;b\\c|-0|"},
		{"\x1b]133;E;x\x07\x1b]133;C\x07\x1b]133;C\x07", "+x|+|"},
		{"\x1b]133;D;999\x07", "-?|"},
		{"\x1b]133;E;" + strings.Repeat("y", oscLimit+9) + "\x07\x1b]133;C\x07", "+|"},
		{"\x1b]133;C\x18\x1b]133;\x1b]133;C\x07", "+|"},
		{"\x1b\x1b]133;C\x1b\x1b\\", "+|"},
	} {
		for _, step := range []int{1, 3, len(tt.in)} {
			var a announcer
			var got strings.Builder
			for in := tt.in; len(in) > 0; {
				n := min(step, len(in))
				a.scan([]byte(in[:n]), func(m announcement) {
					switch {
					case m.start:
						got.WriteString("+" + m.line + "|")
					case m.exit == nil:
						got.WriteString("-?|")
					default:
						got.WriteString("-" + string(rune('0'+*m.exit)) + "|")
					}
				})
				in = in[n:]
			}
			if got.String() != tt.want {
				t.Errorf("%.40q by %d: %q, want %q", tt.in, step, got.String(), tt.want)
			}
		}
	}
}

func FuzzAnnouncer(f *testing.F) {
	f.Add([]byte("\x1b]133;C;cmdline_url=%zz\x07\x1b]133;D;1\x07"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, pieces announcer
		var a, b int
		whole.scan(p, func(announcement) { a++ })
		for i := range p {
			pieces.scan(p[i:i+1], func(announcement) { b++ })
		}
		if a != b || len(whole.osc) > oscLimit+1 {
			t.Fatalf("%d and %d marks, %d bytes kept", a, b, len(whole.osc))
		}
	})
}

func FuzzSFTPWatch(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0e\x0d\x00\x00\x00\x01\x00\x00\x00\x05/tmp\x1b"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, pieces sftpWatch
		whole.write(p)
		for i := range p {
			pieces.write(p[i : i+1])
		}
		if whole.String() != pieces.String() || len(whole.buf) > sftpWant {
			t.Fatalf("%q and %q, %d bytes kept", whole.String(), pieces.String(), len(whole.buf))
		}
	})
}

// What a recording gets is never cut inside a rune, and loses nothing.
func TestRecordKeepsRunesWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringN(0, 200, -1).Draw(t, "text"))
		c := &tape{}
		r := &record{cast: c, pty: true, left: [2]int{1 << 20, 1 << 20}, act: &action{}}
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			r.output(0, rest[:n])
			rest = rest[n:]
		}
		var got []byte
		for _, e := range c.events {
			if strings.ToValidUTF8(e.data, "") != e.data {
				t.Fatalf("torn chunk %q", e.data)
			}
			got = append(got, e.data...)
		}
		if !bytes.Equal(got, text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
