package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/internal/pause"
	"refbox/engine/text"
)

// startTime is for how long a scripted player tries to have a command started,
// as on a machine that reboots.
const startTime = 3 * time.Minute

// ScriptPlayer is the player that runs s through the seat's gateway. A machine
// that reboots is waited for: a block that could not start is tried again, one
// whose session broke is not. Its result is completed when it came to its end,
// failed when a "must" was not met.
func ScriptPlayer(s *Script) Player { return scriptPlayer{s} }

type scriptPlayer struct{ s *Script }

func (p scriptPlayer) Play(ctx context.Context, seat Seat, report Report) Result {
	h := &hands{login: seat.Login, conns: map[string]*ssh.Client{}, out: io.Discard}
	defer h.close()
	var unmet int
	end := func(status Status, format string, args ...any) Result {
		calls := h.calls
		return Result{Status: status, Usage: Usage{ToolCalls: &calls, ResourceUnits: 1},
			Summary: fmt.Sprintf("%s: ", p.s.Player) + fmt.Sprintf(format, args...)}
	}
	file := p.s.File
	if filepath.IsAbs(file) { // what is recorded says nothing of this host's folders
		file = filepath.Base(file)
	}
	for _, b := range p.s.Blocks {
		at := fmt.Sprintf("%s:%d", file, b.Line)
		if b.Pause > 0 && !pause.For(ctx, b.Pause) {
			return end(CutStatus(ctx), "cut while pausing before %s", at)
		}
		if b.Note != "" {
			report.Note(b.Note)
		}
		if b.Text == "" {
			continue
		}
		exit, err := h.block(ctx, b)
		if ctx.Err() != nil {
			return end(CutStatus(ctx), "cut at %s", at)
		}
		switch {
		case err != nil && isAuth(err): // the door and its key are the harness's
			return end(HarnessError, "%s could not be run: %v", at, err)
		case err != nil:
			return end(Failed, "%s could not be run: %v", at, err)
		}
		if why := b.unmet(exit); why != "" {
			unmet++
			if b.Must {
				return end(Failed, "gave up at %s: %s", at, why)
			}
		}
	}
	if unmet > 0 {
		return end(Completed, "%s, %s, %d ended otherwise than expected", text.Count(len(p.s.Blocks), "block"), text.Count(h.calls, "command"), unmet)
	}
	return end(Completed, "%s, %s", text.Count(len(p.s.Blocks), "block"), text.Count(h.calls, "command"))
}

// unmet says how an exit is not what the block expects; "" when it is, or
// nothing is expected.
func (b Block) unmet(exit int) string {
	want := 0
	switch {
	case b.Expect != nil:
		want = *b.Expect
	case b.Repeat != nil:
		want = b.Repeat.Until
	case !b.Must:
		return ""
	}
	if exit == want {
		return ""
	}
	name := func(n int) string {
		if n == Lost {
			return "a broken session"
		}
		return fmt.Sprintf("exit %d", n)
	}
	return fmt.Sprintf("%s, expected %s", name(exit), name(want))
}

// hands are the connections of a player that lives in this process.
type hands struct {
	login Login
	out   io.Writer              // of the commands; two goroutines write to it
	conns map[string]*ssh.Client // by user name
	calls uint64
}

func (h *hands) close() {
	for _, c := range h.conns {
		c.Close()
		c.Wait()
	}
}

// block runs a block, with its repeats, and returns the last exit.
func (h *hands) block(ctx context.Context, b Block) (int, error) {
	user := b.Machine
	if user == "" {
		user = h.login.User
	}
	if b.Repeat == nil {
		return h.run(ctx, user, b.Text)
	}
	over, cancel := context.WithTimeout(ctx, b.Repeat.For)
	defer cancel()
	exit, err := Lost, error(nil)
	for {
		// A try that is cut by the block's time leaves the exit of the one
		// before.
		if n, e := h.run(over, user, b.Text); e == nil || over.Err() == nil {
			exit, err = n, e
			if err == nil && exit == b.Repeat.Until {
				return exit, nil
			}
		}
		if !pause.For(over, b.Repeat.Every) {
			return exit, err
		}
	}
}

// run has one command run to its end. Until it has started it is tried again;
// after that never.
func (h *hands) run(ctx context.Context, user, text string) (int, error) {
	start, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		exit, err := h.try(ctx, start, user, text)
		if err == nil {
			return exit, nil
		}
		if ctx.Err() != nil {
			return Lost, ctx.Err()
		}
		if isAuth(err) || !pause.For(start, 500*time.Millisecond) {
			return Lost, err
		}
	}
}

// try is one attempt; an error means that the command did not start, or that
// ctx cut it.
func (h *hands) try(ctx, start context.Context, user, text string) (int, error) {
	c, err := h.connect(start, user)
	if err != nil {
		return Lost, err
	}
	// The one way to end a wait of x/crypto's: to end the connection.
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		if !stop() {
			h.forget(user)
		}
	}()
	s, err := c.NewSession()
	if err != nil {
		h.forget(user)
		return Lost, err
	}
	defer s.Close()
	s.Stdout, s.Stderr = h.out, h.out
	if err := s.Start(text); err != nil {
		return Lost, errors.New("the machine did not start it") // err repeats the whole command
	}
	h.calls++
	err = s.Wait()
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	case ctx.Err() != nil:
		return Lost, ctx.Err()
	}
	return Lost, nil
}

func (h *hands) connect(ctx context.Context, user string) (*ssh.Client, error) {
	if c := h.conns[user]; c != nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	auth, err := h.login.auth()
	if err != nil {
		return nil, err
	}
	c, err := DialSSH(ctx, h.login.Addr, &ssh.ClientConfig{
		User:            user,
		Auth:            auth,
		HostKeyCallback: ssh.FixedHostKey(h.login.HostKey),
	})
	if err != nil {
		return nil, err
	}
	h.conns[user] = c
	return c, nil
}

// forget gives up a connection that does not serve any more.
func (h *hands) forget(user string) {
	if c := h.conns[user]; c != nil {
		c.Close()
		c.Wait()
		delete(h.conns, user)
	}
}

// isAuth tells a refusal of the gateway, which no waiting will change; x/crypto
// has no error to tell it by.
func isAuth(err error) bool { return strings.Contains(err.Error(), "unable to authenticate") }

// auth is the credential, the password first.
func (l Login) auth() ([]ssh.AuthMethod, error) {
	var methods []ssh.AuthMethod
	if l.Password != "" {
		methods = append(methods, ssh.Password(l.Password))
	}
	if l.KeyFile != "" {
		data, err := os.ReadFile(l.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the seat's key: %w", err)
		}
		key, err := ssh.ParsePrivateKey(data)
		if err != nil {
			return nil, fmt.Errorf("read the seat's key %s: %w", l.KeyFile, err)
		}
		methods = append(methods, ssh.PublicKeys(key))
	}
	return methods, nil
}
