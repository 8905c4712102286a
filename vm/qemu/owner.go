package qemu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerFile marks a directory as a running cluster's. Its owner holds a lock on
// it; the kernel drops the lock when the owner dies, however it dies.
const ownerFile = ".refbox-owner"

// claim marks dir as ours until the returned file is closed.
func claim(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claiming the cluster's directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("claiming the cluster's directory: %s is in use by another cluster", dir)
	}
	return f, nil
}

// Sweep removes what dead owners left under runtimeDir: every directory, at
// most three levels down, that a cluster was started in and whose owner no
// longer lives. Machines need no sweeping, they die with their owner. It returns
// the directories removed; one that cannot be removed is an error, and the
// others are still swept.
func Sweep(runtimeDir string) (removed []string, err error) {
	var problems []error
	walkErr := filepath.WalkDir(runtimeDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if e.IsDir() {
			rel, _ := filepath.Rel(runtimeDir, path)
			if strings.Count(rel, string(filepath.Separator)) >= 3 {
				return filepath.SkipDir
			}
			return nil
		}
		if e.Name() != ownerFile || !e.Type().IsRegular() {
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			problems = append(problems, err)
			return nil
		}
		defer f.Close()
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return nil // its owner lives
		}
		dir := filepath.Dir(path)
		if dir == filepath.Clean(runtimeDir) {
			return nil // never the runtime directory itself
		}
		if err := os.RemoveAll(dir); err != nil {
			problems = append(problems, err)
			return nil
		}
		removed = append(removed, dir)
		return filepath.SkipDir
	})
	if walkErr != nil && !errors.Is(walkErr, fs.ErrNotExist) {
		problems = append(problems, walkErr)
	}
	if len(problems) > 0 {
		return removed, fmt.Errorf("sweeping %s: %w", runtimeDir, errors.Join(problems...))
	}
	return removed, nil
}
