package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	guestassets "refbox/assets/guest"
	"refbox/vm"
)

// builderVersion is raised when this package makes something else of the same
// recipe.
const builderVersion = 1

// bootstrapOptions are mmdebstrap's, measured (reference/machines.md 1).
var bootstrapOptions = []string{
	"--variant=essential",
	"--format=tar",
	// Its cleaning undoes what the recipe sets, and the recipe cleans.
	"--skip=cleanup",
	"--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr",
	"--aptopt=Acquire::Languages \"none\"",
	"--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/info/*",
	"--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/lintian/*",
	"--dpkgopt=path-exclude=/usr/share/i18n/*",
	"--dpkgopt=path-exclude=/usr/share/bug/*",
}

// build makes the image in work/out, with packages beside the recipe's own.
func build(ctx context.Context, work string, packages []string, report vm.Report) error {
	lines, options, err := sources(ctx)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if err := subordinateIDs(); err != nil {
			return err
		}
		if err := roomFor(os.TempDir(), needed(packages)/2); err != nil { // see bootstrap
			return err
		}
	}
	out := filepath.Join(work, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return place(out, err)
	}
	overlay := filepath.Join(work, "overlay.tar")
	if err := writeOverlay(overlay); err != nil {
		return err
	}
	rootfs := filepath.Join(work, "rootfs.tar")
	if err := bootstrap(ctx, work, rootfs, overlay, packages, lines, options, report); err != nil {
		return err
	}
	report("make the disk", 0.85)
	disk := diskMiB
	if len(packages) > 0 {
		st, err := os.Stat(rootfs)
		if err != nil {
			return err
		}
		disk = diskFor(st.Size())
	}
	boot, err := makeDisk(ctx, work, rootfs, filepath.Join(out, "disk.raw"), disk)
	if err != nil {
		return err
	}
	report("make the initrd", 0.95)
	initrd, err := boot.initrd(guestassets.Modules(), guestassets.Init)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(out, "initrd"), initrd); err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(out, "vmlinuz"), boot.kernel); err != nil {
		return err
	}
	report("check the image", 0.97)
	return seal(out, boot.version, disk, parsePackages(boot.packages), boot.packages)
}

// writeOverlay makes the archive of what is laid over the guest's root.
func writeOverlay(to string) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	put := func(name string, data []byte) error {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	rootfs := guestassets.Rootfs()
	err := fs.WalkDir(rootfs, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir})
		}
		data, err := fs.ReadFile(rootfs, name)
		if err != nil {
			return err
		}
		return put(name, data)
	})
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: "usr/lib/refbox/", Mode: 0o755, Typeflag: tar.TypeDir})
	}
	if err == nil {
		err = put("usr/lib/refbox/agent.py", guestassets.Agent)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("lay out the guest's files: %w", err)
	}
	return writeSynced(to, buf.Bytes())
}

// bootstrap has mmdebstrap make the archive of the root file system.
func bootstrap(ctx context.Context, work, to, overlay string, packages, lines, options []string, report vm.Report) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return place(to, err)
	}
	defer f.Close()
	mode := "--mode=unshare"
	if os.Geteuid() == 0 {
		mode = "--mode=root"
	}
	include := strings.Join(slices.Concat(guestassets.Packages(), packages), ",")
	args := append([]string{mode, "--include=" + include}, bootstrapOptions...)
	for _, o := range options {
		args = append(args, "--aptopt="+o)
	}
	args = append(args,
		"--customize-hook=tar-in "+shellQuote(overlay)+" /")
	if len(packages) > 0 {
		// Some link their manuals' names, whose folders path-exclude leaves out.
		args = append(args, `--essential-hook=mkdir -p "$1/usr/share/man/man1" "$1/usr/share/man/man7" "$1/usr/share/man/man8"`,
			"--customize-hook="+guestassets.Services)
	}
	args = append(args, "--customize-hook="+guestassets.Customize, "", "-", "-")

	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stdout = f
	cmd.Env = toolEnv()
	if os.Geteuid() == 0 {
		// A plain user's subordinate ids may not be able to pass through the
		// home folder, so there the tree stays in the system's.
		cmd.Env = append(cmd.Env, "TMPDIR="+work)
		if mayMount() {
			// What is mounted in the tree vanishes with the last process that
			// sees it, so removing the tree can never reach the host's /dev.
			cmd.SysProcAttr = ownMounts()
		}
	}
	err = watch(cmd, func(line string) {
		if step, done := bootstrapStep(line); step != "" {
			report(step, done)
		}
	})
	if err != nil {
		return spaceError(fmt.Errorf("mmdebstrap: %w", err), work)
	}
	if err := f.Close(); err != nil {
		return place(to, err)
	}
	return nil
}

// shellQuote quotes for mmdebstrap, which splits the words of its own hooks as a
// shell does.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// bootstrapStep turns a line of mmdebstrap's into progress; the fractions are
// measured.
func bootstrapStep(line string) (step string, done float64) {
	for _, s := range []struct {
		has, step string
		done      float64
	}{
		{"I: running apt-get update", "fetch Debian's package lists", 0.02},
		{"I: downloading packages with apt", "download Debian packages", 0.15},
		{"I: extracting archives", "unpack Debian packages", 0.25},
		{"I: installing essential packages", "install the base system", 0.3},
		{"I: downloading apt", "download Debian packages", 0.4},
		{"I: installing remaining packages", "install the guest's packages", 0.45},
		{"I: running --customize-hook", "trim the guest's system", 0.7},
		{"I: creating tarball", "pack the guest's system", 0.8},
	} {
		if strings.HasPrefix(line, s.has) {
			return s.step, s.done
		}
	}
	return "", 0
}

