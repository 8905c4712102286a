package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

type entry struct {
	name string
	data string
	kind byte
	link string
}

func tarGz(t testing.TB, entries ...entry) string {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.data)), Linkname: e.link}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return save(t, "heat.tar.gz", buf.Bytes())
}

func zipped(t testing.TB, entries ...entry) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.kind == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
			e.data = e.link
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return save(t, "heat.zip", buf.Bytes())
}

func save(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *Tree {
	t.Helper()
	tree, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

var formats = map[string]func(testing.TB, ...entry) string{"tar.gz": tarGz, "zip": zipped}

func TestTreeIsAFileSystem(t *testing.T) {
	for format, pack := range formats {
		t.Run(format, func(t *testing.T) {
			tree := open(t, pack(t,
				entry{name: "some-heat/events.jsonl", data: "{}\n"},
				entry{name: "some-heat/seats/one/brief.md", data: strings.Repeat("long ", 1000)},
				entry{name: "some-heat/empty.json"},
			))
			if err := fstest.TestFS(tree, "events.jsonl", "seats/one/brief.md", "empty.json"); err != nil {
				t.Fatal(err)
			}
			if tree.Name() != "some-heat" || !tree.Heat() || len(tree.Problems()) > 0 {
				t.Fatalf("name %q, problems %v", tree.Name(), tree.Problems())
			}
			f, err := tree.Open("seats/one/brief.md")
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 4)
			if _, err := f.(io.ReaderAt).ReadAt(buf, 5); err != nil || string(buf) != "long" {
				t.Fatalf("%q, %v", buf, err)
			}
		})
	}
}

func TestHostileEntriesAreLeftOutAndToldOf(t *testing.T) {
	for format, pack := range formats {
		t.Run(format, func(t *testing.T) {
			tree := open(t, pack(t,
				entry{name: "events.jsonl", data: "first"},
				entry{name: "events.jsonl", data: "second"},
				entry{name: "../escape.json", data: "x"},
				entry{name: "/etc/passwd", data: "x"},
				entry{name: "a/../../b", data: "x"},
				entry{name: `seats\one\brief.md`, data: "x"},
				entry{name: "link.json", kind: tar.TypeSymlink, link: "/etc/passwd"},
				entry{name: "events.jsonl/inside", data: "x"},
				entry{name: strings.Repeat("d/", MaxDepth+1) + "deep", data: "x"},
				entry{name: "evil\x1b]0;title\a.json", data: "x"},
			))
			data, err := fs.ReadFile(tree, "events.jsonl")
			if err != nil || string(data) != "first" {
				t.Fatalf("%q, %v", data, err)
			}
			var names []string
			err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
				if !d.IsDir() {
					names = append(names, p)
				}
				return err
			})
			if err != nil || len(names) != 2 { // the log, and the one whose name is only ugly
				t.Fatalf("%q, %v", names, err)
			}
			if n := len(tree.Problems()); n != 8 {
				t.Fatalf("%d problems: %v", n, tree.Problems())
			}
			for _, p := range tree.Problems() {
				if strings.ContainsAny(p.File+p.Text, "\x1b\a\n") || p.Broken {
					t.Errorf("problem %q: %q", p.File, p.Text)
				}
			}
		})
	}
}

