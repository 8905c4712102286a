package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
	"refbox/vm/qemu/qemutest"
)

// startReal starts one real machine, and keeps other tests that run real
// machines waiting until the test has ended.
func startReal(t *testing.T, key ssh.Signer) vm.Cluster {
	t.Helper()
	d := qemutest.Driver(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{{Name: "host", VCPUs: 1, MemoryMiB: 512, DiskMiB: 1024}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gw") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c, err := d.Start(ctx, tpl, vm.Start{Name: "seat", Password: "root-password", AuthorizedKey: key.PublicKey(), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The gateway before a real machine's OpenSSH: its limits, its terminals, its
// forwards and its reboots.
func TestOnARealMachine(t *testing.T) {
	key := signer(t)
	c := startReal(t, key)
	w := newWatcher()
	gw, err := Open(Config{Machines: []string{"host"}, Dial: DialCluster(c, key), Observer: w, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	client := enter(t, gw)

	s := command(t, client)
	var out, errs strings.Builder
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader("in"), &out, &errs
	var exit *ssh.ExitError
	if err := s.Run("cat; echo bad >&2; exit 7"); !errors.As(err, &exit) || exit.ExitStatus() != 7 || out.String() != "in" || errs.String() != "bad\n" {
		t.Fatalf("%v, %q, %q", err, &out, &errs)
	}

	// More sessions at once than one connection of OpenSSH takes.
	var wg sync.WaitGroup
	for i := range 25 {
		s := command(t, client)
		wg.Go(func() {
			if got, err := s.Output(fmt.Sprintf("sleep 1; echo %d", i)); err != nil || string(got) != fmt.Sprintln(i) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	wg.Wait()
	for _, f := range w.done {
		if f.Exit == nil {
			t.Errorf("%+v", f)
		}
	}

	s = command(t, client)
	in, _ := s.StdinPipe()
	pipe, _ := s.StdoutPipe()
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	screen := newScreen(pipe)
	fmt.Fprint(in, "PS1=; stty size\n")
	screen.expect(t, "24 80")
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(in, "stty size\n")
	screen.expect(t, "50 132")
	fmt.Fprint(in, "exit 3\n")
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Fatalf("shell: %v", err)
	}

	// The loopback that a forward reaches is the guest's: the host's listeners,
	// this seat's gateway and another's are not on it.
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	other, _ := open(t, newGuest(t))
	conn, err := client.Dial("tcp", "127.0.0.1:22")
	if err != nil {
		t.Fatalf("positive control: %v", err)
	}
	banner := make([]byte, 4)
	if _, err := io.ReadFull(conn, banner); err != nil || string(banner) != "SSH-" {
		t.Fatalf("positive control: %q, %v", banner, err)
	}
	conn.Close()
	for _, l := range []string{host.Addr().String(), gw.Addr(), other.Addr()} {
		_, port, _ := net.SplitHostPort(l)
		for _, name := range []string{"127.0.0.1", "localhost", "host", "10.0.2.2"} {
			if c, err := client.Dial("tcp", net.JoinHostPort(name, port)); err == nil {
				c.Close()
				t.Fatalf("reached %s of the host as %s", l, name)
			}
		}
	}

	// A reset that nobody announces, under a session.
	s = command(t, client)
	pipe, _ = s.StdoutPipe()
	if err := s.Start("echo up; exec sleep 1000"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(pipe, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	n := uint64(len(w.started))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	start := time.Now()
	if err := c.Machine("host").Reset(ctx); err != nil {
		t.Fatal(err)
	}
	up := time.Since(start)
	if got, err := command(t, client).Output("hostname"); err != nil || strings.TrimSpace(string(got)) != "seat" {
		t.Fatalf("after the reset: %q, %v", got, err)
	}
	t.Logf("reset took %v, first command after %v", up, time.Since(start))
	f := w.finish(t, n)
	t.Logf("the session under the reset ended after %v: %s", f.Took, f.Detail)
	if f.Exit != nil || f.Detail == "" {
		t.Fatalf("%+v", f)
	}

	// A player that reboots its own machine and goes on.
	r, _ := playScript(t, t.Context(), gw, `echo kept >/root/kept; sync
cat /proc/sys/kernel/random/boot_id >/root/boot
systemctl reboot
---
# pause 1s
# repeat until 0 every 500ms for 2m
# must
test "$(cat /proc/sys/kernel/random/boot_id)" != "$(cat /root/boot)"
---
# must
test "$(cat /root/kept)" = kept
`)
	if r.Status != Completed {
		t.Fatalf("%+v", r)
	}
}
