package heat

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"refbox/engine/agent"
	"refbox/engine/event"
)

// sizeOf is how much a folder takes, and how many files are in it.
func sizeOf(t testing.TB, dir string) (size int64, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		size, files = size+info.Size(), files+1
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size, files
}

// raceWithin is raceWith under other limits of what is recorded of a seat.
func raceWithin(t *testing.T, l limits, play player, scripts ...string) finished {
	t.Helper()
	p, players := only(pkg(t, scripts...), play)
	dir := filepath.Join(t.TempDir(), "heat")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h := New(Config{Package: p, Driver: driver(), Dir: dir, Runtime: runtimeFolder(t), Players: players})
	h.limits = l
	res, err := h.Run(ctx)
	if err != nil {
		t.Fatalf("run: %v\n%s", err, logOf(dir))
	}
	return finished{res, open(t, dir)}
}

// each runs command n times, many at once, and returns how many said want.
func each(c *ssh.Client, n int, command, want string) (good int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, 40)
	for range n {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			x, xerr := c.NewSession()
			var out []byte
			if xerr == nil {
				out, xerr = x.Output(command)
			}
			mu.Lock()
			defer mu.Unlock()
			if string(out) == want {
				good++
			}
			if err == nil {
				err = xerr
			}
		})
	}
	wg.Wait()
	return good, err
}

// A seat that prints without end and opens thousands of sessions fills no disk: it
// is told of once, its sessions go on working, and the others race as ever.
func TestHostileSeatFillsNoDisk(t *testing.T) {
	t.Parallel()
	within := limits{bytes: 1 << 20, sessions: 300, actions: 900}
	const sessions = 1100
	said := strings.Repeat("x", 200) + "\n"
	type played struct {
		good int
		err  error
	}
	done := make(chan played, 1)
	f := raceWithin(t, within, func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		var p played
		c, err := shell(ctx, s)
		if p.err = err; err == nil {
			// The console is flooded until the heat ends, and after the budget is.
			flood, err := c.NewSession()
			if err == nil {
				err = flood.Start(`yes "the same again and again" >/dev/ttyS0`)
			}
			if err == nil {
				p.good, err = each(c, sessions, "echo "+said[:200], said)
			}
			p.err = err
			c.Close()
		}
		done <- p
		<-ctx.Done()
		return agent.Result{Status: agent.Interrupted}
	}, after(10*time.Second, bundledScript(t, "right")), idle, idle)
	if p := <-done; p.err != nil || p.good != sessions {
		t.Fatalf("%d of %d sessions worked: %v", p.good, sessions, p.err)
	}
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v", f.Outcome)
	}

	seat := filepath.Join(f.Dir, "seats", "failover-two")
	size, files := sizeOf(t, seat)
	// Beside the budget: what says where a record ends, the heads of casts, and
	// what a seat that does nothing has too.
	if most := int64(within.bytes + 256<<10); size > most || files > within.sessions+200 {
		t.Errorf("the seat's folder has %d bytes in %d files", size, files)
	}
	t.Logf("%d KiB in %d files, log %d KiB", size>>10, files, len(logOf(f.Dir))>>10)

	reached := of(t, f.rec, func(event.LimitReached) bool { return true })
	if len(reached) != 1 || reached[0].Agent != "careful" || !strings.HasPrefix(reached[0].Limit, "recorded_") {
		t.Errorf("limits: %+v", reached)
	}
	if n := f.rec.World(f.rec.Len()).Seat("failover-two").Limits.Len(); n != 1 {
		t.Errorf("the world has %d limits", n)
	}
	started := of(t, f.rec, func(b event.AgentActionStarted) bool { return b.Territory == "failover-two" })
	var recorded int
	for _, b := range started {
		if b.Session != "" {
			recorded++
		}
		if b.Action > within.actions && b.Action%listedEvery != 0 {
			t.Errorf("action %d is listed", b.Action)
		}
	}
	if last := started[len(started)-1]; len(started) != int(within.actions)+1 || last.Action != 1000 || recorded > within.sessions {
		t.Errorf("%d actions are listed, the last is %d; %d are recorded", len(started), last.Action, recorded)
	}
	ended := of(t, f.rec, func(b event.AgentActionFinished) bool { return b.Territory == "failover-two" && b.Exit != nil })
	var bare int
	for _, b := range ended {
		if b.Bytes != 201 || *b.Exit != 0 {
			t.Fatalf("%+v", b)
		}
		if b.Output == "" {
			bare++
			if !strings.Contains(b.Detail, "is used up") {
				t.Fatalf("%+v", b)
			}
		}
	}
	if bare == 0 {
		t.Error("every output was kept")
	}
	console, err := os.ReadFile(filepath.Join(seat, "machines/host/console.cast"))
	if err != nil || !strings.Contains(string(console), "the record of this console ends here") {
		t.Errorf("the console's record has %d bytes and does not say where it ends: %v", len(console), err)
	}
	for _, other := range []string{"failover-one", "failover-three"} {
		for _, b := range of(t, f.rec, func(b event.AgentActionFinished) bool { return b.Territory == other }) {
			if strings.Contains(b.Detail, "used up") {
				t.Errorf("%s: %+v", other, b)
			}
		}
	}
}

