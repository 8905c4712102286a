package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"refbox/vm"
)

// stage is a cluster of three machines, of which two forward port 80, and one port
// 5000. What a procedure does there is the test's.
type stage struct {
	vm.Cluster
	machines []vm.Machine

	mu     sync.Mutex
	leader string
	prices map[string]string
	conns  []net.Conn // of port 5000
	calls  []string
	do     func(word string) error
	files  map[string]string
}

type actor struct {
	vm.Machine
	name  string
	ports map[int]string
	stage *stage
}

type inner struct {
	vm.Guest
	stage *stage
}

func (s *stage) Machines() []vm.Machine { return s.machines }
func (s *stage) Links() []vm.Link       { return nil }
func (s *stage) Machine(name string) vm.Machine {
	for _, m := range s.machines {
		if m.Name() == name {
			return m
		}
	}
	return nil
}
func (a *actor) Name() string          { return a.name }
func (a *actor) Guest() vm.Guest       { return &inner{stage: a.stage} }
func (a *actor) Done() <-chan struct{} { return nil }
func (a *actor) Addr(port int) (string, error) {
	if addr := a.ports[port]; addr != "" {
		return addr, nil
	}
	return "", errors.New("not forwarded")
}

func (g *inner) Run(_ context.Context, argv []string, _ []byte) (vm.RunResult, error) {
	g.stage.mu.Lock()
	defer g.stage.mu.Unlock()
	g.stage.calls = append(g.stage.calls, strings.Join(argv, " "))
	if err := g.stage.do(argv[len(argv)-1]); err != nil {
		return vm.RunResult{Exit: 1, Stderr: []byte(err.Error())}, nil
	}
	return vm.RunResult{}, nil
}

func (g *inner) Unit(context.Context, string) (vm.Unit, error) {
	return vm.Unit{ActiveState: "active", MainPID: 7}, nil
}

func (g *inner) ReadFile(_ context.Context, path string, _ int) ([]byte, error) {
	g.stage.mu.Lock()
	defer g.stage.mu.Unlock()
	if text, ok := g.stage.files[path]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (g *inner) Stat(ctx context.Context, path string) (vm.FileStat, error) {
	_, err := g.ReadFile(ctx, path, 1)
	return vm.FileStat{}, err
}

func newStage(t *testing.T) *stage {
	s := &stage{leader: "a", prices: map[string]string{"a": "apple 120", "b": "apple 120"}, files: map[string]string{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done; s.reset() })
	for _, name := range []string{"front", "a", "b"} {
		m := &actor{name: name, stage: s, ports: map[int]string{}}
		if name == "front" {
			m.ports[5000] = l.Addr().String()
		} else {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if r.URL.Path == "/primary" && s.leader != name {
					w.WriteHeader(503)
				}
				fmt.Fprint(w, s.prices[name])
			}))
			t.Cleanup(srv.Close)
			m.ports[80] = srv.Listener.Addr().String()
		}
		s.machines = append(s.machines, m)
	}
	return s
}

func (s *stage) reset() error {
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
	return nil
}

