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
	return loadCommand(name, src), nil
}

const maxExecutable = 16 << 20
