package sim

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"refbox/vm/sim/internal/memfs"
)

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type randomBytes struct{}

func (randomBytes) Read(p []byte) (int, error) { return rand.Read(p) }

type consoleDevice struct{ b *boot }

func (consoleDevice) Read([]byte) (int, error) { return 0, io.EOF }
func (c consoleDevice) Write(p []byte) (int, error) {
	c.b.print(string(p))
	return len(p), nil
}

// device swallows what is written, unless the reader is a writer too.
type device struct{ io.Reader }

func (d device) Write(p []byte) (int, error) {
	if w, ok := d.Reader.(consoleDevice); ok {
		return w.Write(p)
	}
	return len(p), nil
}
func (device) Close() error { return nil }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// into is the target of a copy or move: dst itself, or src's name in it.
func (t *run) into(src, dst string) string {
	if st, err := t.b.fs.Stat(t.Path(dst)); err == nil && st.IsDir() {
		return path.Join(t.Path(dst), path.Base(src))
	}
	return t.Path(dst)
}

func toolMkdir(t *run) int {
	opts, rest := t.flags("m")
	code := 0
	for _, a := range rest {
		var err error
		if has(opts, "p", "parents") {
			err = t.b.fs.MkdirAll(t.Path(a), 0o755)
		} else {
			err = t.b.fs.Mkdir(t.Path(a), 0o755)
		}
		if err != nil {
			code = t.fail(1, "cannot create directory '%s': %s", a, errText(err))
		} else if m, ok := opts["m"]; ok {
			t.chmod(t.Path(a), m)
		}
	}
	return code
}

func toolRmdir(t *run) int {
	_, rest := t.flags("")
	code := 0
	for _, a := range rest {
		st, err := t.b.fs.Lstat(t.Path(a))
		if err == nil && !st.IsDir() {
			code = t.fail(1, "failed to remove '%s': Not a directory", a)
			continue
		}
		if err := t.b.fs.Remove(t.Path(a)); err != nil {
			code = t.fail(1, "failed to remove '%s': %s", a, errText(err))
		}
	}
	return code
}

func toolRm(t *run) int {
	opts, rest := t.flags("")
	recursive, force := has(opts, "r", "R", "recursive"), has(opts, "f", "force")
	code := 0
	for _, a := range rest {
		st, err := t.b.fs.Lstat(t.Path(a))
		switch {
		case err != nil && force:
			continue
		case err == nil && st.IsDir() && !recursive:
			code = t.fail(1, "cannot remove '%s': Is a directory", a)
			continue
		case err == nil && recursive:
			err = t.b.fs.RemoveAll(t.Path(a))
		case err == nil:
			err = t.b.fs.Remove(t.Path(a))
		}
		if err != nil {
			code = t.fail(1, "cannot remove '%s': %s", a, errText(err))
		}
	}
	return code
}

// targets splits operands into sources and target, as cp, mv and ln take them.
func (t *run) targets(opts map[string]string, rest []string) (srcs []string, dst string, ok bool) {
	if d, named := opts["t"]; named {
		return rest, d, len(rest) > 0
	}
	if len(rest) < 2 {
		return nil, "", false
	}
	return rest[:len(rest)-1], rest[len(rest)-1], true
}

func toolMv(t *run) int {
	opts, rest := t.flags("tS")
	srcs, dst, ok := t.targets(opts, rest)
	if !ok {
		return t.fail(1, "missing destination file operand")
	}
	code := 0
	for _, s := range srcs {
		to := t.into(s, dst)
		if _, err := t.b.fs.Lstat(to); err == nil && has(opts, "n") {
			continue
		}
		if err := t.b.fs.Rename(t.Path(s), to); err != nil {
			code = t.fail(1, "cannot move '%s' to '%s': %s", s, dst, errText(err))
		}
	}
	return code
}

func toolCp(t *run) int {
	opts, rest := t.flags("tS")
	srcs, dst, ok := t.targets(opts, rest)
	if !ok {
		return t.fail(1, "missing destination file operand")
	}
	deep := has(opts, "r", "R", "a", "recursive", "archive")
	code := 0
	for _, s := range srcs {
		st, err := t.b.fs.Stat(t.Path(s))
		if err == nil && st.IsDir() && !deep {
			code = t.fail(1, "-r not specified; omitting directory '%s'", s)
			continue
		}
		if err == nil {
			err = t.copyTree(t.Path(s), t.into(s, dst), has(opts, "a", "d", "P"), 0)
		}
		if err != nil {
			code = t.fail(1, "cannot copy '%s': %s", s, errText(err))
		}
	}
	return code
}

