package sim

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// interactive runs a shell that reads its commands: from the terminal t, with
// prompts, or without one from p's standard input. The shell and its commands
// read from one pipe, so that each takes only its own lines.
func (p *Process) interactive(t *tty, onStart func()) int {
	s := &session{p: p, tty: t, in: p.stdin}
	if t != nil {
		if err := s.newPipe(); err != nil {
			p.Logf("%v", err)
			return 1
		}
		defer s.close()
		t.read(s.typed, s.eof, s.interrupt)
		defer t.read(nil, nil, nil)
	}
	if onStart != nil {
		onStart()
	}
	if s.in == nil {
		return 0
	}
	return s.run()
}

type session struct {
	p   *Process
	tty *tty

	mu        sync.Mutex
	in        *os.File // read end
	feed      *os.File // write end, nil after Ctrl-D
	cancelCmd context.CancelFunc
}

func (s *session) newPipe() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in != nil {
		s.in.Close()
	}
	s.in, s.feed = r, w
	return nil
}

func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Close()
	if s.feed != nil {
		s.feed.Close()
	}
}

// typed hands a line to whoever reads; what nobody reads for long is dropped, as
// a terminal's queue does.
func (s *session) typed(line []byte) {
	s.mu.Lock()
	feed := s.feed
	s.mu.Unlock()
	if feed != nil {
		_ = feed.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = feed.Write(line)
	}
}

func (s *session) eof() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed != nil {
		s.feed.Close()
		s.feed = nil
	}
}

func (s *session) interrupt() {
	s.mu.Lock()
	cancel := s.cancelCmd
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	} else {
		s.prompt("# ")
	}
}

func (s *session) prompt(kind string) {
	if s.tty == nil {
		return
	}
	if kind == "# " {
		kind = "root@" + s.p.b.hostname() + ":~# "
	}
	_, _ = io.WriteString(s.p.Stdout, kind)
}

// readLine reads one line, byte by byte, so that the rest stays for the
// commands. The last line may lack its newline; then comes io.EOF.
func (s *session) readLine() (string, error) {
	s.mu.Lock()
	in := s.in
	s.mu.Unlock()
	defer endWith(s.p.ctx, in.SetReadDeadline)()
	var line []byte
	for len(line) < maxCommand {
		var c [1]byte
		n, err := in.Read(c[:])
		line = append(line, c[:n]...)
		if err != nil && (err != io.EOF || len(line) == 0) {
			return "", err
		}
		if err != nil || c[0] == '\n' {
			break
		}
	}
	return string(line), nil
}

const maxCommand = 1 << 20 // bytes of one command, its continuation lines included

func (s *session) run() int {
	s.p.stdin = s.in
	r, err := s.p.runner(nil)
	if err != nil {
		s.p.Logf("%v", err)
		return 1
	}
	last, text := 0, ""
	s.prompt("# ")
	for s.p.ctx.Err() == nil {
		line, err := s.readLine()
		if err != nil && text == "" {
			if s.p.ctx.Err() != nil || err != io.EOF {
				break
			}
			if s.tty != nil {
				_, _ = io.WriteString(s.p.Stdout, "logout\n")
			}
			return last
		}
		text += line
		if err == nil && len(text) < maxCommand && continues(text) {
			s.prompt("> ")
			continue
		}
		file, perr := syntax.NewParser().Parse(strings.NewReader(text), "bash")
		if perr != nil && err == nil && len(text) < maxCommand && syntax.IsIncomplete(perr) {
			s.prompt("> ")
			continue
		}
		text = ""
		if perr != nil {
			s.p.Logf("%v", perr)
			if last = 2; s.tty == nil {
				return last
			}
			s.prompt("# ")
			continue
		}
		for _, st := range file.Stmts {
			if last = s.statement(r, st); r.Exited() {
				return last
			}
		}
		s.prompt("# ")
	}
	return s.p.signalled()
}

// continues reports whether the last line ends with an unquoted backslash, as
// far as counting backslashes tells.
func continues(text string) bool {
	text = strings.TrimSuffix(text, "\n")
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// statement runs one statement, which Ctrl-C ends.
func (s *session) statement(r *interp.Runner, st *syntax.Stmt) int {
	s.p.adopt(st)
	// A background command must outlive its statement, so the context is ended
	// by Ctrl-C alone.
	ctx, cancel := context.WithCancel(s.p.ctx)
	s.mu.Lock()
	s.cancelCmd = cancel
	s.mu.Unlock()
	err := r.Run(ctx, st)
	s.mu.Lock()
	s.cancelCmd = nil
	dead := s.tty != nil && s.feed == nil
	s.mu.Unlock()
	if !s.p.lingers.Load() {
		cancel()
	}
	if dead { // a command took the end of input; the shell goes on
		if s.newPipe() == nil {
			_ = interp.StdIO(s.in, s.p.Stdout, s.p.Stderr)(r)
		}
	}
	if ctx.Err() != nil && s.p.ctx.Err() == nil && err != nil {
		var exit interp.ExitStatus
		if !errors.As(err, &exit) {
			return 128 + int(syscall.SIGINT)
		}
	}
	return s.p.status(err)
}
