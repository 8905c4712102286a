package agent

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// The client that most players use.
func TestOpenSSHClient(t *testing.T) {
	bin, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("needs the program ssh (package openssh-client): ", err)
	}
	dir := t.TempDir()
	key := writeKey(t, dir)
	w := newWatcher()
	gw, err := Open(Config{Machines: []string{"app", "db"}, Dial: newGuest(t).dial, Observer: w, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	_, port, _ := net.SplitHostPort(gw.Addr())
	ssh := func(args ...string) *exec.Cmd {
		return exec.Command(bin, append([]string{"-F", "none", "-q", "-p", port, "-i", filepath.Join(dir, "key"), "-o", "IdentitiesOnly=yes",
			"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"}, args...)...)
	}
	cmd := ssh("db@127.0.0.1", "cat; echo bad >&2; exit 3")
	cmd.Stdin = strings.NewReader("in")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "in" || stderr.String() != "bad\n" {
		t.Fatalf("%v, %q, %q", err, out, &stderr)
	}
	if a := w.action(1); a.Machine != "db" {
		t.Fatalf("%+v", a)
	}
	w.finish(t, 1)

	// With a terminal on both sides.
	cmd = ssh("-t", "root@127.0.0.1", "stty size; exit 4")
	cmd.Env = append(os.Environ(), "TERM=xterm")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 101, Rows: 33})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	newScreen(f).expect(t, "33 101")
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Fatalf("%v", err)
	}
	w.finish(t, 2)
	if c := w.tape(2); c.s.Term != "xterm" || c.s.Width != 101 || c.s.Height != 33 {
		t.Fatalf("%+v", c.s)
	}

	if err := ssh("nobody@127.0.0.1", "true").Run(); !errors.As(err, &exit) || exit.ExitCode() != 255 {
		t.Fatalf("as nobody: %v", err)
	}
}
