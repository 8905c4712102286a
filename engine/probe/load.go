package probe

import (
	"fmt"
	"io/fs"
	"path"
)

// Load reads a verifier from an arena package: a .star file is Starlark, any
// other an executable (design: section 5).
func Load(fsys fs.FS, name string) (Verifier, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("verifier: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxExecutable {
		return nil, fmt.Errorf("verifier %s: not a regular file of at most %d MiB", name, maxExecutable>>20)
	}
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("verifier: %w", err)
	}
	if path.Ext(name) == ".star" {
		return loadStarlark(name, src)
	}
	beside, err := siblings(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("verifier %s: what lies beside it: %w", name, err)
	}
	return loadCommand(name, src, beside), nil
}

// siblings are the files in a file's folder, which an executable may use: that is
// all of the package that it is given.
func siblings(fsys fs.FS, name string) (map[string][]byte, error) {
	entries, err := fs.ReadDir(fsys, path.Dir(name))
	if err != nil {
		return nil, err
	}
	out, left := map[string][]byte{}, int64(maxExecutable)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || e.Name() == path.Base(name) {
			continue
		}
		if left -= info.Size(); left < 0 {
			return nil, fmt.Errorf("more than %d MiB", maxExecutable>>20)
		}
		if out[e.Name()], err = fs.ReadFile(fsys, path.Join(path.Dir(name), e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const maxExecutable = 16 << 20
