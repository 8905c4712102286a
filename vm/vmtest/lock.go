package vmtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"refbox/vm/image"
)

// Host makes a test one of real machines: it is skipped under -short, and where the
// host lacks something of needs; other such tests wait until it has ended. The
// answer is the user's cache folder, whose image and prepared states it may use.
func Host(t testing.TB, needs []image.Need) (cache string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real machines: skipped under -short")
	}
	if len(needs) > 0 {
		t.Skipf("this host lacks %v", needs)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("no cache folder for images: ", err)
	}
	Alone(t)
	return filepath.Join(cache, "refbox")
}

// Alone keeps other tests that run real machines, in any process on this host,
// waiting until the test has ended, and waits for theirs to end.
func Alone(t testing.TB) {
	t.Helper()
	// Opened for reading, as another user may have made it.
	name := filepath.Join(os.TempDir(), "refbox-real.lock")
	l, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		l, err = os.OpenFile(name, os.O_RDONLY|os.O_CREATE, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	lock := func(how int) error {
		for {
			if err := syscall.Flock(int(l.Fd()), how); !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	}
	if lock(syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return
	}
	t.Log("waiting for other tests that run real machines")
	if err := lock(syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}