func TestBombsAreRefused(t *testing.T) {
	small := limits{bytes: 1 << 20, entries: 10}
	try := func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := read(bytes.NewReader(data), int64(len(data)), small)
		if err == nil {
			tree.Close()
		}
		return err
	}
	zeros := strings.Repeat("\x00", 1<<20)
	names := make([]entry, small.entries+1)
	for i := range names {
		names[i] = entry{name: fmt.Sprint("a", i)}
	}
	for format, pack := range formats {
		for name, c := range map[string]struct {
			entries []entry
			refused bool
		}{
			"just in":   {[]entry{{name: "events.jsonl", data: zeros}}, false},
			"one file":  {[]entry{{name: "events.jsonl", data: zeros + "0"}}, true},
			"two files": {[]entry{{name: "a", data: zeros}, {name: "b", data: "0"}}, true},
			"names":     {names, true},
		} {
			t.Run(format+" "+name, func(t *testing.T) {
				err := try(pack(t, c.entries...))
				var over *overLimit
				if errors.As(err, &over) != c.refused || !c.refused && err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	if l := limitsFor(1 << 20); l.bytes != MaxRatio<<20 {
		t.Fatalf("a small archive may inflate to %d bytes", l.bytes)
	}
	if l := limitsFor(1 << 40); l.bytes != MaxTotal {
		t.Fatalf("a large archive may inflate to %d bytes", l.bytes)
	}
}

// A zip's list is read before its entries can be counted.
func TestLongZipDirectoryIsRefused(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	name := strings.Repeat("n", MaxName-8)
	for i := range maxDirectory/MaxName + 1 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%s%07d", name, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := read(bytes.NewReader(buf.Bytes()), int64(buf.Len()), limits{MaxTotal, 1 << 30})
	var over *overLimit
	if !errors.As(err, &over) {
		t.Fatal(err)
	}
}

func TestDamagedArchives(t *testing.T) {
	if _, err := Open(save(t, "heat.zip", []byte("neither"))); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Fatalf("no archive: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.zip")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	long := strings.Repeat("0123456789abcdef", 4096)
	whole, err := os.ReadFile(tarGz(t, entry{name: "events.jsonl", data: "{}\n"}, entry{name: "rest", data: long}))
	if err != nil {
		t.Fatal(err)
	}
	tree := open(t, save(t, "cut.tar.gz", whole[:len(whole)-40]))
	if data, err := fs.ReadFile(tree, "events.jsonl"); err != nil || string(data) != "{}\n" {
		t.Fatalf("%q, %v", data, err)
	}
	if p := tree.Problems(); len(p) != 1 || p[0].Code != "archive_torn" || !p[0].Broken {
		t.Fatalf("%v", p)
	}
}

func TestManifestIsChecked(t *testing.T) {
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	manifest := func(files ...File) entry {
		raw, err := json.Marshal(Manifest{SchemaVersion: 1, Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return entry{name: "h/" + ManifestFile, data: string(raw)}
	}
	log := entry{name: "h/events.jsonl", data: "{}\n"}
	good := File{"events.jsonl", 3, hash("{}\n")}
	for _, c := range []struct {
		name    string
		entries []entry
		code    string
		broken  bool
	}{
		{"whole", []entry{manifest(good), log}, "", false},
		{"altered", []entry{manifest(good), {name: "h/events.jsonl", data: "{ }"}}, "bundle_altered", true},
		{"shorter", []entry{manifest(File{"events.jsonl", 4, hash("{}\n")}), log}, "bundle_altered", true},
		{"missing", []entry{manifest(good, File{"world.json", 3, hash("{}\n")}), log}, "bundle_missing", true},
		{"more", []entry{manifest(good), log, {name: "h/world.json"}}, "bundle_extra", false},
		{"no JSON", []entry{{name: "h/" + ManifestFile, data: "{"}, log}, "bundle_unreadable", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := open(t, tarGz(t, c.entries...)).Problems()
			if c.code == "" {
				if len(got) > 0 {
					t.Fatal(got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != c.code || got[0].Broken != c.broken {
				t.Fatalf("%v", got)
			}
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	tree := open(t, tarGz(t, entry{name: "events.jsonl", data: "{}"}))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzOpen(f *testing.F) {
	for _, path := range []string{
		tarGz(f, entry{name: "h/events.jsonl", data: "{}"}, entry{name: "h/a", kind: tar.TypeSymlink, link: "b"}),
		zipped(f, entry{name: "h/events.jsonl", data: "{}"}, entry{name: "h/seats/x", data: "y"}),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := read(bytes.NewReader(data), int64(len(data)), limits{1 << 20, 100})
		if err != nil {
			return
		}
		defer tree.Close()
		err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = fs.ReadFile(tree, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A pipe under an archive's name would block whoever opens it.
func TestPipeIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.tar.gz")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("needs named pipes: ", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Open(path)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "pipe.tar.gz is not a plain file") {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		// Whoever waits for a writer goes on when one comes.
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			defer f.Close()
		}
		t.Fatal("the pipe is waited for")
	}
}

func TestStem(t *testing.T) {
	for path, want := range map[string]string{"a/heat.tar.gz": "a/heat", "heat.TGZ": "heat", "heat.1.zip": "heat.1", "heat": "heat", "heat.tar": "heat.tar", "zip": "zip", "é.gz": "é.gz", "": ""} {
		if got := Stem(path); got != want || Is(path) != (want != path) {
			t.Errorf("Stem(%q) = %q, an archive's: %t; want %q", path, got, Is(path), want)
		}
	}
}