func (t *run) copyTree(src, dst string, keepLinks bool, depth int) error {
	if depth > 64 {
		return fmt.Errorf("too deep")
	}
	st, err := t.b.fs.Lstat(src)
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		if keepLinks {
			_ = t.b.fs.Remove(dst)
			return t.b.fs.Symlink(st.Target(), dst)
		}
		if st, err = t.b.fs.Stat(src); err != nil {
			return err
		}
	}
	if st.IsDir() {
		list, err := t.b.fs.ReadDir(src)
		if err != nil {
			return err
		}
		if err := t.b.fs.MkdirAll(dst, st.Mode().Perm()); err != nil {
			return err
		}
		for _, e := range list {
			if err := t.copyTree(path.Join(src, e.Name()), path.Join(dst, e.Name()), true, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	data, err := t.b.fs.ReadFile(src)
	if err != nil {
		return err
	}
	return t.b.fs.WriteFile(dst, data, st.Mode().Perm())
}

func toolInstall(t *run) int {
	opts, rest := t.flags("mogt")
	if has(opts, "d") {
		for _, a := range rest {
			if err := t.b.fs.MkdirAll(t.Path(a), 0o755); err != nil {
				return t.fail(1, "cannot create directory '%s': %s", a, errText(err))
			}
			if m, ok := opts["m"]; ok {
				t.chmod(t.Path(a), m)
			}
		}
		return 0
	}
	srcs, dst, ok := t.targets(opts, rest)
	if !ok {
		return t.fail(1, "missing destination file operand")
	}
	for _, s := range srcs {
		to := t.into(s, dst)
		if has(opts, "D") {
			_ = t.b.fs.MkdirAll(path.Dir(to), 0o755)
		}
		data, err := t.readInput(s)
		if err == nil {
			_ = t.b.fs.Remove(to)
			err = t.b.fs.WriteFile(to, data, 0o755)
		}
		if err != nil {
			return t.fail(1, "cannot install '%s': %s", s, errText(err))
		}
		if m, ok := opts["m"]; ok {
			t.chmod(to, m)
		}
	}
	return 0
}

// readInput reads a file whole, /dev/stdin being standard input.
func (t *run) readInput(name string) ([]byte, error) {
	if name == "/dev/stdin" || name == "-" {
		return io.ReadAll(io.LimitReader(t.in, 64<<20))
	}
	return t.b.fs.ReadFile(t.Path(name))
}

func toolLn(t *run) int {
	opts, rest := t.flags("tS")
	if len(rest) == 1 {
		rest = append(rest, ".")
	}
	srcs, dst, ok := t.targets(opts, rest)
	if !ok {
		return t.fail(1, "missing file operand")
	}
	code := 0
	for _, s := range srcs {
		to := t.into(s, dst)
		if has(opts, "n", "T", "no-dereference") {
			if st, err := t.b.fs.Lstat(t.Path(dst)); err == nil && st.Mode()&fs.ModeSymlink != 0 {
				to = t.Path(dst)
			}
		}
		if has(opts, "f", "force") {
			_ = t.b.fs.Remove(to)
		}
		var err error
		if has(opts, "s", "symbolic") {
			err = t.b.fs.Symlink(s, to)
		} else if _, err = t.b.fs.Lstat(to); err == nil {
			err = fs.ErrExist
		} else {
			err = t.copyTree(t.Path(s), to, true, 0)
		}
		if err != nil {
			code = t.fail(1, "failed to create link '%s': %s", to, errText(err))
		}
	}
	return code
}

func (t *run) chmod(at, mode string) bool {
	st, err := t.b.fs.Stat(at)
	if err != nil {
		return false
	}
	perm := st.Mode().Perm()
	if n, err := strconv.ParseUint(mode, 8, 32); err == nil {
		return t.b.fs.Chmod(at, fs.FileMode(n)) == nil
	}
	for clause := range strings.SplitSeq(mode, ",") {
		i := strings.IndexAny(clause, "+-=")
		if i < 0 {
			return false
		}
		who, bits := uint32(0), uint32(0)
		for _, c := range clause[:i] {
			who |= map[rune]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[c]
		}
		if who == 0 {
			who = 0o777
		}
		for _, c := range clause[i+1:] {
			bits |= map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111}[c]
		}
		switch set := fs.FileMode(who & bits); clause[i] {
		case '+':
			perm |= set
		case '-':
			perm &^= set
		case '=':
			perm = perm&^fs.FileMode(who) | set
		}
	}
	return t.b.fs.Chmod(at, perm) == nil
}

func toolChmod(t *run) int {
	var rest []string
	recursive := false
	for _, a := range t.args {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "Rvfc") == "" {
			recursive = recursive || strings.Contains(a, "R")
			continue
		}
		rest = append(rest, a)
	}
	if len(rest) < 2 {
		return t.fail(1, "missing operand")
	}
	code := 0
	for _, a := range rest[1:] {
		if !t.chmod(t.Path(a), rest[0]) {
			code = t.fail(1, "cannot change the mode of '%s' to '%s'", a, rest[0])
		}
		if recursive {
			t.b.walk(t.Path(a), 0, func(at string, _ memfs.Info) { t.chmod(at, rest[0]) })
		}
	}
	return code
}

// walk calls f for what is below root, root included, in the order of find.
func (b *boot) walk(root string, depth int, f func(at string, st memfs.Info)) {
	st, err := b.fs.Lstat(root)
	if err != nil || depth > 64 {
		return
	}
	f(root, st)
	if !st.IsDir() {
		return
	}
	list, _ := b.fs.ReadDir(root)
	for _, e := range list {
		b.walk(strings.TrimSuffix(root, "/")+"/"+e.Name(), depth+1, f)
	}
}

func toolTouch(t *run) int {
	opts, rest := t.flags("dtr")
	for _, a := range rest {
		at := t.Path(a)
		if _, err := t.b.fs.Stat(at); err == nil {
			_ = t.b.fs.Touch(at, time.Now())
		} else if !has(opts, "c") {
			if err := t.b.fs.WriteFile(at, nil, 0o644); err != nil {
				return t.fail(1, "cannot touch '%s': %s", a, errText(err))
			}
		}
	}
	return 0
}

func toolMktemp(t *run) int {
	opts, rest := t.flags("p")
	name := "/tmp/tmp." + randomHex(5)
	if len(rest) > 0 {
		name = t.Path(strings.TrimRight(rest[0], "X") + randomHex(5))
	}
	var err error
	if has(opts, "d") {
		err = t.b.fs.Mkdir(name, 0o700)
	} else {
		err = t.b.fs.WriteFile(name, nil, 0o600)
	}
	if err != nil {
		return t.fail(1, "%s", errText(err))
	}
	t.printf("%s\n", name)
	return 0
}