// guardScript runs a command beside a guard that ends their process group when
// descriptor 3 closes, which is when this process dies, however it does. (A
// parent-death signal would reach the command alone, not what it started.)
const guardScript = `(read -r _ <&3; trap '' TERM; kill -TERM 0; sleep 3; kill -KILL 0) >/dev/null 2>&1 </dev/null &
exec "$@" 3<&-`

// watch runs a command in a process group of its own and hands each line of its
// standard error to seen. When the command's context or this process ends the
// group is asked to end, then made to. The error carries the last lines.
func watch(cmd *exec.Cmd, seen func(string)) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	guard, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	defer guard.Close()
	sh, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	cmd.Args = append([]string{"sh", "-c", guardScript, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = sh
	cmd.ExtraFiles = append([]*os.File{guard}, cmd.ExtraFiles...)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	r, w := io.Pipe()
	cmd.Stderr = w
	last := make(chan []string, 1)
	go func() {
		var tail []string
		scan := bufio.NewScanner(r)
		for scan.Scan() {
			line := strings.TrimSpace(scan.Text())
			if line == "" {
				continue
			}
			seen(line)
			if tail = append(tail, line); len(tail) > 12 {
				tail = tail[1:]
			}
		}
		_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not stop the command
		last <- tail
	}()
	err = cmd.Run()
	_ = w.Close()
	tail := <-last
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the guard, and what was left
	}
	if err != nil {
		return fmt.Errorf("%w: %q", err, strings.Join(tail, "\n"))
	}
	return nil
}

func toolError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %q", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// spaceError finds a full disk in what a tool said.
func spaceError(err error, dir string) error {
	if strings.Contains(err.Error(), "No space left on device") || strings.Contains(err.Error(), "Could not allocate block") {
		return fmt.Errorf("%w (%w)", fullError(dir), err)
	}
	return err
}

// bootFiles is what the archive has under /boot, and its kernel modules.
type bootFiles struct {
	version  string
	kernel   []byte
	busybox  []byte
	packages string
	sums     []byte            // of the referee's agent and what it runs on, as sha256sum writes them
	modules  map[string][]byte // path below lib/modules/<version>
	depends  string            // modules.dep
}

// makeDisk makes a file system of the archive, less /boot and the devices, and
// returns the parts of it that the initrd is made from.
func makeDisk(ctx context.Context, work, rootfs, disk string, mib int) (*bootFiles, error) {
	tree := filepath.Join(work, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, place(tree, err)
	}
	script := `set -e
tar -x -p --numeric-owner --xattrs --xattrs-include='*' -f - -C "$1"
mke2fs -q -t ext4 -d "$1" -m 0 -J size=8 -E lazy_itable_init=0,lazy_journal_init=0,discard -L refbox "$2" "$3M"
rm -rf "$1"`
	args := []string{"sh", "-c", script, "sh", tree, disk, fmt.Sprint(mib)}
	if os.Geteuid() != 0 {
		args = append([]string{"unshare", "--map-root-user", "--map-auto", "--"}, args...)
	}
	in, err := os.Open(rootfs)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = toolEnv()
	r, w := io.Pipe()
	cmd.Stdin = r
	var boot *bootFiles
	var splitErr error
	split := make(chan struct{})
	go func() {
		defer close(split)
		boot, splitErr = splitBoot(in, w)
		_ = w.CloseWithError(splitErr)
	}()
	err = watch(cmd, func(string) {})
	_ = r.CloseWithError(io.ErrClosedPipe) // the splitter ends with the command
	<-split
	if err != nil {
		return nil, spaceError(fmt.Errorf("make the guest's disk: %w", err), work)
	}
	if splitErr != nil {
		return nil, fmt.Errorf("read the root file system: %w", splitErr)
	}
	if boot.version == "" || len(boot.busybox) == 0 || boot.packages == "" || boot.depends == "" || len(boot.sums) == 0 {
		return nil, errors.New("the root file system lacks its kernel, modules, busybox or the agent's sums")
	}
	return boot, nil
}

// splitBoot copies an archive, keeping back what the disk does not need.
func splitBoot(from io.Reader, to io.Writer) (*bootFiles, error) {
	boot := &bootFiles{modules: map[string][]byte{}}
	r, w := tar.NewReader(bufio.NewReaderSize(from, 1<<20)), tar.NewWriter(to)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return boot, w.Close()
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if rest, ok := strings.CutPrefix(name, "boot/"); ok {
			var into *[]byte
			var text []byte
			switch {
			case h.Typeflag != tar.TypeReg:
			case strings.HasPrefix(rest, "vmlinuz-"):
				boot.version, into = strings.TrimPrefix(rest, "vmlinuz-"), &boot.kernel
			case rest == "busybox/bin/busybox" || rest == "busybox/usr/bin/busybox":
				into = &boot.busybox
			case rest == "packages":
				into = &text
			case rest == "sums":
				into = &boot.sums
			}
			if into == nil {
				continue
			}
			if *into, err = io.ReadAll(r); err != nil {
				return nil, err
			}
			if text != nil {
				boot.packages = string(text)
			}
			continue
		}
		if strings.HasPrefix(name, "dev/") {
			continue // the kernel's devtmpfs has them
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if rest, ok := moduleName(name); ok {
			data, err := io.ReadAll(r)
			if err != nil {
				return nil, err
			}
			if rest == "modules.dep" {
				boot.depends = string(data)
			} else {
				boot.modules[rest] = data
			}
			if _, err := w.Write(data); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := io.Copy(w, r); err != nil {
			return nil, err
		}
	}
}

// moduleName is a path's part below its kernel's module folder, for what the
// initrd may need of it.
func moduleName(name string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "usr/"), "lib/modules/")
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "/")
	return rest, ok && (rest == "modules.dep" || strings.HasSuffix(rest, ".ko"))
}
