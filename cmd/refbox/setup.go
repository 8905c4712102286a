package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"refbox/engine/agent"
	"refbox/engine/control"
	"refbox/engine/heat"
	"refbox/vm"
	"refbox/vm/image"
	"refbox/vm/qemu"
)

// needs are the host tools that real machines need and this host lacks.
func needs() []image.Need {
	var out []image.Need
	for _, n := range slices.Concat(qemu.Needs(), image.Missing()) {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// packagesOf are the Debian packages that supply what is needed, once each.
func packagesOf(needs []image.Need) []string {
	var out []string
	for _, n := range needs {
		if !slices.Contains(out, n.Package) {
			out = append(out, n.Package)
		}
	}
	slices.Sort(out)
	return out
}

// installTools offers to install what is missing. It asks unless yes is set or
// there is nobody to ask and no need to (root without a terminal).
func installTools(ctx context.Context, a *app, yes bool) error {
	missing := needs()
	if len(missing) == 0 {
		return nil
	}
	packages := packagesOf(missing)
	command := aptCommand("install", append([]string{"--no-install-recommends"}, packages...)...)
	remedy := strings.Join(command, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: %s; this host has no apt-get: install these tools by its own means", vm.ErrMissing, toolNames(missing))
	}
	interactive := isTerminal(a.in) && isTerminal(a.err)
	switch {
	case yes, !interactive && os.Geteuid() == 0:
	case !interactive:
		return fmt.Errorf("%w: %s; run: %s", vm.ErrMissing, toolNames(missing), remedy)
	default:
		fmt.Fprintf(a.err, "Real machines need what this host lacks: %s.\n  %s\nRun this now? [Y/n] ", toolNames(missing), remedy)
		ok, err := confirm(ctx, a)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: %s; run: %s", vm.ErrMissing, toolNames(missing), remedy)
		}
	}
	p := newProgress(a)
	p.report("reading the package lists", -1)
	if err := apt(ctx, aptCommand("update")); err != nil {
		p.done()
		return err
	}
	p.report("installing "+strings.Join(packages, " "), -1)
	err := apt(ctx, command)
	p.done()
	if err != nil {
		return err
	}
	if still := needs(); len(still) > 0 {
		return fmt.Errorf("%w: %s, even after: %s", vm.ErrMissing, toolNames(still), remedy)
	}
	return nil
}

func toolNames(needs []image.Need) string {
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = n.Tool
	}
	return strings.Join(names, ", ")
}

// aptCommand is apt-get, through sudo unless we are root.
func aptCommand(verb string, args ...string) []string {
	command := []string{"apt-get", verb, "-y", "-q"}
	if os.Geteuid() != 0 {
		command = append([]string{"sudo"}, command...)
	}
	return append(command, args...)
}

// apt runs a command of apt's; its output is shown only when it fails.
func apt(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdin = os.Stdin // sudo may ask
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%w: %s failed: %w\n%s", vm.ErrMissing, strings.Join(command, " "), err, strings.Join(lines[max(0, len(lines)-8):], "\n"))
}

// confirm reads an answer; enter means yes.
func confirm(ctx context.Context, a *app) (bool, error) {
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && line == "" {
			line = "n"
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return false, ctx.Err()
	case s := <-answer:
		s = strings.ToLower(strings.TrimSpace(s))
		return s == "" || s == "y" || s == "yes", nil
	}
}

// driver makes the driver of real machines, with what it needs in place: the image
// with these packages, too.
func driver(ctx context.Context, a *app, yes bool, packages []string) (vm.Driver, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	if err := installTools(ctx, a, yes); err != nil {
		return nil, err
	}
	p := newProgress(a)
	defer p.done()
	if _, err := image.Ensure(ctx, cache, packages, p.report); err != nil {
		return nil, err
	}
	return qemu.New(qemu.Config{CacheDir: cache}), nil
}

// prepareRuntime makes the folders for sockets and for the machines' disks, which
// it returns, and removes from them what a killed refbox left, before anything new
// is made.
func prepareRuntime() (runtime, disks string, err error) {
	runtime = runtimeDir()
	if disks, err = disksDir(); err != nil {
		return "", "", err
	}
	for _, f := range []struct{ what, dir, variable string }{
		{"sockets", runtime, "XDG_RUNTIME_DIR"}, {"the machines' disks", disks, "XDG_CACHE_HOME"},
	} {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return "", "", environmentError(fmt.Errorf("the folder for %s: %w; set %s to a folder of yours with room", f.what, err, f.variable))
		}
		if !oursAlone(f.dir) {
			return "", "", environmentError(fmt.Errorf("the folder for %s, %s, is no folder that only you can write to: others could reach the referee's desk and the machines' disks; remove it, or set %s to a folder of yours",
				f.what, f.dir, f.variable))
		}
	}
	var swept []error
	for _, dir := range []string{runtime, disks} { // disks were beside the sockets once
		_, err := qemu.Sweep(dir)
		swept = append(swept, err, heat.Sweep(dir))
	}
	if err := errors.Join(append(swept, control.Sweep(runtime))...); err != nil {
		// It is in nobody's way but the disk's.
		slog.Warn("what a killed refbox left could not be removed", "error", err)
	}
	if n := agent.SweepPrograms(); n > 0 {
		slog.Warn("players' programs of a killed refbox were ended", "processes", n)
	}
	return runtime, disks, nil
}

// oursAlone tells whether a folder is this user's, and no one else may write to
// it: under a shared /tmp somebody may have made it before us.
func oursAlone(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
