package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/text"
)

// Bounds of what a session may ask for.
const (
	maxEnv     = 32
	maxEnvSize = 1 << 10
	maxTerm    = 64
	maxModes   = 1 << 10
	maxSide    = 4096 // columns or rows of a terminal
)

// session is one session channel of a client, and what it becomes on the guest.
type session struct {
	c      *client
	ch     ssh.Channel
	ctx    context.Context // ends when the client's side has ended, or the gateway closes
	cancel context.CancelFunc
	wg     sync.WaitGroup

	env     [][]byte // requests to repeat on the guest
	pty     *ptyRequest
	started bool

	mu       sync.Mutex
	cols     uint32
	rows     uint32
	up       ssh.Channel // nil until the guest runs the command, and after
	rec      *record
	answered bool // the client knows that its command runs
	exit     *int
	exitReq  *ssh.Request // not forwarded yet
}

// ptyRequest is the payload of pty-req (RFC 4254, section 6.2).
type ptyRequest struct {
	Term          string
	Cols, Rows    uint32
	Width, Height uint32
	Modes         string
}

type windowChange struct{ Cols, Rows, Width, Height uint32 }

func (c *client) session(nc ssh.NewChannel) {
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	s := &session{c: c, ch: ch, cols: 80, rows: 24}
	s.ctx, s.cancel = context.WithCancel(c.g.ctx)
	for r := range reqs {
		s.request(r)
	}
	s.cancel()
	s.wg.Wait()
}

// request handles one request of the client. It never waits for the guest
// before the command runs, or one slow session would hold up its siblings.
func (s *session) request(r *ssh.Request) {
	switch r.Type {
	case "env":
		ok := !s.started && s.setEnv(r.Payload)
		r.Reply(ok, nil)
	case "pty-req":
		r.Reply(!s.started && s.setPTY(r.Payload), nil)
	case "window-change":
		r.Reply(s.resize(r.Payload), nil)
	case "signal":
		r.Reply(s.signal(r.Payload), nil)
	case "shell", "exec", "subsystem":
		if s.started {
			r.Reply(false, nil)
			return
		}
		var arg struct{ Text string }
		if r.Type != "shell" && ssh.Unmarshal(r.Payload, &arg) != nil {
			r.Reply(false, nil)
			return
		}
		if r.Type == "subsystem" && arg.Text != "sftp" {
			s.c.g.refuse(s.c.machine, "subsystem "+arg.Text, "not offered")
			r.Reply(false, nil)
			return
		}
		s.started = true
		s.wg.Go(func() { s.run(r, arg.Text) })
	default: // x11-req, auth-agent-req@openssh.com, break, …
		r.Reply(false, nil)
	}
}

// setEnv takes what OpenSSH's default server would: the locale.
func (s *session) setEnv(payload []byte) bool {
	var kv struct{ Name, Value string }
	if len(s.env) >= maxEnv || len(payload) > maxEnvSize || ssh.Unmarshal(payload, &kv) != nil {
		return false
	}
	if kv.Name != "LANG" && !strings.HasPrefix(kv.Name, "LC_") {
		return false
	}
	s.env = append(s.env, payload)
	return true
}

func (s *session) setPTY(payload []byte) bool {
	var p ptyRequest
	if s.pty != nil || ssh.Unmarshal(payload, &p) != nil ||
		len(p.Term) > maxTerm || len(p.Modes) > maxModes || p.Cols > maxSide || p.Rows > maxSide {
		return false
	}
	s.pty = &p
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Cols > 0 && p.Rows > 0 {
		s.cols, s.rows = p.Cols, p.Rows
	}
	return true
}

func (s *session) resize(payload []byte) bool {
	var w windowChange
	if s.pty == nil || ssh.Unmarshal(payload, &w) != nil ||
		w.Cols == 0 || w.Rows == 0 || w.Cols > maxSide || w.Rows > maxSide {
		return false
	}
	s.mu.Lock()
	changed := w.Cols != s.cols || w.Rows != s.rows
	s.cols, s.rows = w.Cols, w.Rows
	up, rec := s.up, s.rec
	s.mu.Unlock()
	if up == nil || !changed {
		return true
	}
	rec.resize(int(w.Cols), int(w.Rows))
	_, err := up.SendRequest("window-change", false, ssh.Marshal(w))
	return err == nil
}

