package memfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// model is the naive file system that FS is held to: a map from path to content,
// directories being "\x00dir".
type model map[string]string

const dir = "\x00dir"

func (m model) isDir(p string) bool { return p == "/" || m[p] == dir }

func (m model) below(p string) bool {
	for q := range m {
		if strings.HasPrefix(q, p+"/") {
			return true
		}
	}
	return false
}

func list(f *FS, at string, into model) {
	l, _ := f.ReadDir(at)
	for _, e := range l {
		p := path.Join(at, e.Name())
		if e.IsDir() {
			into[p] = dir
			list(f, p, into)
			continue
		}
		data, _ := f.ReadFile(p)
		into[p] = string(data)
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, want := New(Snapshot{}, 1<<20), model{}
		synced := model{} // after the last Sync
		name := rapid.Custom(func(t *rapid.T) string {
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "parts")
			return "/" + strings.Join(parts, "/")
		})
		ok := func(what string, err error, should bool) {
			if (err == nil) != should {
				t.Fatalf("%s: %v, expected success: %v\n%v", what, err, should, want)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			p, q := name.Draw(t, "p"), name.Draw(t, "q")
			_, exists := want[p]
			parent := want.isDir(path.Dir(p))
			switch rapid.SampledFrom([]string{"write", "append", "mkdir", "remove", "removeAll", "rename", "sync", "crash", "snapshot"}).Draw(t, "op") {
			case "write":
				should := parent && want[p] != dir
				ok("write "+p, f.WriteFile(p, []byte(q), 0o644), should)
				if should {
					want[p] = q
				}
			case "append":
				should := parent && want[p] != dir
				ok("append "+p, f.Append(p, []byte("+"), 0o644), should)
				if should {
					want[p] += "+"
				}
			case "mkdir":
				should := parent && !exists
				ok("mkdir "+p, f.Mkdir(p, 0o755), should)
				if should {
					want[p] = dir
				}
			case "remove":
				should := exists && !want.below(p)
				ok("remove "+p, f.Remove(p), should)
				if should {
					delete(want, p)
				}
			case "removeAll":
				err := f.RemoveAll(p)
				if err != nil && !errors.Is(err, syscall.ENOTDIR) {
					t.Fatal(err)
				}
				if err == nil {
					maps.DeleteFunc(want, func(k, _ string) bool { return k == p || strings.HasPrefix(k, p+"/") })
				}
			case "rename":
				_, there := want[q]
				should := exists && want.isDir(path.Dir(q)) && (p == q || !strings.HasPrefix(q+"/", p+"/")) &&
					(p == q || !there || (want[p] == dir) == (want[q] == dir) && !want.below(q))
				ok("rename "+p+" "+q, f.Rename(p, q), should)
				if should && p != q {
					delete(want, q)
					for k, v := range maps.Clone(want) {
						if k == p || strings.HasPrefix(k, p+"/") {
							delete(want, k)
							want[q+k[len(p):]] = v
						}
					}
				}
			case "sync":
				f.Sync()
				synced = maps.Clone(want)
			case "crash":
				f = New(f.Synced(), 1<<20)
				want = maps.Clone(synced)
			case "snapshot":
				s := f.Snapshot()
				g := New(s, 1<<20)
				_ = g.WriteFile("/a", []byte("elsewhere"), 0o644)
				_ = g.RemoveAll("/b")
				if s != f.Snapshot() {
					t.Fatal("a snapshot changed")
				}
			}
			got := model{}
			list(f, "/", got)
			if !maps.Equal(got, want) {
				t.Fatalf("got  %q\nwant %q", got, want)
			}
			bytes, nodes, _ := f.Used()
			sumBytes, sumNodes := sum(f.live.root)
			if bytes-sumBytes != -sum0 || nodes != sumNodes {
				t.Fatalf("sums: %d bytes %d nodes, counted %d and %d", bytes, nodes, sumBytes, sumNodes)
			}
		}
	})
}

// sum0 is the cost of the root, which is not charged.
const sum0 = nodeCost

