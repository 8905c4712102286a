package vmtest

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"refbox/vm"
)

func (s *suite) verbs(t *testing.T, m vm.Machine) {
	g := m.Guest()
	t.Run("Run", func(t *testing.T) {
		r, err := g.Run(s.ctx(t), []string{"/bin/sh", "-c", "cat; echo bad >&2; exit 7"}, []byte("from stdin"))
		if err != nil || r.Exit != 7 || string(r.Stdout) != "from stdin" || string(r.Stderr) != "bad\n" {
			t.Errorf("%+v, %v", r, err)
		}
		// Arguments are not a shell's.
		if r, err := g.Run(s.ctx(t), []string{"echo", "$HOME;", "a  b"}, nil); err != nil || string(r.Stdout) != "$HOME; a  b\n" {
			t.Errorf("echo: %q, %v", r.Stdout, err)
		}
		if r, err := g.Run(s.ctx(t), []string{"/bin/sh", "-c", "kill -9 $$"}, nil); err != nil || r.Exit != 128+9 {
			t.Errorf("killed: %+v, %v", r, err)
		}
		if _, err := g.Run(s.ctx(t), nil, nil); err == nil {
			t.Error("running nothing is no error")
		}
	})
	t.Run("Files", func(t *testing.T) {
		const path = "/root/conform file"
		want := "two\nlines\x00\xff"
		if err := g.WriteFile(s.ctx(t), path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		if b, err := g.ReadFile(s.ctx(t), path, 100); err != nil || string(b) != want {
			t.Errorf("read %q, %v", b, err)
		}
		if b, err := g.ReadFile(s.ctx(t), path, 3); err != nil || string(b) != want[:3] {
			t.Errorf("read at most 3: %q, %v", b, err)
		}
		st, err := g.Stat(s.ctx(t), path)
		if err != nil || st.Size != int64(len(want)) || st.Mode != 0o640 || time.Since(st.Mod).Abs() > time.Minute {
			t.Errorf("stat %+v, %v", st, err)
		}
		if st, err := g.Stat(s.ctx(t), "/etc"); err != nil || !st.Mode.IsDir() {
			t.Errorf("stat /etc: %+v, %v", st, err)
		}
		s.run(t, m, "ln -s /etc/hostname /root/link")
		if st, err := g.Stat(s.ctx(t), "/root/link"); err != nil || st.Mode.Type() != fs.ModeSymlink || st.Target != "/etc/hostname" {
			t.Errorf("stat of a link: %+v, %v", st, err)
		}
		for range 2 { // the second time there is nothing to remove
			if err := g.Remove(s.ctx(t), path); err != nil {
				t.Error(err)
			}
		}
		if err := g.Remove(s.ctx(t), "/root/link"); err != nil {
			t.Error(err)
		}
		if _, err := g.ReadFile(s.ctx(t), path, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading nothing: %v, want ErrNotExist", err)
		}
		if _, err := g.Stat(s.ctx(t), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat of nothing: %v, want ErrNotExist", err)
		}
		if err := g.Sync(s.ctx(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("Modes", func(t *testing.T) { // as vm.MachineSpec.Files says
		if st, err := g.Stat(s.ctx(t), "/etc/systemd/system/conform.service"); err != nil || st.Mode != 0o644 {
			t.Errorf("a plain file: %v, %v", st.Mode, err)
		}
	})
	t.Run("Listeners", func(t *testing.T) {
		ls, err := g.Listeners(s.ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		ports := map[int]bool{}
		for _, l := range ls {
			ports[l.Port] = true
			if l.Port == 8080 && (l.PID <= 1 || l.Process == "") {
				t.Errorf("the service's listener has no owner: %+v", l)
			}
		}
		if !ports[22] || !ports[8080] || ports[8081] {
			t.Errorf("listeners: %+v", ls)
		}
	})
	t.Run("Units", func(t *testing.T) {
		u, err := g.Unit(s.ctx(t), "conform.service")
		if err != nil || u.LoadState != "loaded" || u.ActiveState != "active" || u.SubState != "running" ||
			u.UnitFileState != "enabled" || u.MainPID <= 1 {
			t.Errorf("conform.service: %+v, %v", u, err)
		}
		if u, err := g.Unit(s.ctx(t), "no-such.service"); err != nil || u.LoadState != "not-found" || u.ActiveState != "inactive" {
			t.Errorf("no-such.service: %+v, %v", u, err)
		}
		s.run(t, m, "systemctl stop conform.service")
		if u, err := g.Unit(s.ctx(t), "conform.service"); err != nil || u.ActiveState != "inactive" || u.MainPID != 0 {
			t.Errorf("stopped: %+v, %v", u, err)
		}
		s.refused(t, m, 8080)
		s.run(t, m, "systemctl start conform.service")
	})
	t.Run("HTTP", func(t *testing.T) {
		s.await(t, "conform.service from inside", func() error {
			r, err := g.HTTP(s.ctx(t), vm.HTTPRequest{Method: http.MethodGet, URL: "http://127.0.0.1:8080/ping", Timeout: 5 * time.Second})
			if err == nil && (r.Status != 200 || string(r.Body) != "pong\n" || r.Err != "") {
				err = errors.New(r.Err)
			}
			return err
		})
		r, err := g.HTTP(s.ctx(t), vm.HTTPRequest{Method: http.MethodPut, URL: "http://127.0.0.1:8080/kv/inside", Body: []byte("x"), Timeout: 5 * time.Second})
		if err != nil || r.Status != 204 {
			t.Errorf("PUT: %+v, %v", r, err)
		}
		r, err = g.HTTP(s.ctx(t), vm.HTTPRequest{Method: http.MethodGet, URL: "http://127.0.0.1:8081/", Timeout: 5 * time.Second})
		if err != nil || r.Status != 0 || r.Err != "refused" {
			t.Errorf("refused port: %+v, %v", r, err)
		}
	})
}

// refuses: a guest that blocks its reboot is told apart from a broken one.
func (s *suite) refuses(t *testing.T, m vm.Machine) {
	s.run(t, m, "systemctl mask reboot.target")
	before := s.bootID(t, m)
	ctx, cancel := contextWithin(min(5*time.Second, s.Patience/4))
	defer cancel()
	if err := m.Reboot(ctx); !errors.Is(err, vm.ErrGuestRefused) {
		t.Errorf("a blocked reboot: %v, want ErrGuestRefused", err)
	}
	if after := s.bootID(t, m); after != before {
		t.Errorf("boot %s became %s", before, after)
	}
	s.run(t, m, "systemctl unmask reboot.target")
	if err := s.ping(m); err != nil {
		t.Errorf("after a refused reboot: %v", err)
	}
}

// lost: a killed agent is the player's act; the machine goes on without it, and
// a reset brings it back.
func (s *suite) lost(t *testing.T, m vm.Machine) {
	ctx, cancel := contextWithin(min(5*time.Second, s.Patience/4))
	defer cancel()
	// The answer to this may be lost with the agent.
	m.Guest().Run(ctx, []string{"systemctl", "stop", "refbox-agent.service"}, nil)
	ctx, cancel = contextWithin(time.Second)
	defer cancel()
	if _, err := m.Guest().Hello(ctx); !errors.Is(err, vm.ErrGuestLost) {
		t.Errorf("hello of a stopped agent: %v, want ErrGuestLost", err)
	}
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerOn {
		t.Errorf("power %q, %v", p, err)
	}
	if err := s.ping(m); err != nil {
		t.Errorf("the machine does not go on without the agent: %v", err)
	}
	if err := m.Reset(s.ctx(t)); err != nil {
		t.Fatalf("Reset: %v", err)
	}
	if _, err := m.Guest().Hello(s.ctx(t)); err != nil {
		t.Errorf("after the reset: %v", err)
	}
}

func (s *suite) console(t *testing.T, m vm.Machine, host string, record *safeBuffer) {
	var seen safeBuffer
	news := make(chan struct{}, 1)
	detach := m.Console().Attach(func(b []byte) {
		seen.Write(b)
		select {
		case news <- struct{}{}:
		default:
		}
	})
	read := 0
	// expect returns whether want is printed after what was expected before.
	expect := func(want string, limit time.Duration) bool {
		deadline := time.NewTimer(limit)
		defer deadline.Stop()
		for {
			if i := strings.Index(seen.String()[read:], want); i >= 0 {
				read += i + len(want)
				return true
			}
			select {
			case <-news:
			case <-deadline.C:
				return false
			}
		}
	}
	write := func(text string) {
		if _, err := m.Console().Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	login := func() bool {
		write("\n")
		if !expect(host+" login:", s.Patience/4) {
			return false
		}
		write("root\n")
		if !expect("assword:", s.Patience/4) {
			return false
		}
		write(password + "\n")
		// What is typed before the shell reads is thrown away, so it is typed
		// again. Only a shell works the sum out; an echo does not.
		for range 10 {
			write("echo sum-$((40+2))-end\n")
			if expect("sum-42-end", s.Patience/40) {
				return true
			}
		}
		return false
	}
	// The login prompt is replaced once the machine has its new name, and may
	// take what is typed along.
	in := login()
	if !in {
		in = login()
	}
	if !in {
		t.Fatalf("no login on the console; it shows %q", seen.String())
	}
	detach()
	size := len(seen.String())
	write("echo later-$((50+5))-end\nexit\n")
	s.await(t, "the record", func() error {
		if !strings.Contains(record.String(), "later-55-end") {
			return errors.New("what was printed after detaching is missing")
		}
		return nil
	})
	if got := len(seen.String()); got != size {
		t.Errorf("a detached sink was given %d more bytes", got-size)
	}
	if !strings.Contains(record.String(), "sum-42-end") {
		t.Error("the record lacks what the attached sink saw")
	}
}
