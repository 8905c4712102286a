package bounded_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"refbox/engine/bounded"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := os.WriteFile(name, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := bounded.File(name, 8); err != nil || string(data) != "12345678" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := bounded.File(name, 7); err == nil || data != nil || !strings.Contains(err.Error(), "larger than the 7 bytes") {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := bounded.File(filepath.Join(dir, "none"), 7); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := bounded.File(dir, 7); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Error(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	if _, err := bounded.File(pipe, 7); err == nil { // and it did not wait for a writer
		t.Error("a pipe was read")
	}
}

// A file whose size says nothing is bounded by what is read of it.
func TestFileWithoutSize(t *testing.T) {
	const name = "/proc/self/status"
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Skip("no file of unknown size here")
	}
	if _, err := bounded.File(name, 10); err == nil || !strings.Contains(err.Error(), "10 bytes") {
		t.Error(err)
	}
}

// A pipe that comes in a file's place while it is being opened is not waited for.
func TestFileReplaced(t *testing.T) {
	dir := t.TempDir()
	plain, pipe, name := filepath.Join(dir, "plain"), filepath.Join(dir, "pipe"), filepath.Join(dir, "name")
	if err := os.WriteFile(plain, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	put := func(what string) error {
		if err := os.Link(what, name+".new"); err != nil {
			return err
		}
		return os.Rename(name+".new", name)
	}
	if err := put(plain); err != nil {
		t.Fatal(err)
	}
	stop, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			if err := put([]string{pipe, plain}[i%2]); err != nil {
				swapped <- err
				return
			}
		}
	}()
	read := make(chan int, 1)
	go func() {
		plain := 0
		for range 5000 {
			if data, err := bounded.File(name, 8); err == nil && string(data) == "12345678" {
				plain++
			} else if err == nil {
				t.Errorf("read %q", data)
			}
		}
		read <- plain
	}()
	select {
	case n := <-read:
		if n == 0 {
			t.Error("the plain file was never read")
		}
	case <-time.After(20 * time.Second):
		t.Error("a pipe is waited for")
	}
	close(stop)
	if err := <-swapped; err != nil {
		t.Error(err)
	}
}
