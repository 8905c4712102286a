// Package accel chooses how machines are accelerated, by trying.
//
// A /dev/kvm that is there proves nothing: on hosts that are machines
// themselves it may be missing, forbidden, or so slow that a guest never boots
// (reference/machines.md 2b). So a tiny guest of ours is booted under KVM with
// a deadline; if it does what a kernel's start does, and says so in time, KVM
// is used, else TCG. The verdict is cached for the kernel, QEMU and processor
// it was reached with.
package accel

import (
	"context"
	"errors"
)

// Accel is a way to run machines.
type Accel struct {
	Name string `json:"name"` // "kvm" or "tcg", for -accel
	CPU  string `json:"cpu"`  // for -cpu
	Why  string `json:"why"`  // one sentence, for provenance and doctor
}

// Choose returns the accelerator for the QEMU at that path, trying it when no
// verdict is cached in cacheDir. It takes at most about two seconds. The only
// errors are the context's and vm.ErrMissing, for want of QEMU.
func Choose(ctx context.Context, cacheDir, qemu string) (Accel, error) {
	return Accel{}, errors.New("not yet")
}
