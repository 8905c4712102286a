package accel

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"refbox/vm"
)

func TestProbeELFIsWellFormed(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(probeELF()))
	if err != nil {
		t.Fatal(err)
	}
	if f.Machine != elf.EM_X86_64 || f.Entry != loadAt || len(f.Progs) != 2 {
		t.Fatalf("header: %+v", f.FileHeader)
	}
	code := make([]byte, f.Progs[0].Filesz)
	if _, err := f.Progs[0].ReadAt(code, 0); err != nil || !bytes.Equal(code, probeCode()) {
		t.Errorf("the code segment is not the code: %v", err)
	}
	if len(code) > tablesAt-loadAt-0x1000 {
		t.Errorf("%d bytes of code run into what they write", len(code))
	}
}

func qemu(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real machine: skipped under -short")
	}
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	return path
}

// The probe passes where guests do boot: without this, a verdict against KVM
// would mean nothing.
func TestProbePassesUnderTCG(t *testing.T) {
	took, err := probe(t.Context(), qemu(t), "tcg", "qemu64", 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("measured: %v", took)
}

func TestProbeFailures(t *testing.T) {
	path := qemu(t)
	if _, err := probe(t.Context(), path, "tcg", "no-such-processor", 30*time.Second); err == nil || errors.Is(err, errDeadline) {
		t.Errorf("an impossible processor: %v", err)
	}
	if _, err := probe(t.Context(), path, "tcg", "qemu64", time.Millisecond); !errors.Is(err, errDeadline) {
		t.Errorf("an impossible deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := try(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled choice: %v", err)
	}
}

func TestChoose(t *testing.T) {
	path, cache := qemu(t), t.TempDir()
	start := time.Now()
	first, err := Choose(t.Context(), cache, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("measured: %v: %+v", time.Since(start), first)
	if first.Name != "kvm" && first.Name != "tcg" || first.CPU == "" || first.Why == "" {
		t.Errorf("%+v", first)
	}
	start = time.Now()
	again, err := Choose(t.Context(), cache, path)
	if err != nil || again != first {
		t.Errorf("the second choice: %+v, %v", again, err)
	}
	t.Logf("measured: again %v", time.Since(start))
}

func TestChooseWithoutQEMU(t *testing.T) {
	_, err := Choose(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "qemu"))
	if !errors.Is(err, vm.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

func TestUsable(t *testing.T) {
	dir := t.TempDir()
	if err := usable(filepath.Join(dir, "none")); err == nil {
		t.Error("a device that is not there is usable")
	}
	there := filepath.Join(dir, "kvm")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := usable(there); err != nil {
		t.Error(err)
	}
}

func TestVerdictIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accel", "x.json")
	want := Accel{Name: "kvm", CPU: "host", Why: "tried"}
	if err := remember(file, want); err != nil {
		t.Fatal(err)
	}
	if got, err := recall(file); err != nil || got != want {
		t.Errorf("recalled %+v, %v", got, err)
	}
	for _, damaged := range []string{"", "{", `{"name":"magic","cpu":"x"}`, `{"name":"kvm"}`} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := recall(file); err == nil {
			t.Errorf("recalled %+v from %q", got, damaged)
		}
	}
}
