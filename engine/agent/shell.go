package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/text"
)

// Shell runs commands on a seat's machines, through its gateway, for a player
// that lives in this process. It is used by one goroutine.
type Shell struct{ h *hands }

// NewShell connects when the first command is run.
func NewShell(l Login) *Shell {
	return &Shell{&hands{login: l, conns: map[string]*ssh.Client{}}}
}

// Close ends the connections.
func (s *Shell) Close() { s.h.close() }

// Output is what came of a command.
type Output struct {
	Exit   *int   // nil when the session broke or was cut
	Text   string // both streams' head and tail, sanitised, lines kept
	Bytes  uint64 // of output before it was shortened
	Detail string // why there is no exit; "" when there is one
}

// Run runs a command on a machine, "" for the first, for at most limit. A machine
// that reboots is waited for until the command has started; a command whose
// session broke is not run again. Most bounds the output's text, in bytes. The
// error is about a command that could not be started, or ctx's.
func (s *Shell) Run(ctx context.Context, machine, command string, limit time.Duration, most int) (Output, error) {
	if machine == "" {
		machine = s.h.login.User
	} else if !slices.Contains(s.h.login.Machines, machine) {
		return Output{}, fmt.Errorf("there is no machine %q; there are: %s", line(machine), strings.Join(s.h.login.Machines, ", "))
	}
	out := &scroll{part: most / 2}
	s.h.out = out
	cut, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	exit, err := s.h.run(cut, machine, command)
	o := Output{Text: out.String(), Bytes: out.seen()}
	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		o.Detail = fmt.Sprintf("cut after %v", limit)
	case err != nil:
		return o, err
	case exit == Lost:
		o.Detail = "the session broke"
	default:
		o.Exit = &exit
	}
	return o, nil
}

// scroll keeps the head and the tail of what two goroutines write.
type scroll struct {
	part int // bytes of either

	mu sync.Mutex
	ends
}

func (s *scroll) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(s.part, p)
	return len(p), nil
}

func (s *scroll) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func (s *scroll) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tail := s.tail(s.part)
	left := s.total - uint64(len(s.head)+len(tail))
	if left == 0 {
		return text.Block(string(s.head) + string(tail))
	}
	return fmt.Sprintf("%s\n%s %d bytes left out %s\n%s", text.Block(string(s.head)), text.Ellipsis, left, text.Ellipsis, text.Block(string(tail)))
}
