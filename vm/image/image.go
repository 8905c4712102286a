// Package image builds and keeps the guest image that machines boot.
//
// It hides how: Debian packages through the host's own apt sources, a root file
// system made without mounting anything, an initrd made here. It works for root
// and for a user with subordinate ids. An image is kept in the cache under the
// hash of its recipe, appears there whole or not at all, and two processes never
// build it at once. An arena may ask for further Debian packages: each set of them
// is an image of its own beside the plain one.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	guestassets "refbox/assets/guest"
	"refbox/vm"
)

// Image is a built image. The files are never written to again.
type Image struct {
	Kernel        string `json:"kernel"`  // path
	Initrd        string `json:"initrd"`  // path
	Disk          string `json:"disk"`    // path; an ext4 file system without a partition table
	DiskFormat    string `json:"format"`  // "raw"
	DiskMiB       int    `json:"diskMiB"` // the least size of a machine's disk
	Digest        string `json:"digest"`  // hex SHA-256 over the three files' own
	KernelVersion string `json:"kernelVersion"`
	// Packages has the version of every Debian package in the image: its lock.
	// It is also kept as packages.txt beside the image.
	Packages map[string]string `json:"packages"`
}

// Cmdline is the kernel command line that the image is made for.
const Cmdline = "console=ttyS0 net.ifnames=0 mitigations=off quiet systemd.show_status=1 panic=3"

// diskMiB is the size of the base: small, as a machine's disk may be larger but
// not smaller. The content takes about a third. With further packages it is the
// least; see diskFor.
const diskMiB = 512

// needMiB is what a build needs free, its peak: the archive, the tree and the
// disk side by side; needPackagesMiB with further packages.
const (
	needMiB         = 700
	needPackagesMiB = 3000
)

// diskFor is the size of the disk for an archive of so many bytes: its content,
// what the file system and its journal take, and room to boot and be set up in.
func diskFor(archive int64) int {
	mib := int(archive>>20)*5/4 + 128
	return max(diskMiB, (mib+127)/128*128)
}

// furtherPackages are the packages of a set that are not the recipe's own, sorted.
func furtherPackages(packages []string) ([]string, error) {
	var out []string
	for _, p := range packages {
		if err := vm.CheckPackage(p); err != nil {
			return nil, err
		}
		if !slices.Contains(out, p) && !slices.Contains(guestassets.Packages(), p) {
			out = append(out, p)
		}
	}
	if len(out) > vm.MaxPackages {
		return nil, fmt.Errorf("%d packages: an image takes at most %d beside its own", len(out), vm.MaxPackages)
	}
	slices.Sort(out)
	return out, nil
}

const manifestName = "image.json"

