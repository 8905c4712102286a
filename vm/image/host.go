package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
)

// Need is a host tool that is missing.
type Need struct {
	Tool    string // e.g. "mmdebstrap"
	Package string // the Debian package that supplies it
}

// Missing lists the host tools that building an image needs and lacks.
func Missing() []Need {
	needs := []Need{
		{"mmdebstrap", "mmdebstrap"},
		{"apt-get", "apt"},
		{"dpkg-deb", "dpkg"},
		{"tar", "tar"},
		{"mke2fs", "e2fsprogs"},
		{"xz", "xz-utils"},
	}
	if os.Geteuid() != 0 {
		needs = append(needs, Need{"newuidmap", "uidmap"}, Need{"unshare", "util-linux"})
	}
	var missing []Need
	for _, n := range needs {
		if _, err := lookTool(n.Tool); err != nil {
			missing = append(missing, n)
		}
	}
	return missing
}

func missingError(missing []Need) error {
	var tools, packages []string
	for _, n := range missing {
		tools = append(tools, n.Tool)
		packages = append(packages, n.Package)
	}
	return fmt.Errorf("%w: %s, to build the guest image: run refbox doctor --fix, or apt-get install %s",
		vm.ErrMissing, strings.Join(tools, ", "), strings.Join(packages, " "))
}

// lookTool finds a tool also where a plain user's PATH does not lead.
func lookTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", vm.ErrMissing, name)
}

// toolEnv is the environment of the tools: as ours, in plain English, with the
// administrator's folders in PATH.
func toolEnv(more ...string) []string {
	env := append(os.Environ(), "LC_ALL=C",
		"PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
	return append(env, more...)
}

// hostSuite is the Debian release that the host runs; its packages make the
// image.
func hostSuite() (string, error) {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("%w: a Debian host, to build the guest image: %w", vm.ErrMissing, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[k] = strings.Trim(v, `"'`)
		}
	}
	if fields["ID"] != "debian" || fields["VERSION_CODENAME"] == "" {
		return "", fmt.Errorf("%w: a Debian host (this is %q), as the guest image is built from the host's Debian packages",
			vm.ErrMissing, fields["PRETTY_NAME"])
	}
	return fields["VERSION_CODENAME"], nil
}

// subordinateIDs tells whether the user may map further user ids, which
// building as a plain user rests on.
func subordinateIDs() error {
	me, err := user.Current()
	if err != nil {
		return fmt.Errorf("who runs this: %w", err)
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		found := false
		for line := range strings.Lines(string(data)) {
			name, _, _ := strings.Cut(line, ":")
			found = found || name == me.Username || name == me.Uid
		}
		if !found {
			return fmt.Errorf("%w: a range for %s in %s: run usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s as root",
				vm.ErrMissing, me.Username, file, me.Username)
		}
	}
	return nil
}

// lock takes the exclusive lock on a file; waiting is called once if that is
// not possible at once. A lock ends with its process.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, place(path, err)
	}
	// Waiting for a lock cannot be interrupted by a context, so it is asked for
	// again and again.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if first {
			waiting()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for %s: %w", path, context.Cause(ctx))
		}
	}
}

// roomFor fails when dir's file system has less than that free.
func roomFor(dir string, mib uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	free := st.Bavail * uint64(st.Bsize) >> 20
	if free < mib {
		return fmt.Errorf("%w: %d MiB free, %d MiB needed", fullError(dir), free, mib)
	}
	return nil
}

// fullError names the folder whose disk is full, and what to do.
func fullError(dir string) error {
	return fmt.Errorf("%w in %s; free some, or set XDG_CACHE_HOME to a folder on a larger disk", syscall.ENOSPC, dir)
}

// place wraps an error of writing at path.
func place(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fullError(filepath.Dir(path))
	}
	return fmt.Errorf("write %s: %w", path, err)
}

// removeTree removes a folder that may hold files of subordinate ids. One that
// something is mounted in stays: removing would reach through the mount.
func removeTree(dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), " "+strings.ReplaceAll(dir, " ", `\040`)+"/") {
		return
	}
	if os.RemoveAll(dir) == nil || os.Geteuid() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// What stays is removed by the next build's sweep.
	_ = exec.CommandContext(ctx, "unshare", "--map-root-user", "--map-auto", "--", "rm", "-rf", "--", dir).Run()
}
