package heat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"refbox/engine/agent"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/recording"
)

// until reads a console up to the words.
func until(c io.Reader, words string) error {
	var all []byte
	buf := make([]byte, 256)
	for !bytes.Contains(all, []byte(words)) {
		n, err := c.Read(buf)
		if all = append(all, buf[:n]...); err != nil {
			return fmt.Errorf("%q does not come: %w; there is %q", words, err, all)
		}
	}
	return nil
}

// atDesk runs a heat, and f at its desk once its players play.
func atDesk(t *testing.T, f func(h *Heat) error) finished {
	t.Helper()
	racing := make(chan struct{})
	racingOnce := sync.OnceFunc(func() { close(racing) })
	h := New(Config{Package: own(pkg(t, idle, idle, idle)), Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			racingOnce()
			<-ctx.Done()
			return agent.Result{}
		})})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-racing
		if err := f(h); err != nil {
			t.Error(err)
		}
		h.End(t.Context(), "ann", "enough") //nolint:errcheck // never fails
	})
	res, err := h.Run(t.Context())
	wg.Wait()
	var e ended
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return finished{res, open(t, res.Dir)}
}

// holders are the files below a folder that hold the words.
func holders(t *testing.T, dir, words string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte(words)) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Who attaches is told how to log in, also over the socket, and can; the password
// is nowhere in the recording: neither when it is asked for, nor when it is typed
// where the terminal shows it.
func TestConsoleLogin(t *testing.T) {
	var secrets []string
	f := atDesk(t, func(h *Heat) error {
		socket := filepath.Join(runtimeFolder(t), "desk")
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- control.Serve(ctx, socket, h) }()
		defer func() { stop(); <-served }()
		var d control.Desk
		for d == nil {
			c, err := control.Dial(socket)
			switch {
			case err == nil:
				d = c
			case !errors.Is(err, control.ErrNoDesk):
				return err
			case len(served) > 0:
				return errors.New("the desk is not served")
			}
		}
		for seat, desk := range map[string]control.Desk{"failover-one": h, "failover-two": d} {
			c, err := desk.Attach(t.Context(), "ann", seat, "host")
			if err != nil {
				return err
			}
			defer c.Close()
			login, ok := control.LoginAt(c)
			if !ok || login.User != "root" || len(login.Password) < 20 {
				return fmt.Errorf("%s: there is no login: %v", seat, login)
			}
			secrets = append(secrets, login.Password)
			for _, step := range [][2]string{{"\r", "login: "}, {login.User + "\r", "Password: "}, {login.Password + "\r", "# "},
				{"echo " + login.Password + "\r", login.Password + "\r\n"}, {"\x15read -s x; echo got $x\r", "x\r\n"}} {
				if _, err := io.WriteString(c, step[0]); err != nil {
					return err
				}
				if err := until(c, step[1]); err != nil {
					return err
				}
			}
			if err := c.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if len(secrets) != 2 || secrets[0] == secrets[1] {
		t.Fatalf("%d passwords", len(secrets))
	}
	for _, s := range secrets {
		if names := holders(t, f.Dir, s); len(names) > 0 {
			t.Errorf("the password is in %v", names)
		}
	}
	for _, b := range of(t, f.rec, func(event.ConsoleDetached) bool { return true }) {
		if !strings.HasPrefix(b.Input, "root\n[not shown]\necho *") {
			t.Errorf("typed %q", b.Input)
		}
	}
}

// What is pasted ahead of its prompt is nobody's to keep.
func TestPasswordPastedAhead(t *testing.T) {
	const secret = "correct-horse-battery"
	f := atDesk(t, func(h *Heat) error {
		c, err := h.Attach(t.Context(), "ann", "failover-one", "host")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.WriteString(c, "root\r"); err != nil {
			return err
		}
		if err := until(c, "Password: "); err != nil {
			return err
		}
		if _, err := io.WriteString(c, secret+"\r"); err != nil {
			return err
		}
		return until(c, "login: ")
	})
	if names := holders(t, f.Dir, secret); len(names) > 0 {
		t.Errorf("the password is in %v", names)
	}
}

// Who reads in the log that the heat runs finds its desk open.
func TestDeskIsOpenFromTheFirstLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heat")
	h := New(Config{Package: pkg(t, idle, idle, idle), Driver: driver(), Dir: dir, Runtime: runtimeFolder(t)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var noted error
	wg.Go(func() {
		defer cancel()
		rec, err := recording.Await(ctx, dir)
		if err != nil {
			noted = err
			return
		}
		defer rec.Close()
		changed := rec.Follow(ctx)
		for {
			if _, noted = rec.Refresh(); noted != nil {
				return
			}
			if rec.World(rec.Len()).MatchState == "running" {
				noted = h.Note(ctx, "ann", "at once")
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				noted = ctx.Err()
				return
			}
		}
	})
	h.Run(ctx) //nolint:errcheck // it is cancelled
	wg.Wait()
	if noted != nil {
		t.Fatal(noted)
	}

	// The same instant without luck: the lines are written, the clock stands.
	h = New(Config{Package: pkg(t, idle, idle, idle), Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	rec, err := recording.Create(h.cfg.Dir, recording.Start{Match: recording.Match{}, Clock: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	h.rec, h.end = rec, func(error) {}
	if err := h.Note(t.Context(), "ann", "too early"); !errors.Is(err, errNotRunning) {
		t.Errorf("before the first line: %v", err)
	}
	if _, err := h.Append(event.MatchStateChanged{From: "preparing", To: "running"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Note(t.Context(), "ann", "at zero"); err != nil {
		t.Error(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if log := logOf(h.cfg.Dir); !strings.Contains(log, "at zero") {
		t.Error(log)
	}
}
