package arena

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"refbox/assets"
)

// libraryNames are the files of the guest library, sorted.
func libraryNames() []string {
	names, err := fs.Glob(assets.Library(), "*")
	if err != nil { // "*" is a valid pattern
		return nil
	}
	return names
}

func (c *checker) library(places []string) {
	c.failIf(len(places) > 64, "guest.library", "must be at most 64")
	for i, at := range places {
		where := fmt.Sprintf("guest.library[%d]", i)
		c.failIf(path.Clean(at) != at || !path.IsAbs(at) || !fs.ValidPath(at[1:]), where, "%s must be where the file is laid on the machines: an absolute path", quote(at))
		c.failIf(!slices.Contains(libraryNames(), path.Base(at)), where, "refbox's library has no file %s (it has %s)", quote(path.Base(at)), strings.Join(libraryNames(), ", "))
		c.failIf(slices.Contains(places[:i], at), where, "names %s twice", quote(at))
	}
}

// library puts what the manifest names of the guest library into the package's FS, as
// if it lay in each machine's guest tree: so machines get it, and hashes hold it. A
// file that the package has at that place wins, as in a package that was copied whole.
func (r *resolver) library(trees []string) {
	p := r.p
	if len(p.guest.Library) == 0 {
		return
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i, at := range p.guest.Library {
		data, err := fs.ReadFile(assets.Library(), path.Base(at))
		if err != nil || !path.IsAbs(at) || !fs.ValidPath(at[1:]) { // the rules say so
			return
		}
		for _, tree := range trees {
			name := path.Join(tree, at)
			own, err := ReadFile(r.own, name)
			if err == nil && !bytes.Equal(own, data) {
				r.note("", "the package's own %s is laid in place of the guest library's", name)
			}
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				if isFile(r.own, dir) {
					r.fail(fmt.Sprintf("guest.library[%d]", i), "cannot be laid: %s is a file", dir)
					return
				}
			}
			f, err := w.CreateHeader(&zip.FileHeader{Name: name})
			if err == nil {
				_, err = f.Write(data)
			}
			if err != nil { // memory does not refuse
				r.fail("guest.library", "%v", err)
				return
			}
		}
	}
	w.Close() //nolint:errcheck // as above
	library, err := zip.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		r.fail("guest.library", "%v", err)
		return
	}
	own := p.FS
	p.FS = layered{route: func(string) []fs.FS { return []fs.FS{own, library} }}
}