// signals are those of RFC 4254, section 6.10, and what Linux numbers them.
var signals = map[string]int{
	"ABRT": 6, "ALRM": 14, "FPE": 8, "HUP": 1, "ILL": 4, "INT": 2, "KILL": 9,
	"PIPE": 13, "QUIT": 3, "SEGV": 11, "TERM": 15, "USR1": 10, "USR2": 12,
}

func (s *session) signal(payload []byte) bool {
	var sig struct{ Name string }
	if ssh.Unmarshal(payload, &sig) != nil || signals[sig.Name] == 0 {
		return false
	}
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	if up == nil {
		return false
	}
	_, err := up.SendRequest("signal", false, payload)
	return err == nil
}

// run is the session's action, from the client's request to its end.
func (s *session) run(req *ssh.Request, arg string) {
	g, machine := s.c.g, s.c.machine
	rec := &record{g: g, pty: s.pty != nil, eye: text.Detector{Screen: s.pty != nil}}
	channel, command := ChannelExec, arg
	switch req.Type {
	case "shell":
		channel, command = ChannelShell, "shell"
		if s.pty != nil {
			rec.shell = &announcer{}
		}
	case "subsystem":
		channel, command = ChannelSFTP, "sftp"
		rec.watch = &sftpWatch{}
	}
	if channel != ChannelSFTP {
		rec.session = g.nextSession()
	}
	act := g.begin(channel, machine, command, rec.session)
	rec.act = act
	if channel != ChannelSFTP {
		rec.cast = g.cfg.Observer.SessionStarted(s.describe(rec.session, arg))
		rec.left = [2]int{castExecBytes, castExecBytes}
		if channel == ChannelShell {
			rec.left = [2]int{castShellBytes, castShellBytes}
		}
	}
	s.play(req, act, rec)
	rec.close(s.exitStatus())
	s.ch.Close()
	// A client that does not confirm the close holds its connection open for
	// nothing.
	t := time.AfterFunc(linger, func() { s.c.conn.Close() })
	<-s.ctx.Done()
	t.Stop()
}

func (s *session) describe(number uint64, command string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := Session{Number: number, Machine: s.c.machine, Command: command, Width: int(s.cols), Height: int(s.rows)}
	if s.pty != nil {
		d.Term = s.pty.Term
	}
	return d
}

// play runs the session on the guest and carries its streams until both are
// over.
func (s *session) play(req *ssh.Request, act *action, rec *record) {
	up, upReqs, l, err := s.c.g.machines[s.c.machine].channel(s.ctx, "session", nil)
	if err != nil {
		s.fail(req, act, line(err.Error()))
		return
	}
	defer l.release()

	done := make(chan struct{})
	var watch, out sync.WaitGroup
	defer watch.Wait()
	defer close(done)
	watch.Go(func() {
		select {
		case <-s.ctx.Done():
			t := time.AfterFunc(linger, func() { l.end("the machine's SSH server does not confirm a close") })
			up.Close()
			<-done
			t.Stop()
		case <-done:
		}
	})
	out.Go(func() { s.guestRequests(upReqs, act) })

	if why, ended := s.startOn(up, l, req); why != "" {
		if !ended {
			up.Close()
		}
		out.Wait()
		// A server may end a quick command's channel before it has answered the
		// request for it: what has an exit status has run.
		if s.exitStatus() == nil {
			s.fail(req, act, why)
			up.Close()
			return
		}
	}
	s.attach(up, rec)
	req.Reply(true, nil)
	s.answer()
	s.wg.Go(func() {
		copyStream(up, s.ch, rec.input)
		up.CloseWrite()
	})
	out.Go(func() { copyStream(s.ch, up, func(p []byte) { rec.output(0, p) }) })
	out.Go(func() { copyStream(s.ch.Stderr(), up.Stderr(), func(p []byte) { rec.output(2, p) }) })
	out.Wait()
	s.attach(nil, nil)
	s.ch.CloseWrite()
	if s.exitStatus() == nil {
		act.note(s.broken(l))
	}
}

