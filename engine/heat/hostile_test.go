package heat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/event"
)

// shell is a player's connection to its seat.
func shell(ctx context.Context, s agent.Seat) (*ssh.Client, error) {
	return agent.DialSSH(ctx, s.Login.Addr, &ssh.ClientConfig{User: s.Login.User, Auth: []ssh.AuthMethod{ssh.Password(s.Login.Password)},
		HostKeyCallback: ssh.FixedHostKey(s.Login.HostKey)})
}

// only seats one player of the test's own on failover-two, beside scripts.
func only(p *arena.Package, play player) (*arena.Package, agent.Registry) {
	for i := range p.Manifest.Agents {
		if a := &p.Manifest.Agents[i]; a.Territory == "failover-two" {
			a.Adapter, a.Script = "own", nil
		}
	}
	return p, registry(play)
}

// raceWith is race with players of the test's own.
func raceWith(t *testing.T, p *arena.Package, players agent.Registry) finished {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "heat")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	res, err := Run(ctx, Config{Package: p, Driver: driver(), Dir: dir, Runtime: runtimeFolder(t), Players: players})
	if err != nil {
		t.Fatalf("run: %v\n%s", err, logOf(dir))
	}
	return finished{res, open(t, dir)}
}

// What would have driven a terminal is in the log once for each place; a
// session's announced actions and input are in its record.
func TestHostileSeat(t *testing.T) {
	t.Parallel()
	p := pkg(t, idle, idle, idle)
	p.Manifest.Rules.DurationSeconds = 4
	p.FS.(overlay).over["verify/reads-restored.star"] = &fstest.MapFile{Data: []byte(`def verify(seat):
    require((seat.guest.read("/root/bait") or "nothing") == "", "the bait")
`)}
	played := make(chan error, 1)
	p, players := only(p, func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		played <- func() error {
			c, err := shell(ctx, s)
			if err != nil {
				return err
			}
			defer c.Close()
			run := func(command, stdin string) error {
				x, err := c.NewSession()
				if err != nil {
					return err
				}
				defer x.Close()
				x.Stdin = strings.NewReader(stdin)
				return x.Run(command)
			}
			for _, command := range []string{
				`printf '\033[1;31mred\033[m\033[K\n'; printf '\033[1mbold\033[m\033[2J\n' >/dev/ttyS0`, // ordinary
				`printf '\033]52;c;Y2xpcA==\007'; printf '\033]0;owned\007\033[c' >/dev/ttyS0`,
				`printf '\033[6n\033P1$r\033\\'; printf '\033]0;owned\007' >/dev/ttyS0`,
				`printf '\033[6n' >/root/bait`,
			} {
				if err := run(command, ""); err != nil {
					return fmt.Errorf("%s: %w", command, err)
				}
			}
			if err := run("cat >/dev/null", "on standard input"); err != nil {
				return err
			}
			r.Note("why \x1b[31mnot")

			x, err := c.NewSession()
			if err != nil {
				return err
			}
			defer x.Close()
			in, _ := x.StdinPipe()
			out, _ := x.StdoutPipe()
			if err := x.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
				return err
			}
			if err := x.Shell(); err != nil {
				return err
			}
			fmt.Fprint(in, `printf '\033]133;E;ls /etc\007\033]133;C\007'; exit 0`+"\n")
			if _, err := io.Copy(io.Discard, out); err != nil {
				return err
			}
			return x.Wait()
		}()
		<-ctx.Done()
		return agent.Result{Status: agent.Completed, Summary: "done\x1b]0;owned\x07"}
	})
	f := raceWith(t, p, players)
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, b := range of(t, f.rec, func(b event.HostileOutput) bool { return true }) {
		found[b.Territory+" "+b.Where] = append(found[b.Territory+" "+b.Where], b.Detail)
	}
	for where, want := range map[string]string{"console": "OSC 0, the window's title", "action": "OSC 52, the clipboard",
		"evidence": "CSI 6n, a question to the terminal", "result": "OSC 0, the window's title"} {
		if got := found["failover-two "+where]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
	}
	if len(found) != 4 {
		t.Errorf("found %v", found)
	}
	if f.rec.World(f.rec.Len()).Seat("failover-two").Hostile != 4 {
		t.Error("the world does not count them")
	}
	if log := logOf(f.Dir); strings.ContainsRune(log, 0x1b) || strings.Contains(log, `\u001b`) {
		t.Error("the log itself holds an escape")
	}

	acts := of(t, f.rec, func(b event.AgentActionStarted) bool { return b.Territory == "failover-two" })
	n := len(acts)
	if n < 2 || acts[n-1].Channel != agent.ChannelAnnounced || acts[n-2].Channel != agent.ChannelShell {
		t.Fatalf("%+v", acts)
	}
	if acts[n-1].Session != acts[n-2].Session || acts[n-1].Session != "seats/failover-two/session-6.cast" || acts[n-1].Command != "ls /etc" {
		t.Errorf("the announced action is %+v, its session's %+v", acts[n-1], acts[n-2])
	}
	all, err := filepath.Glob(filepath.Join(f.Dir, "seats/failover-two/session-*.cast"))
	if err != nil || len(all) != n-1 {
		t.Errorf("%d sessions, %d records: %v", n-1, len(all), err)
	}
	for name, want := range map[string]string{"session-5.cast": "on standard input", "session-6.cast": "printf"} {
		data, err := os.ReadFile(filepath.Join(f.Dir, "seats/failover-two", name))
		if err != nil || !strings.Contains(typed(data), want) {
			t.Errorf("%s lacks %s: %v\n%s", name, want, err, data)
		}
	}

	data, err := os.ReadFile(filepath.Join(f.Dir, "seats/failover-two/result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Notes []struct {
			AtMS *uint64 `json:"at_ms"`
			Text string
		}
	}
	if err := json.Unmarshal(data, &result); err != nil || len(result.Notes) != 1 || result.Notes[0].Text != "why not" || result.Notes[0].AtMS == nil {
		t.Errorf("%v: %s", err, data)
	}
}

