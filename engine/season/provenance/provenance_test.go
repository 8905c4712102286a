package provenance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
	"refbox/engine/recording"
)

// TestRecordedKeysAreRecognised holds the keys of all recorded heats against the
// forms: none has one of its own.
func TestRecordedKeysAreRecognised(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Shared(t, "recordings"), "*", "match.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no recordings with a match.json")
	}
	forms := map[Form]int{}
	for _, f := range files {
		rec, err := recording.Open(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		m := rec.Match()
		rec.Close()
		form := FormOf(m)
		if form == Unknown {
			t.Errorf("%s: key %s is of no form", f, m.CompatibilityKey)
		}
		forms[form]++
		m.VerifierSHA256 = strings.Repeat("0", 64)
		if FormOf(m) != Unknown {
			t.Errorf("%s: another verifier has the same key", f)
		}
	}
	if forms[Old] == 0 || forms[Mid] == 0 {
		t.Errorf("forms %v: the recordings have both old and mid", forms)
	}
}

const manifest = "schema_version = 1\n[arena]\nid = \"a\"\ncategory = \"x\"\r\n[build]\n[[build.milestones]]\nid = \"m\"\nverifier = \"verify/b.sh\"\n[[build.milestones]]\nid = \"n\"\nverifier = \"verify/a.sh\"\n"

func put(t *testing.T, root, name, data string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeysOfAnArena(t *testing.T) {
	root := t.TempDir()
	put(t, root, "arenas/a/arena.toml", manifest)
	put(t, root, "arenas/a/verify/a.sh", "A")
	put(t, root, "arenas/a/verify/b.sh", "B")
	put(t, root, "suites/season.toml", "")
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }

	p, err := Read(root, "suites/../arenas/a/arena.toml")
	if err != nil {
		t.Fatal(err)
	}
	pre := "suites/../arenas/a/verify/"
	if want := sum(pre + "a.sh\x00A\x00" + pre + "b.sh\x00B\x00"); p.Verifiers != want {
		t.Errorf("verifiers %s, want %s", p.Verifiers, want)
	}
	if want := sum(strings.Replace(manifest, "category = \"x\"\r\n", "", 1)); p.Evaluation != want {
		t.Errorf("evaluation manifest %s, want %s", p.Evaluation, want)
	}
	for _, f := range []Form{Old, Mid, New} {
		m, err := Recognise(p.Key(f), root, Spellings("arenas/a/arena.toml")...)
		if err != nil || m.Form != f || m.Spelling != "suites/../arenas/a/arena.toml" {
			t.Errorf("%s: %+v, %v", f, m, err)
		}
	}
	put(t, root, "arenas/a/verify/a.sh", "changed")
	if _, err := Recognise(p.Key(New), root, Spellings("arenas/a/arena.toml")...); !errors.Is(err, ErrOther) {
		t.Errorf("a changed verifier: %v", err)
	}
	if err := os.Remove(filepath.Join(root, "arenas/a/verify/a.sh")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root, "arenas/a/arena.toml"); err == nil {
		t.Error("a verifier that is not there is hashed")
	}
}
