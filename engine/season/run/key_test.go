package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/heat"
	"refbox/engine/season"
)

// A draw whose key was made in an earlier form is held against that form.
func TestAnEarlierDrawIsRecognised(t *testing.T) {
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := pkg.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	before, err := heat.KeyBefore(pkg)
	if err != nil {
		t.Fatal(err)
	}
	now, err := heat.Key(pkg)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := heat.Parts(pkg)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]season.Arena{
		before: {Manifest: "primary-failover", CompatibilityKey: before, Hashes: hashes},
		now:    {Manifest: "primary-failover", CompatibilityKey: now, Hashes: parts},
	} {
		key, got, err := Key(x, season.Rules{})
		if err != nil || key != name || season.Differences(x.Hashes, got) != "" {
			t.Errorf("%s %v: %v%s", key, err, got, season.Differences(x.Hashes, got))
		}
	}
}

// A key holds the bytes of the guest library's files, not that they come from there.
func TestAKeyHoldsTheLibrary(t *testing.T) {
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	key := func(p *arena.Package) string {
		k, err := heat.Key(p)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, pkg.FS); err != nil {
		t.Fatal(err)
	}
	manifest, wire := filepath.Join(dir, "arena.toml"), filepath.Join(dir, "guest/opt/failover/wire.py")
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	without := bytes.Replace(data, []byte("library = [\"/opt/failover/wire.py\"]\n"), nil, 1)
	if err := os.WriteFile(manifest, without, 0o644); err != nil || len(without) == len(data) {
		t.Fatal("the manifest names no library: ", err)
	}
	own := func() string {
		p, err := arena.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		return key(p)
	}
	if got := own(); got != key(pkg) {
		t.Errorf("with the same file of its own the key is %s, not %s", got, key(pkg))
	}
	if err := os.WriteFile(wire, []byte("# another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if own() == key(pkg) {
		t.Error("another file has the same key")
	}
}