func TestLinks(t *testing.T) {
	f := New(Snapshot{}, 1<<20)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.MkdirAll("/d/e", 0o755))
	must(f.WriteFile("/d/e/f", []byte("x"), 0o600))
	must(f.Symlink("d/e", "/rel"))
	must(f.Symlink("/d/e/f", "/abs"))
	must(f.Symlink("../../d/e/f", "/d/up"))
	must(f.Symlink("loop", "/loop"))
	must(f.Symlink("/nowhere", "/dangling"))
	for _, p := range []string{"/rel/f", "/abs", "/d/up", "/rel/../e/f", "/../d/e/f", "//d/./e//f"} {
		if data, err := f.ReadFile(p); err != nil || string(data) != "x" {
			t.Errorf("%s: %q %v", p, data, err)
		}
	}
	// A write through a dangling link makes its target.
	must(f.WriteFile("/dangling", []byte("y"), 0o600))
	if data, err := f.ReadFile("/nowhere"); err != nil || string(data) != "y" {
		t.Errorf("%q %v", data, err)
	}
	for p, want := range map[string]error{
		"/loop": syscall.ELOOP, "/abs/x": syscall.ENOTDIR, "/none/x": fs.ErrNotExist, "": fs.ErrNotExist, "/d": syscall.EISDIR,
		"/nul\x00": syscall.EINVAL, "/" + strings.Repeat("n", 300): syscall.ENAMETOOLONG, strings.Repeat("/a", 4000): syscall.ENAMETOOLONG,
	} {
		if _, err := f.ReadFile(p); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", p, err, want)
		}
	}
}

func TestDurability(t *testing.T) {
	f := New(Snapshot{}, 1<<20)
	for _, p := range []string{"/old", "/other"} {
		if err := f.WriteFile(p, []byte("first"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.Sync()
	_ = f.WriteFile("/old", []byte("second"), 0o644)
	_ = f.WriteFile("/new", []byte("third"), 0o644)
	_ = f.WriteFile("/synced.tmp", []byte("fourth"), 0o644)
	_ = f.Symlink("/old", "/link")
	_ = f.Remove("/other")
	before := New(f.Synced(), 1<<20)
	if l, _ := before.ReadDir("/"); len(l) != 2 {
		t.Fatalf("nothing was synced, yet: %v", l)
	}
	if err := f.SyncFile("/synced.tmp"); err != nil {
		t.Fatal(err)
	}
	_ = f.Rename("/synced.tmp", "/synced")
	if err := f.SyncFile("/"); err != nil {
		t.Fatal(err)
	}
	after, got := New(f.Synced(), 1<<20), model{}
	list(after, "/", got)
	want := model{"/old": "first", "/new": "", "/synced": "fourth", "/link": "first"}
	if !maps.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	if data, _ := f.ReadFile("/new"); string(data) != "third" {
		t.Fatalf("a sync changed what programs see: %q", data)
	}
}

func TestOpenFile(t *testing.T) {
	f := New(Snapshot{}, 1<<20)
	w, err := f.OpenFile("/f", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "one ")
	s := f.Snapshot()
	fmt.Fprint(w, "two ")
	a, err := f.OpenFile("/f", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(a, "three")
	fmt.Fprint(w, "TWO") // at its own place
	if data, _ := f.ReadFile("/f"); string(data) != "one two TWOee" {
		t.Fatalf("%q", data)
	}
	if data, _ := New(s, 1<<20).ReadFile("/f"); string(data) != "one " {
		t.Fatalf("the snapshot changed: %q", data)
	}
	r, err := f.OpenFile("/f", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Remove("/f")
	if _, err := fmt.Fprint(w, "more"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stat("/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a write brought a removed file back: %v", err)
	}
	if data, _ := io.ReadAll(r); string(data) != "one two TWOee" {
		t.Fatalf("%q", data)
	}
	if _, err := f.OpenFile("/x", os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Fatal(err)
	}
}

func TestFull(t *testing.T) {
	f := New(Snapshot{}, 1000)
	if err := f.WriteFile("/big", make([]byte, 2000), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.WriteFile("/f", make([]byte, 900), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Append("/f", make([]byte, 100), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Remove("/f"); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("/g", make([]byte, 900), 0o644); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkStream shows that a long file is not copied for each write.
func BenchmarkStream(b *testing.B) {
	chunk := slices.Repeat([]byte("x"), 32<<10)
	for b.Loop() {
		f := New(Snapshot{}, 1<<30)
		w, _ := f.OpenFile("/f", os.O_WRONLY|os.O_CREATE, 0o600)
		for range 1000 {
			w.Write(chunk)
		}
	}
}
