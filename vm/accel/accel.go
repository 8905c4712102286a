// Package accel chooses how machines are accelerated, by trying.
//
// A /dev/kvm that is there proves nothing: on hosts that are machines
// themselves it may be missing, forbidden, or so slow that a guest never boots
// (reference/machines.md 2b). So a tiny guest of ours is booted under KVM with
// a deadline; if it does what a kernel's start does, and says so in time, KVM
// is used, else TCG. The verdict is cached for the boot, the kernel, the QEMU
// and the processor that it was reached with. It is no proof: whoever boots a
// real guest watches over that boot too.
package accel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
	"refbox/vm/child"
)

// Accel is a way to run machines.
type Accel struct {
	Name string `json:"name"` // "kvm" or "tcg", for -accel
	CPU  string `json:"cpu"`  // for -cpu
	Why  string `json:"why"`  // one sentence, for provenance and doctor
}

// Machine is the -M that the probe boots; a verdict holds for machines like it.
const Machine = "q35,smm=off,vmport=off,sata=off,usb=off"

// deadline is for one probe. A working KVM needs a tenth of it.
const deadline = time.Second

// kvmCPUs are tried in order; the second is for hosts whose own processor KVM
// cannot pass on.
var kvmCPUs = []string{"host", "qemu64"}

// Choose returns the accelerator for the QEMU at that path ("" finds it),
// trying it when no verdict is cached in cacheDir. It takes at most about two
// seconds. The only errors are the context's and vm.ErrMissing, for want of
// QEMU.
func Choose(ctx context.Context, cacheDir, qemu string) (Accel, error) {
	if qemu == "" {
		qemu = "qemu-system-x86_64"
	}
	path, err := exec.LookPath(qemu)
	if err != nil {
		return Accel{}, fmt.Errorf("%w: %s: run refbox doctor --fix, or apt-get install qemu-system-x86", vm.ErrMissing, qemu)
	}
	if err := usable("/dev/kvm"); err != nil {
		return Accel{Name: "tcg", CPU: "qemu64", Why: err.Error()}, nil
	}
	file := filepath.Join(cacheDir, "accel", cacheKey(path)+".json")
	if a, err := recall(file); err == nil {
		return a, nil
	}
	a, err := try(ctx, path)
	if err != nil {
		return Accel{}, err
	}
	_ = remember(file, a) // it is only tried again
	return a, nil
}

// usable tells why a KVM device cannot be opened, or nil.
func usable(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	switch {
	case err == nil:
		_ = f.Close()
		return nil
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s is closed to this user: join the group kvm for faster machines", device)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", device)
	}
	return fmt.Errorf("%s does not open: %w", device, err)
}

// try boots the probe under KVM with each processor until one passes.
func try(ctx context.Context, qemu string) (Accel, error) {
	var whys []string
	for _, cpu := range kvmCPUs {
		took, err := probe(ctx, qemu, "kvm", cpu, deadline)
		if err == nil {
			return Accel{Name: "kvm", CPU: cpu, Why: fmt.Sprintf("a probe guest booted under KVM in %d ms", took.Milliseconds())}, nil
		}
		if ctx.Err() != nil {
			return Accel{}, fmt.Errorf("choose the acceleration: %w", context.Cause(ctx))
		}
		whys = append(whys, fmt.Sprintf("-cpu %s: %v", cpu, err))
		if errors.Is(err, errDeadline) {
			break // another processor would be as slow
		}
	}
	return Accel{Name: "tcg", CPU: "qemu64", Why: "KVM did not boot a probe guest (" + strings.Join(whys, "; ") + ")"}, nil
}

var errDeadline = errors.New("not done in time")

// probe boots the probe guest and returns how long it took, or why it failed.
func probe(ctx context.Context, qemu, accel, cpu string, limit time.Duration) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "refbox-probe-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	kernel := filepath.Join(dir, "probe")
	if err := os.WriteFile(kernel, probeELF(), 0o600); err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errDeadline)
	defer cancel()
	cmd := exec.Command(qemu, "-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", "-M", Machine, "-accel", accel, "-cpu", cpu, "-smp", "1", "-m", "64",
		"-kernel", kernel, "-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=4", exitPort))
	ended := make(chan struct{})
	start := time.Now()
	if err := child.Start(cmd, func() { close(ended) }); err != nil {
		return time.Since(start), fmt.Errorf("QEMU failed: %w", err)
	}
	select {
	case <-ended:
	case <-limited.Done():
		_ = cmd.Process.Kill() // it may have ended just now
		<-ended
	}
	took := time.Since(start)
	switch {
	case cmd.ProcessState.ExitCode() == passed:
		return took, nil
	case limited.Err() != nil:
		return took, fmt.Errorf("%w: %v", context.Cause(limited), limit)
	case cmd.ProcessState.Success():
		return took, errors.New("QEMU ended before the guest did")
	}
	return took, fmt.Errorf("QEMU failed: %v", cmd.ProcessState)
}

// cacheKey is a hash of what a verdict depends on.
func cacheKey(qemu string) string {
	h := sha256.New()
	h.Write(probeELF())
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		fmt.Fprintf(h, "kernel %s %s\n", unix.ByteSliceToString(uts.Release[:]), unix.ByteSliceToString(uts.Version[:]))
	}
	// A host may be moved, or its KVM set up otherwise, from one boot to the next.
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		fmt.Fprintf(h, "boot %s\n", id)
	}
	if real, err := filepath.EvalSymlinks(qemu); err == nil {
		if st, err := os.Stat(real); err == nil {
			fmt.Fprintf(h, "qemu %s %d %d\n", real, st.Size(), st.ModTime().UnixNano())
		}
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if strings.HasPrefix(line, "model name") || strings.HasPrefix(line, "stepping") || strings.HasPrefix(line, "microcode") {
				fmt.Fprintln(h, line)
			}
			if strings.TrimSpace(line) == "" {
				break // one processor tells
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

func recall(file string) (Accel, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Accel{}, err
	}
	var a Accel
	if err := json.Unmarshal(data, &a); err != nil {
		return Accel{}, err
	}
	if a.Name != "kvm" && a.Name != "tcg" || a.CPU == "" {
		return Accel{}, errors.New("not a verdict")
	}
	return a, nil
}

func remember(file string, a Accel) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".verdict-")
	if err != nil {
		return err
	}
	_, werr := temp.Write(append(data, '\n'))
	if err := errors.Join(werr, temp.Close()); err != nil {
		_ = os.Remove(temp.Name())
		return err
	}
	return os.Rename(temp.Name(), file)
}
