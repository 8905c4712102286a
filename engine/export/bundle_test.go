package export_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"refbox/engine/archive"
	"refbox/engine/export"
	"refbox/engine/export/exporttest"
	"refbox/engine/internal/shared"
	"refbox/engine/recording"
)

func bundle(t testing.TB, tree fs.FS) ([]byte, export.Bundled) {
	t.Helper()
	var b bytes.Buffer
	done, err := export.Bundle(&b, tree, "a heat")
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), done
}

func unpack(t testing.TB, data []byte) *archive.Tree {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heat.tar.gz")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func files(t testing.TB, tree fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(tree, p)
		out[p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBundleHoldsTheRecording(t *testing.T) {
	dir := exporttest.Small(t)
	data, done := bundle(t, open(t, dir).Tree())
	tree := unpack(t, data)
	if p := tree.Problems(); len(p) > 0 || tree.Name() != "a-heat" {
		t.Fatalf("%s: %v", tree.Name(), p)
	}
	want, got := files(t, os.DirFS(dir)), files(t, tree)
	delete(got, archive.ManifestFile)
	if len(got) != len(want) || done.Files != len(want) || len(done.LeftOut) > 0 {
		t.Fatalf("%d files of %d, left out %q", len(got), len(want), done.LeftOut)
	}
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s is not the same", name)
		}
	}
	rec, err := recording.OpenTree(tree, "heat.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := rec.Verify(context.Background())
	if err != nil || rep.Breaks() > 0 || !rep.Sealed || !rep.Chained {
		t.Fatalf("%+v, %v", rep, err)
	}
	again, _ := bundle(t, rec.Tree())
	if !bytes.Equal(again, data) {
		t.Error("a bundle of a bundle is another")
	}
	second, _ := bundle(t, os.DirFS(dir))
	if !bytes.Equal(second, data) {
		t.Error("the same folder gives another bundle")
	}
}

func TestBundleLeavesOutWhatIsNoRecording(t *testing.T) {
	dir := exporttest.Small(t)
	foreign := []string{".env", "id_ed25519", "notes.txt", "seats/failover-one/.ssh/id_rsa", "seats/failover-one/evidence/core", "seats/x/machines/host/overlay.qcow2", "desk.sock"}
	for _, name := range foreign {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("SECRET"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "seats", "failover-one", "result.json")); err != nil {
		t.Fatal(err)
	}
	data, done := bundle(t, open(t, dir).Tree())
	if len(done.LeftOut) != len(foreign)+1 {
		t.Errorf("left out %q", done.LeftOut)
	}
	for name, text := range files(t, unpack(t, data)) {
		if text == "SECRET" {
			t.Errorf("%s is in the bundle", name)
		}
	}
}

func TestBundleOfRecordings(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, done := bundle(t, open(t, dir).Tree())
			if p := unpack(t, data).Problems(); len(p) > 0 || len(done.LeftOut) > 0 {
				t.Fatalf("%v; left out %q", p, done.LeftOut)
			}
		})
	}
}

// changing is a file that grows between two looks.
type changing struct {
	fs.FS
	opened int
}

func (c *changing) Open(name string) (fs.File, error) {
	if name == "events.jsonl" {
		c.opened++
		return fstest.MapFS{name: {Data: bytes.Repeat([]byte("{}\n"), c.opened)}}.Open(name)
	}
	return c.FS.Open(name)
}

func TestBundleRefusesAChangingFileAndAnEmptyFolder(t *testing.T) {
	tree := &changing{FS: fstest.MapFS{"events.jsonl": {}, "world.json": {}}}
	if _, err := export.Bundle(&bytes.Buffer{}, tree, "x"); err != nil {
		t.Fatalf("a file that only grows is taken as it was: %v", err)
	}
	if _, err := export.Bundle(&bytes.Buffer{}, flipping{tree.FS, new(int)}, "x"); err == nil {
		t.Error("a file that changed was bundled")
	}
	if _, err := export.Bundle(&bytes.Buffer{}, fstest.MapFS{"notes.txt": {}}, "x"); err == nil {
		t.Error("a folder without a recording was bundled")
	}
}

// flipping is a file whose bytes differ between two looks.
type flipping struct {
	fs.FS
	n *int
}

func (f flipping) Open(name string) (fs.File, error) {
	if name == "events.jsonl" {
		*f.n++
		return fstest.MapFS{name: {Data: []byte{byte(*f.n)}}}.Open(name)
	}
	return f.FS.Open(name)
}

func TestBundleOfHostileNames(t *testing.T) {
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) {
			dir := exporttest.Hostile(t, s)
			data, _ := bundle(t, open(t, dir).Tree())
			tree := unpack(t, data)
			if p := tree.Problems(); len(p) > 0 {
				t.Fatal(p)
			}
			if names := files(t, tree); !slices.Contains(namesOf(names), "events.jsonl") || len(names) < 10 {
				t.Fatalf("%q", namesOf(names))
			}
		})
	}
}

func namesOf(m map[string]string) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	return out
}
