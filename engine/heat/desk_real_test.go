package heat

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"refbox/engine/agent"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/vm/qemu/qemutest"
)

// A person logs in at a real machine's console, and what they type where it is not
// shown, also ahead of its prompt, is nowhere in the recording.
func TestRealConsoleLogin(t *testing.T) {
	d := qemutest.Driver(t)
	racing := make(chan struct{})
	once := sync.OnceFunc(func() { close(racing) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p := own(pkg(t, idle, idle, idle))
	p.Manifest.Rules.TickMS = 1000
	h := New(Config{Package: p, Driver: d, Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t),
		Players: registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
			once()
			<-ctx.Done()
			return agent.Result{}
		})})
	const asked, ahead = "swordfish-7", "correct-horse-7"
	var secret string
	var wg sync.WaitGroup
	wg.Go(func() {
		defer h.End(ctx, "ann", "enough") //nolint:errcheck // never fails
		select {
		case <-racing:
		case <-ctx.Done():
			return
		}
		c, err := h.Attach(ctx, "ann", "failover-one", "host")
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { c.Close() })
		defer stop()
		login, _ := control.LoginAt(c)
		secret = login.Password
		for _, step := range [][2]string{
			{"\r", "login: "}, {login.User + "\r", "assword: "}, {secret + "\r", "# "},
			{"echo $((6*7))\r", "42\r\n"},
			{`read -s -p "Wort$(:)? " x; echo got ${#x}` + "\r", "Wort? "}, {asked + "\r", "got 11"},
			{`read -s -p "Wort$(:)? " x; read -s -p "Und$(:)? " y; echo got ${#x} ${#y}` + "\r", "Wort? "}, {asked + "\r" + ahead + "\r", "got 11 15"},
			{"echo " + secret + "\r", secret + "\r\n"},
			{"exit\r", "login: "},
		} {
			if _, err := io.WriteString(c, step[0]); err != nil {
				t.Error(err)
				return
			}
			if err := until(c, step[1]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	res, err := h.Run(ctx)
	wg.Wait()
	var e ended
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for _, s := range []string{secret, asked, ahead} {
		if names := holders(t, res.Dir, s); s == "" || len(names) > 0 {
			t.Errorf("%q is in %v", s, names)
		}
	}
	r := open(t, res.Dir)
	for _, b := range of(t, r, func(event.ConsoleDetached) bool { return true }) {
		if want := "root\n[not shown]\necho $((6*7))\n"; !strings.HasPrefix(b.Input, want) || !strings.HasSuffix(b.Input, "exit\n") {
			t.Errorf("typed %q", b.Input)
		}
	}
}