func TestProcedures(t *testing.T) {
	over := Fault{Kind: Switchover, Machine: "front", Procedure: "/opt/over", Port: 80, Path: "/primary"}
	bad := Fault{Kind: BadWrite, Machine: "front", Procedure: "/opt/bad", Port: 80, Path: "/prices"}
	reset := Fault{Kind: ConnectionReset, Machine: "front", Procedure: "/opt/reset", Port: 5000}
	repair := func(s *stage, word string) error {
		price := "apple 1"
		if word == "clear" {
			price = "apple 120"
		}
		s.prices["a"], s.prices["b"] = price, price
		return nil
	}
	for _, c := range []struct {
		name  string
		f     Fault
		do    func(s *stage, word string) error
		saw   string
		calls string
	}{
		{"a switchover", over, func(s *stage, _ string) error { s.leader = "b"; return nil }, "b serves, before it was a", "/opt/over inject"},
		{"a bad write", bad, repair, `a: 200 "apple 1"; b: 200 "apple 1"`, "/opt/bad inject,/opt/bad clear"},
		{"a reset", reset, func(s *stage, _ string) error { return s.reset() }, "the connection is ended", "/opt/reset inject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.do = func(word string) error { return c.do(s, word) }
			a, err := Inject(t.Context(), s, c.f)
			if err != nil {
				t.Fatal(err)
			}
			if !a.Receipt.Confirmed || !strings.Contains(a.Receipt.Saw, c.saw) {
				t.Errorf("%+v", a.Receipt)
			}
			if r, err := a.Clear(t.Context()); err != nil || !r.Confirmed {
				t.Errorf("%+v, %v", r, err)
			}
			if got := strings.Join(s.calls, ","); got != c.calls {
				t.Errorf("ran %s", got)
			}
		})
	}
	for _, c := range []struct {
		name string
		f    Fault
		set  func(*stage)
		want error
	}{
		{"two that serve", over, func(s *stage) { s.leader = "b"; s.machines[1].(*actor).ports[80] = s.machines[2].(*actor).ports[80] }, ErrUnfit},
		{"copies that differ before", bad, func(s *stage) { s.prices["a"] = "pear 2" }, ErrUnfit},
		{"one witness alone", bad, func(s *stage) { s.machines = s.machines[:2] }, ErrUnfit},
		{"a port that nobody keeps", reset, func(s *stage) { s.machines[0].(*actor).ports[5000] = "127.0.0.1:1" }, ErrUnfit},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.do = func(string) error { t.Error("it was injected"); return nil }
			c.set(s)
			ctx, cancel := context.WithTimeout(t.Context(), Patience/5)
			defer cancel()
			if _, err := Inject(ctx, s, c.f); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	t.Run("a procedure that fails", func(t *testing.T) {
		s := newStage(t)
		s.do = func(string) error { return errors.New("no replica") }
		_, err := Inject(t.Context(), s, over)
		if err == nil || errors.Is(err, ErrUnfit) || errors.Is(err, ErrNoEffect) || !strings.Contains(err.Error(), "no replica") {
			t.Error(err)
		}
	})
	t.Run("one copy alone", func(t *testing.T) { // what only the leader has is no change of the history
		s := newStage(t)
		s.do = func(word string) error {
			s.prices["a"] = map[string]string{"inject": "apple 1", "clear": "apple 120"}[word]
			return nil
		}
		if _, err := Inject(t.Context(), s, bad); !errors.Is(err, ErrNoEffect) || errors.Is(err, ErrNotCleared) {
			t.Error(err)
		}
	})
}

// The process of a file is killed, not its unit's main one.
func TestKillByFile(t *testing.T) {
	s := newStage(t)
	const ours, others = "0::/system.slice/db.service/part\n", "0::/system.slice/db.service.d/agent.service\n"
	s.files["/run/db.pid"], s.files["/proc/42"], s.files["/proc/42/cgroup"] = "42\n/var/lib/db\n", "", ours
	s.do = func(word string) error {
		if word == "42" {
			delete(s.files, "/proc/42")
			delete(s.files, "/proc/42/cgroup")
			s.files["/run/db.pid"], s.files["/proc/43"], s.files["/proc/43/cgroup"] = "43\n", "", ours
			return s.reset()
		}
		return nil
	}
	a, err := Inject(t.Context(), s, Fault{Kind: ProcessKill, Machine: "front", Unit: "db.service", PIDFile: "/run/db.pid", Port: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if saw := a.Receipt.Saw; saw != "the connection is ended; process 42 is gone" {
		t.Error(saw)
	}
	if _, err := a.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	if s.calls[0] != "kill -9 42" {
		t.Error(s.calls)
	}
	if r := a.Receipt; !strings.Contains(r.Witness, "/proc") || strings.Contains(r.Witness, "main process") || r.Forgeable == "" {
		t.Errorf("%+v", r)
	}

	// The file is the guest's: it may name what is none of the unit's.
	s.files["/proc/7"], s.files["/proc/7/cgroup"] = "", others
	s.files["/proc/8"], s.files["/proc/8/cgroup"] = "", "1:cpu:/db.service\n0::/system.slice/agent.service\n"
	for _, file := range []string{"1\n", "7\n", "8\n", "44\n", "-5\n", "all\n"} {
		s.files["/run/db.pid"] = file
		ctx, cancel := context.WithTimeout(t.Context(), Patience/20)
		_, err := Inject(ctx, s, Fault{Kind: ProcessKill, Machine: "front", Unit: "db.service", PIDFile: "/run/db.pid"})
		cancel()
		if !errors.Is(err, ErrUnfit) || !errors.Is(err, vm.ErrGuestRefused) {
			t.Errorf("%q: %v", file, err)
		}
	}
	if len(s.calls) != 2 || s.calls[1] != "systemctl start db.service" {
		t.Errorf("killed: %q", s.calls)
	}
}
