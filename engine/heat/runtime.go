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

// folderPrefix begins the name of each heat's folders, in the folder for sockets
// and in that for disks.
const folderPrefix = "refbox-"

// runtimeBase is where a heat's sockets and passwords live.
func (c Config) runtimeBase() string {
	return cmp.Or(c.Runtime, os.Getenv("XDG_RUNTIME_DIR"), os.TempDir())
}

// disksBase is where the machines' disks live.
func (c Config) disksBase() string { return cmp.Or(c.Disks, c.runtimeBase()) }

// ownFolder makes a private folder for one heat. It is locked until leave, which
// removes it, so that Sweep knows it from one whose owner died.
func ownFolder(base string) (dir string, leave func(), err error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", nil, fmt.Errorf("a folder for the heat: %w", err)
	}
	for {
		if dir, err = os.MkdirTemp(base, folderPrefix); err != nil {
			return "", nil, fmt.Errorf("a folder for the heat: %w", err)
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
			return "", nil, fmt.Errorf("a folder for the heat, %s: %w", dir, err)
		}
	}
}

// Sweep removes what heats whose process died left in a folder that was one's
// Runtime or Disks. What belongs to living ones is left alone.
func Sweep(base string) error {
	entries, err := filepath.Glob(filepath.Join(base, folderPrefix+"*"))
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

// startError is why a seat's machines did not start.
func (s *seat) startError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("start the machines: there is no room for their disks in %s; free some space there, or set XDG_CACHE_HOME to a folder on a larger disk: %w",
			s.heat.cfg.disksBase(), err)
	}
	return fmt.Errorf("start the machines: %w", err)
}
