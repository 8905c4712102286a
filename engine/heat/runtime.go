package heat

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// runtimePrefix begins the name of each heat's folder in the runtime folder.
const runtimePrefix = "refbox-"

// runtimeDir makes a private folder. It is locked until leave, which removes it,
// so that Sweep knows it from one whose owner died.
func runtimeDir(base string) (dir string, leave func(), err error) {
	base = cmp.Or(base, os.Getenv("XDG_RUNTIME_DIR"), os.TempDir())
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, fmt.Errorf("runtime folder: %w", err)
	}
	for {
		if dir, err = os.MkdirTemp(base, runtimePrefix); err != nil {
			return "", nil, fmt.Errorf("runtime folder: %w", err)
		}
		held, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept before it was locked
		}
		if err == nil {
			err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err == nil {
			if _, err = os.Stat(dir); err == nil {
				return dir, func() { os.RemoveAll(dir); held.Close() }, nil
			}
		}
		held.Close()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			os.Remove(dir)
			return "", nil, fmt.Errorf("runtime folder %s: %w", dir, err)
		}
	}
}

// Sweep removes the runtime folders of heats whose process died. Those of living
// ones are left alone.
func Sweep(runtime string) error {
	entries, err := filepath.Glob(filepath.Join(runtime, runtimePrefix+"*"))
	for _, dir := range entries {
		held, openErr := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if openErr != nil {
			continue // gone, or no folder of a heat's
		}
		if syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		held.Close()
	}
	return err
}
