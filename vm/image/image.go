// Package image builds and keeps the guest image that machines boot.
//
// It hides how: Debian packages through the host's own apt sources, a root file
// system made without mounting anything, an initrd made here. It works for root
// and for a user with subordinate ids. An image is kept in the cache under the
// hash of its recipe, appears there whole or not at all, and two processes never
// build it at once.
package image

import (
	"context"
	"errors"

	"refbox/vm"
)

// Image is a built image. The files are never written to.
type Image struct {
	Kernel        string // path
	Initrd        string // path
	Disk          string // path; an ext4 file system without a partition table
	DiskFormat    string // "raw"
	DiskMiB       int    // the least size of a machine's disk
	Digest        string // hex SHA-256 over the three files
	KernelVersion string
	Packages      map[string]string // version by Debian package
}

// Cmdline is the kernel command line that the image is made for.
const Cmdline = "console=ttyS0 net.ifnames=0 mitigations=off quiet systemd.show_status=1 panic=3"

// Need is a host tool that is missing.
type Need struct {
	Tool    string // e.g. "mmdebstrap"
	Package string // the Debian package that supplies it
}

// Missing lists the host tools that building an image needs and lacks.
func Missing() []Need { return nil }

// Ensure returns the image for the current recipe, building it when the cache
// lacks it. An error that Is vm.ErrMissing names what to install.
func Ensure(ctx context.Context, cacheDir string, report vm.Report) (Image, error) {
	return Image{}, errors.New("not yet")
}