// Key is the name of the current recipe's image in the cache: a hash of all
// that this program puts into it. The packages' versions are not known before
// it is built; they are in Image.Digest. Packages are Debian's, beside the
// recipe's own; their order does not matter.
func Key(packages []string) (string, error) {
	further, err := furtherPackages(packages)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	err = fs.WalkDir(guestassets.Recipe(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(guestassets.Recipe(), path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", path, len(data))
		h.Write(data)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the image's recipe: %w", err)
	}
	suite, err := hostSuite()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "suite %s\ndisk %d\nbuilder %d\n%q\n", suite, diskMiB, builderVersion, bootstrapOptions)
	if len(further) > 0 {
		fmt.Fprintf(h, "packages %q\n%s", further, guestassets.Services)
	}
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}

// Cached returns the image for the current recipe and the packages beside its own
// if the cache has it; an error that Is fs.ErrNotExist says that it does not.
func Cached(cacheDir string, packages []string) (Image, error) {
	key, err := Key(packages)
	if err != nil {
		return Image{}, err
	}
	return load(filepath.Join(cacheDir, "image", key))
}

// Ensure returns the image for the current recipe and the packages beside its own,
// building it when the cache lacks it, which takes about half a minute, with
// packages longer. None of the packages' services is enabled in it. An error that
// Is vm.ErrMissing names what to install. When ctx ends, the build ends within
// moments and leaves nothing.
func Ensure(ctx context.Context, cacheDir string, packages []string, report vm.Report) (Image, error) {
	if report == nil {
		report = func(string, float64) {}
	}
	further, err := furtherPackages(packages)
	if err != nil {
		return Image{}, err
	}
	key, err := Key(further)
	if err != nil {
		return Image{}, err
	}
	root, err := filepath.Abs(filepath.Join(cacheDir, "image"))
	if err != nil {
		return Image{}, fmt.Errorf("the cache folder %s: %w", cacheDir, err)
	}
	dir := filepath.Join(root, key)
	img, err := load(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return img, err
	}
	if missing := Missing(); len(missing) > 0 {
		return Image{}, missingError(missing)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return Image{}, place(root, err)
	}
	unlock, err := lock(ctx, filepath.Join(root, ".lock"), func() {
		report("wait for another process that builds the image", -1)
	})
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if img, err := load(dir); !errors.Is(err, fs.ErrNotExist) {
		return img, err // built while we waited
	}
	sweep(root)
	if err := roomFor(root, needed(further)); err != nil {
		return Image{}, err
	}
	work, err := os.MkdirTemp(root, tempPrefix)
	if err != nil {
		return Image{}, place(root, err)
	}
	defer removeTree(work)
	if err := os.Chmod(work, 0o755); err != nil { // subordinate ids pass through it
		return Image{}, place(work, err)
	}
	if err := build(ctx, work, further, report); err != nil {
		if ctx.Err() != nil {
			return Image{}, fmt.Errorf("build the guest image: %w", context.Cause(ctx))
		}
		return Image{}, fmt.Errorf("build the guest image: %w", err)
	}
	if err := os.Rename(filepath.Join(work, "out"), dir); err != nil {
		return Image{}, place(dir, err)
	}
	report("guest image ready", 1)
	return load(dir)
}

func needed(further []string) uint64 {
	if len(further) > 0 {
		return needPackagesMiB
	}
	return needMiB
}

const tempPrefix = "building-"

// sweep removes what a build that was killed left. The caller holds the lock,
// so nobody builds.
func sweep(root string) {
	left, _ := filepath.Glob(filepath.Join(root, tempPrefix+"*"))
	for _, dir := range left {
		removeTree(dir)
	}
}

// load reads a built image. It is whole if its manifest is there, which is
// written last, before the folder gets its name.
func load(dir string) (Image, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return Image{}, err
	}
	var img Image
	if err := json.Unmarshal(data, &img); err != nil {
		return Image{}, fmt.Errorf("%s: %w; remove the folder to have it built anew",
			filepath.Join(dir, manifestName), err)
	}
	for _, p := range []*string{&img.Kernel, &img.Initrd, &img.Disk} {
		*p = filepath.Join(dir, filepath.Base(*p))
		if st, err := os.Stat(*p); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
			return Image{}, fmt.Errorf("%s is damaged; remove the folder %s to have it built anew", *p, dir)
		}
	}
	return img, nil
}

// seal writes the manifest and the lock of a built image in dir and makes all
// of it durable.
func seal(dir, kernelVersion string, disk int, packages map[string]string, lockText string) error {
	img := Image{
		Kernel: "vmlinuz", Initrd: "initrd", Disk: "disk.raw",
		DiskFormat: "raw", DiskMiB: disk, KernelVersion: kernelVersion, Packages: packages,
	}
	all := sha256.New()
	for _, name := range []string{img.Kernel, img.Initrd, img.Disk} {
		sum, err := digestFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(all, "%s %s\n", name, sum)
	}
	img.Digest = hex.EncodeToString(all.Sum(nil))
	if err := writeSynced(filepath.Join(dir, "packages.txt"), []byte(lockText)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(img, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", manifestName, err)
	}
	return writeSynced(filepath.Join(dir, manifestName), append(data, '\n'))
}

// digestFile hashes a file and makes it durable and read-only.
func digestFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := errors.Join(f.Sync(), f.Chmod(0o444)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return place(path, err)
	}
	_, werr := f.Write(data)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return place(path, err)
	}
	return nil
}

// parsePackages reads lines of "name version".
func parsePackages(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			m[name] = version
		}
	}
	return m
}
