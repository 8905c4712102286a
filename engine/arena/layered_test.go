package arena

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

// A tree of layers is one tree, also for who opens its folders through another that
// knows only Open.
func TestLayered(t *testing.T) {
	upper := fstest.MapFS{"guest/opt/own.py": {Data: []byte("own")}, "guest/opt/wire.py": {Data: []byte("mine")}}
	lower := fstest.MapFS{"guest/opt/wire.py": {Data: []byte("library's")}, "guest/opt/more.py": {Data: []byte("more")}, "guest/etc/a": {}}
	l := layered{route: func(string) []fs.FS { return []fs.FS{upper, lower} }}
	for name, tree := range map[string]fs.FS{"itself": l, "wrapped": struct{ fs.FS }{l}} {
		var files []string
		err := fs.WalkDir(tree, "guest", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if want := []string{"guest/etc/a", "guest/opt/more.py", "guest/opt/own.py", "guest/opt/wire.py"}; err != nil || !slices.Equal(files, want) {
			t.Errorf("%s: %v, %v", name, files, err)
		}
		if b, err := fs.ReadFile(tree, "guest/opt/wire.py"); err != nil || string(b) != "mine" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// The guest library's files are there in the same way.
func TestLibraryThroughAWrapper(t *testing.T) {
	p, err := Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(struct{ fs.FS }{p.FS}, "guest/opt/failover")
	if err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "wire.py" }) {
		t.Errorf("%v, %v: no wire.py", entries, err)
	}
}