// A guest that floods its console for the whole heat slows nobody down, and its
// record is bounded.
func TestFloodedConsole(t *testing.T) {
	t.Parallel()
	p := pkg(t, after(time.Second, bundledScript(t, "right")), "yes \"$(printf '\\033]0;owned\\007')\" >/dev/ttyS0\n", idle)
	f := race(t, driver(), p)
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	info, err := os.Stat(filepath.Join(f.Dir, "seats/failover-two/machines/host/console.cast"))
	if err != nil || info.Size() < 1<<20 || info.Size() > 65<<20 {
		t.Errorf("the flood's record has %d bytes: %v", info.Size(), err)
	}
	t.Logf("durable at %d ms; the flood's record has %d MiB", f.rec.World(f.rec.Len()).Seat("failover-one").Durable.At, info.Size()>>20)
	for _, b := range of(t, f.rec, func(b event.MilestoneFailed) bool { return b.Territory == "failover-one" }) {
		if b.Source != "player" {
			t.Errorf("charged to %s: %+v", b.Source, b)
		}
	}
	if n := len(of(t, f.rec, func(event.HostileOutput) bool { return true })); n != 1 {
		t.Errorf("%d times hostile", n)
	}
}

// shown is the output in a record.
func shown(cast []byte) (out string) {
	for l := range strings.Lines(string(cast)) {
		var frame []any
		if json.Unmarshal([]byte(l), &frame) == nil && len(frame) == 3 && frame[1] == "o" {
			out += frame[2].(string)
		}
	}
	return out
}

func TestManySessions(t *testing.T) {
	t.Parallel()
	const sessions = 200
	played := make(chan error, 1)
	p, players := only(pkg(t, after(time.Second, bundledScript(t, "right")), idle, idle), func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		c, err := shell(ctx, s)
		if err == nil {
			var wg sync.WaitGroup
			errs := make(chan error, sessions)
			room := make(chan struct{}, 60)
			for i := range sessions {
				wg.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					x, err := c.NewSession()
					if err == nil {
						var out []byte
						out, err = x.Output(fmt.Sprintf("echo %d", i))
						if err == nil && string(out) != fmt.Sprintln(i) {
							err = fmt.Errorf("session %d printed %q", i, out)
						}
					}
					errs <- err
				})
			}
			wg.Wait()
			c.Close()
			close(errs)
			for e := range errs {
				if e != nil {
					err = e
				}
			}
		}
		played <- err
		<-ctx.Done()
		return agent.Result{Status: agent.Interrupted}
	})
	f := raceWith(t, p, players)
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	if f.Outcome.Winner != "failover-one" {
		t.Fatalf("%+v\n%s", f.Outcome, logOf(f.Dir))
	}
	started := map[uint64]string{}
	for _, b := range of(t, f.rec, func(b event.AgentActionStarted) bool { return b.Territory == "failover-two" }) {
		started[b.Action] = b.Command
		data, err := os.ReadFile(filepath.Join(f.Dir, b.Session))
		if shown := shown(data); err != nil || shown != strings.TrimPrefix(b.Command, "echo ")+"\r\n" {
			t.Errorf("%+v: %v, shows %q\n%s", b, err, shown, data)
		}
	}
	for _, b := range of(t, f.rec, func(b event.AgentActionFinished) bool { return b.Territory == "failover-two" }) {
		if b.Exit == nil || *b.Exit != 0 || started[b.Action] != "echo "+b.Output || b.Detail != "" {
			t.Errorf("%+v", b)
		}
		delete(started, b.Action)
	}
	if len(started) != 0 {
		t.Errorf("%d sessions did not finish", len(started))
	}
}

// typed is the input of a cast. It may come in pieces: what could begin a secret
// is held until more follows.
func typed(cast []byte) string {
	var all strings.Builder
	for line := range bytes.Lines(cast) {
		var entry []any
		if json.Unmarshal(line, &entry) == nil && len(entry) == 3 && entry[1] == "i" {
			all.WriteString(fmt.Sprint(entry[2]))
		}
	}
	return all.String()
}
