package disk

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A QEMU that is killed leaves what it wrote over what was there, and of new
// clusters nothing, as their tables are in its memory; one whose disk is cut leaves
// what it flushed. Either way its image is whole.
func TestCutImage(t *testing.T) {
	for _, tool := range []string{"qemu-io", "qemu-img"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this host lacks %s (package qemu-utils)", tool)
		}
	}
	for name, want := range map[string]struct{ first, second, fresh string }{
		"cut":    {"1", "1", "0"},
		"killed": {"1", "2", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			image := filepath.Join(dir, "image")
			tool := func(args ...string) string {
				t.Helper()
				out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
				return string(out)
			}
			tool("qemu-img", "create", "-q", "-f", "qcow2", image, "64M")
			d, err := Open(image, 80<<20)
			must(t, err)
			socket, served := serveSocket(t, d)
			cmd := exec.Command("qemu-io", "-t", "writeback", "--image-opts", "driver=qcow2,file.driver=nbd,file.server.type=unix,file.server.path="+socket,
				"-c", "write -P 1 0 2M", "-c", "flush", "-c", "write -P 2 1M 1M", "-c", "write -P 3 8M 1M", "-c", "sleep 60000")
			tty, err := pty.Start(cmd) // into a pipe it would say nothing before its end
			must(t, err)
			defer tty.Close()
			for sc, wrote := bufio.NewScanner(tty), 0; wrote < 3 && sc.Scan(); {
				if strings.Contains(sc.Text(), "wrote ") {
					wrote++
				}
			}
			if name == "cut" {
				d.Cut()
			}
			must(t, cmd.Process.Kill())
			cmd.Wait()
			must(t, <-served)
			if lost := d.Lost(); (lost >= 2<<20) != (name == "cut") {
				t.Errorf("%d bytes are lost", lost)
			}
			tool("qemu-img", "check", "-q", image)
			got := tool("qemu-io", "-f", "qcow2", image, "-c", "read -P "+want.first+" 0 1M", "-c", "read -P "+want.second+" 1M 1M", "-c", "read -P "+want.fresh+" 8M 1M")
			if strings.Contains(got, "verification failed") {
				t.Errorf("want %+v: %s", want, got)
			}
			if st, err := os.Stat(image); err != nil || st.Size() > 80<<20 {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
}
