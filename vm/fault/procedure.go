package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"refbox/vm"
)

// procedure runs the arena's procedure with a word.
func procedure(word string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error { return run(ctx, s.machine, s.fault.Procedure, word) }
}

// reply is what one machine's port gives for the fault's path.
type reply struct {
	machine string
	status  int // 0: nothing
	body    string
}

// replyWait bounds one answer; replyBytes what is kept of it.
const (
	replyWait  = 5 * time.Second
	replyBytes = 4 << 10
)

// replies asks each machine that forwards the fault's port, all at once, in the
// cluster's order.
func (s *scene) replies(ctx context.Context) ([]reply, error) {
	var out []reply
	var addrs []string
	for _, m := range s.cluster.Machines() {
		if addr, err := m.Addr(s.fault.Port); err == nil {
			out = append(out, reply{machine: m.Name()})
			addrs = append(addrs, addr)
		}
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("port %d is forwarded from %d machines: a witness needs two or more", s.fault.Port, len(out))
	}
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].status, out[i].body = get(ctx, addrs[i], s.fault.Path) })
	}
	all.Wait()
	return out, ctx.Err()
}

// get is the answer to one GET; 0 when nothing came.
func get(ctx context.Context, addr, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(ctx, replyWait)
	defer cancel()
	status, body, err := vm.Get(ctx, addr, path, replyBytes)
	if err != nil {
		return 0, ""
	}
	return status, body
}

// serving are the machines that give 200, in words.
func serving(rs []reply) string {
	var names []string
	for _, r := range rs {
		if r.status == http.StatusOK {
			names = append(names, r.machine)
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, " and ")
}

// led is the sight of one machine that serves, and no other.
func led(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	who := serving(rs)
	return who + " serves", who != "nobody" && !strings.Contains(who, " and "), nil
}

// leads is led, and keeps who it is.
func leads(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	s.told = rs
	return led(ctx, s)
}

// handedOver is led by another than before.
func handedOver(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	was, who := serving(s.told), serving(rs)
	return fmt.Sprintf("%s serves, before it was %s", who, was), who != was && who != "nobody" && !strings.Contains(who, " and "), nil
}

// same says whether all machines answer, with the same.
func same(rs []reply) bool {
	for _, r := range rs {
		if r.status != http.StatusOK || r.body != rs[0].body {
			return false
		}
	}
	return true
}

// bodies are what the machines give, in a few words: they are the guests'.
func bodies(rs []reply) string {
	var out []string
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%s: %d %.60q", r.machine, r.status, r.body))
	}
	return strings.Join(out, "; ")
}

// agree is the sight of copies that are the same, and keeps them.
func agree(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	s.told = rs
	return bodies(rs), same(rs), nil
}

// changed is the sight of a change on every copy.
func changed(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	return bodies(rs), same(rs) && rs[0].body != s.told[0].body, nil
}

// asBefore is the sight of copies that are as they were.
func asBefore(ctx context.Context, s *scene) (string, bool, error) {
	rs, err := s.replies(ctx)
	if err != nil {
		return "", false, err
	}
	return bodies(rs), same(rs) && len(s.told) > 0 && rs[0].body == s.told[0].body, nil
}

// keeps is the sight of a port that keeps a connection, which is kept.
func keeps(ctx context.Context, s *scene) (string, bool, error) {
	conn, saw, err := held(ctx, s.machine, s.fault.Port)
	if conn == nil {
		return saw, false, err
	}
	s.close()
	s.conn = conn
	return saw, true, nil
}

// keepsAny is keeps, of a connection that is ended again.
func keepsAny(ctx context.Context, s *scene) (string, bool, error) {
	conn, saw, err := held(ctx, s.machine, s.fault.Port)
	if conn == nil {
		return saw, false, err
	}
	conn.Close()
	return saw, true, nil
}

// wasReset is the sight of the old connection's end, and of a new one that is kept.
func wasReset(ctx context.Context, s *scene) (string, bool, error) {
	if s.conn == nil || !ended(s.conn, time.Second) {
		return "the connection stays", false, nil
	}
	saw, ok, err := keepsAny(ctx, s)
	return "the connection is ended; " + saw, ok, err
}

// filePID is the process that the fault's file names, if it is of the fault's unit: the
// file is the guest's, and what it names beside that, such as the helper that answers
// the referee, is none of the fault's business.
func (s *scene) filePID(ctx context.Context) (int, error) {
	b, err := s.machine.Guest().ReadFile(ctx, s.fault.PIDFile, 64)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(firstLine(b))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("%w: %s names no process: %q", vm.ErrGuestRefused, s.fault.PIDFile, firstLine(b))
	}
	groups, err := s.machine.Guest().ReadFile(ctx, fmt.Sprintf("/proc/%d/cgroup", pid), 4<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("%w: process %d, of %s, is gone", vm.ErrGuestRefused, pid, s.fault.PIDFile)
	case err != nil:
		return 0, err
	case !inUnit(string(groups), s.fault.Unit):
		return 0, fmt.Errorf("%w: process %d, of %s, is none of %s: %.80q", vm.ErrGuestRefused, pid, s.fault.PIDFile, s.fault.Unit, firstLine(groups))
	}
	return pid, nil
}

// inUnit tells whether a process is of a unit, by its cgroups as proc(5) has them: the
// one of systemd's own hierarchy is the unit's, or below it.
func inUnit(groups, unit string) bool {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (f[0] == "0" && f[1] == "" || f[1] == "name=systemd") && slices.Contains(strings.Split(f[2], "/"), unit) {
			return true
		}
	}
	return false
}

// gone says whether the process is.
func (s *scene) gone(ctx context.Context) (bool, error) {
	_, err := s.machine.Guest().Stat(ctx, fmt.Sprintf("/proc/%d", s.pid))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