// broken says why a session has no exit status.
func (s *session) broken(l *link) string {
	switch {
	case s.c.g.ctx.Err() != nil:
		return "the gateway closed"
	case s.ctx.Err() != nil:
		return "the player ended the session"
	}
	if why := l.lost(); why != "" {
		return why
	}
	return "the session ended without an exit status"
}

// fail answers a command that did not start.
func (s *session) fail(req *ssh.Request, act *action, why string) {
	act.note("not started: " + why)
	fmt.Fprintf(s.ch.Stderr(), "refbox: %s\r\n", why)
	req.Reply(false, nil)
}

// startOn repeats the client's requests on the guest. It returns why they
// failed, or "", and whether that is because the channel has ended.
func (s *session) startOn(up ssh.Channel, l *link, req *ssh.Request) (why string, ended bool) {
	defer l.guard()()
	for _, kv := range s.env {
		if _, err := up.SendRequest("env", false, kv); err != nil {
			return s.broken(l), true
		}
	}
	if s.pty != nil {
		s.mu.Lock()
		p := *s.pty
		p.Cols, p.Rows = s.cols, s.rows
		s.mu.Unlock()
		ok, err := up.SendRequest("pty-req", true, ssh.Marshal(p))
		if err != nil {
			return s.broken(l), true
		}
		if !ok {
			return "the machine gives no terminal", false
		}
	}
	ok, err := up.SendRequest(req.Type, true, req.Payload)
	if err != nil {
		return s.broken(l), true
	}
	if !ok {
		return "the machine refused the request", false
	}
	return "", false
}

// attach makes the guest's channel the target of sizes and signals. A size that
// changed while the command was starting is caught up.
func (s *session) attach(up ssh.Channel, rec *record) {
	s.mu.Lock()
	s.up, s.rec = up, rec
	cols, rows := s.cols, s.rows
	s.mu.Unlock()
	if up != nil && s.pty != nil && (cols != s.pty.Cols || rows != s.pty.Rows) {
		up.SendRequest("window-change", false, ssh.Marshal(windowChange{Cols: cols, Rows: rows}))
	}
}

// guestRequests takes what the guest says of the command's end.
func (s *session) guestRequests(reqs <-chan *ssh.Request, act *action) {
	for r := range reqs {
		switch r.Type {
		case "exit-status":
			if len(r.Payload) == 4 {
				s.ended(r, int(binary.BigEndian.Uint32(r.Payload)&0xff), act)
			}
		case "exit-signal":
			var sig struct {
				Name       string
				Core       bool
				Text, Lang string
			}
			if ssh.Unmarshal(r.Payload, &sig) == nil {
				s.ended(r, 128+signals[sig.Name], act)
			}
		}
		r.Reply(false, nil)
	}
}

// ended takes the first end that the guest tells, and passes it on when the
// client is ready for it.
func (s *session) ended(r *ssh.Request, exit int, act *action) {
	s.mu.Lock()
	if s.exit != nil {
		s.mu.Unlock()
		return
	}
	s.exit, s.exitReq = &exit, r
	answered := s.answered
	s.mu.Unlock()
	act.end()
	if answered {
		s.passExit()
	}
}

// answer marks that the client knows of its running command.
func (s *session) answer() {
	s.mu.Lock()
	s.answered = true
	s.mu.Unlock()
	s.passExit()
}

func (s *session) passExit() {
	s.mu.Lock()
	r := s.exitReq
	s.exitReq = nil
	s.mu.Unlock()
	if r != nil {
		s.ch.SendRequest(r.Type, false, r.Payload)
	}
}

func (s *session) exitStatus() *int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// copyStream carries a stream chunk by chunk, so that a slow reader slows its
// writer, and shows each chunk to tap before it is passed on.
func copyStream(to io.Writer, from io.Reader, tap func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			tap(buf[:n])
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