// Sessions beyond the bound work, are in the log with their output, and say that
// they have no record.
func TestNotEverySessionIsRecorded(t *testing.T) {
	t.Parallel()
	within := limits{bytes: 64 << 20, sessions: 50, actions: 1000}
	done := make(chan error, 1)
	f := raceWithin(t, within, func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		c, err := shell(ctx, s)
		if err == nil {
			var good int
			if good, err = each(c, 120, "echo on", "on\n"); err == nil && good != 120 {
				err = fmt.Errorf("%d sessions worked", good)
			}
			c.Close()
		}
		done <- err
		<-ctx.Done()
		return agent.Result{Status: agent.Interrupted}
	}, after(4*time.Second, bundledScript(t, "right")), idle, idle)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	casts, err := filepath.Glob(filepath.Join(f.Dir, "seats/failover-two/session-*.cast"))
	if err != nil || len(casts) != within.sessions {
		t.Errorf("%d records, %v", len(casts), err)
	}
	if l := of(t, f.rec, func(event.LimitReached) bool { return true }); len(l) != 1 || l[0].Limit != "recorded_sessions" {
		t.Errorf("%+v", l)
	}
	var bare int
	for _, b := range of(t, f.rec, func(b event.AgentActionFinished) bool { return b.Territory == "failover-two" }) {
		if b.Output != "on" {
			t.Errorf("%+v", b)
		}
		if strings.Contains(b.Detail, "the session is not recorded") {
			bare++
		}
	}
	if bare != 120-within.sessions {
		t.Errorf("%d sessions say that they have no record", bare)
	}
}

func TestBudgetIsToldOfOnce(t *testing.T) {
	var told []string
	tell := func(limit, _ string) { told = append(told, limit) }
	b := &budget{limits: limits{bytes: 100, sessions: 1, actions: 2}}
	if !b.take(60) || !b.session() || b.session() {
		t.Error("one session has room")
	}
	b.open(tell) // tells what was reached before
	if b.take(60) || b.take(1) || b.take(0) || b.session() {
		t.Error("what was refused once has room again")
	}
	if !b.action(2) || b.action(3) || !b.action(2*listedEvery) {
		t.Error("the actions that are listed")
	}
	if got := fmt.Sprint(told); got != "[recorded_sessions]" {
		t.Error(got)
	}
	b.close()
	b = &budget{limits: limits{bytes: 100, sessions: 1, actions: 2}}
	b.open(tell)
	b.close()
	b.take(200)
	if len(told) != 1 {
		t.Error("a closed log was told")
	}
}

// However a stream is cut, the secret does not come out of it, and everything else
// does.
func TestMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[ab]{2,5}`).Draw(t, "secret")
		m := mask{secret: []byte(secret)}
		var in, out []byte
		for _, p := range rapid.SliceOf(rapid.StringMatching(`[abc]{0,9}`)).Draw(t, "pieces") {
			in = append(in, p...)
			out = append(out, m.pass([]byte(p))...)
		}
		out = append(out, m.rest()...)
		if bytes.Contains(out, []byte(secret)) {
			t.Fatalf("%s holds %s", out, secret)
		}
		if len(out) != len(in) {
			t.Fatalf("%d bytes of %d", len(out), len(in))
		}
		for i := range in {
			if out[i] != in[i] && out[i] != '*' {
				t.Fatalf("%s became %s", in, out)
			}
		}
	})
}
