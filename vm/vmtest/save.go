package vmtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"refbox/vm"
)

// saves: machines start from the disks of others, as they were at one instant.
func (s *suite) saves(t *testing.T) {
	c, _ := s.start(t, s.template, "parent", false)
	m := c.Machine("host")
	s.await(t, "conform.service", func() error { return s.ping(m) })
	if status, _, err := s.http(m, "PUT", "/kv/kept", "kept"); err != nil || status != 204 {
		t.Fatalf("PUT: %d, %v", status, err)
	}
	s.run(t, m, "mkdir -p /var/lib/save && echo before >/var/lib/save/file")
	base := t.TempDir()
	small := filepath.Join(base, "small")
	if err := c.Save(s.ctx(t), small, 1); !errors.Is(err, vm.ErrTooLarge) {
		t.Errorf("saving into one byte: %v, want ErrTooLarge", err)
	}
	if _, err := os.Stat(small); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a save that failed left its folder: %v", err)
	}
	dir := filepath.Join(base, "state")
	if err := c.Save(s.ctx(t), dir, 1<<30); err != nil {
		t.Fatal(err)
	}
	if p, err := m.Power(s.ctx(t)); err != nil || p != vm.PowerOn {
		t.Errorf("after a save the machine is %q, %v", p, err)
	}
	s.run(t, m, "echo after >/var/lib/save/file")
	s.service(t, m)
	if err := m.PowerCut(s.ctx(t)); err != nil {
		t.Fatal(err)
	}
	off := filepath.Join(base, "off")
	if err := c.Save(s.ctx(t), off, 1<<30); err != nil {
		t.Errorf("saving a machine that is off: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(s.ctx(t), filepath.Join(base, "closed"), 1<<30); !errors.Is(err, vm.ErrPower) {
		t.Errorf("saving a closed cluster: %v, want ErrPower", err)
	}
	for range 2 { // starting from a state leaves it as it is
		s.child(t, dir)
	}
}

func (s *suite) child(t *testing.T, dir string) {
	own := t.TempDir()
	c, err := s.Driver.Start(s.ctx(t), s.template, vm.Start{Name: "child", Password: password, AuthorizedKey: s.public, Dir: own, Saved: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.empty(t, own)
	}()
	m := c.Machine("host")
	if got := s.run(t, m, "cat /var/lib/save/file; hostname"); got != "before\nchild" {
		t.Errorf("the child's file and name: %q", got)
	}
	s.await(t, "conform.service", func() error { return s.ping(m) })
	if status, got, err := s.http(m, "GET", "/kv/kept", ""); err != nil || status != 200 || got != "kept" {
		t.Errorf("GET: %d %q, %v", status, got, err)
	}
	s.run(t, m, "echo child >/var/lib/save/file; sync")
}
