package sim

import (
	"context"
	"errors"
	"io"
	"os"
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

// Read gives the parser at most one line, byte by byte, so that the rest stays
// for the commands.
func (s *session) Read(p []byte) (int, error) {
	s.mu.Lock()
	in := s.in
	s.mu.Unlock()
	stop := context.AfterFunc(s.p.ctx, func() { _ = in.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	n := 0
	for n < len(p) {
		k, err := in.Read(p[n : n+1])
		n += k
		if err != nil {
			if n > 0 && err == io.EOF {
				err = nil
			}
			return n, err
		}
		if k > 0 && p[n-1] == '\n' {
			break
		}
	}
	return n, nil
}

func (s *session) run() int {
	s.p.stdin = s.in
	r, err := s.p.runner(nil)
	if err != nil {
		s.p.Logf("%v", err)
		return 1
	}
	last := 0
	s.prompt("# ")
	for s.p.ctx.Err() == nil {
		parser := syntax.NewParser()
		exited := false
		err := parser.Interactive(s, func(stmts []*syntax.Stmt) bool {
			if parser.Incomplete() {
				s.prompt("> ")
				return true
			}
			for _, st := range stmts {
				last = s.statement(r, st)
				if r.Exited() {
					exited = true
					return false
				}
			}
			s.prompt("# ")
			return s.p.ctx.Err() == nil
		})
		var syn syntax.ParseError
		var lang syntax.LangError
		switch {
		case exited || err == nil || errors.Is(err, io.EOF):
			if s.tty != nil && !exited {
				_, _ = io.WriteString(s.p.Stdout, "logout\n")
			}
			return last
		case errors.As(err, &syn) || errors.As(err, &lang):
			s.p.Logf("-bash: %v", err)
			last = 2
			if s.tty == nil {
				return last
			}
			s.prompt("# ")
		default:
			return s.p.signalled()
		}
	}
	return s.p.signalled()
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
