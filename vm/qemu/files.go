package qemu

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// maxFiles bounds what a spec may lay over a guest's root.
const maxFiles = 256 << 20

// filesTar is a machine's Files as the tar stream that the guest unpacks.
type filesTar struct {
	data   []byte
	digest string
}

var errFilesTooBig = errors.New("the files to lay over the guest's root exceed 256 MiB")

// packFiles reads fsys, which may be nil. The same content gives the same bytes.
// Directories are left out: the guest makes those it lacks and keeps the modes
// of those it has.
func packFiles(fsys fs.FS) (filesTar, error) { return packWithin(fsys, maxFiles) }

func packWithin(fsys fs.FS, limit int) (filesTar, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if fsys != nil {
		err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if !e.Type().IsRegular() {
				return fmt.Errorf("%s is not a regular file", name)
			}
			data, err := readBounded(fsys, name, limit-buf.Len())
			if err != nil {
				return err
			}
			h := &tar.Header{
				Name: name, Size: int64(len(data)), Mode: int64(fileMode(name, data)), Format: tar.FormatPAX,
				ModTime: time.Unix(1700000000, 0), // any: the same content must give the same key
			}
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			_, err = w.Write(data)
			return err
		})
		if err != nil {
			return filesTar{}, fmt.Errorf("packing the machine's files: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return filesTar{}, fmt.Errorf("packing the machine's files: %w", err)
	}
	sum := sha256.Sum256(buf.Bytes())
	return filesTar{data: buf.Bytes(), digest: hex.EncodeToString(sum[:])}, nil
}

func readBounded(fsys fs.FS, name string, limit int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(max(limit, 0))+1))
	if err == nil && len(data) > limit {
		err = errFilesTooBig
	}
	return data, err
}

// fileMode is the rule of vm.MachineSpec.Files.
func fileMode(name string, data []byte) fs.FileMode {
	dirs := strings.Split(path.Dir(name), "/")
	if bytes.HasPrefix(data, []byte("#!")) || slices.Contains(dirs, "bin") || slices.Contains(dirs, "sbin") {
		return 0o755
	}
	return 0o644
}
