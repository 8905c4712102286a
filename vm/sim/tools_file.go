package sim

import (
	"bytes"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
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

func toolLs(t *run) int {
	opts, rest := t.flags("")
	if len(rest) == 0 {
		rest = []string{"."}
	}
	code := 0
	show := func(name string, st memfs.Info) {
		if !has(opts, "l") {
			t.printf("%s\n", name)
			return
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			name += " -> " + st.Target()
		}
		t.printf("%s 1 root root %8d %s %s\n", modeText(st.Mode()), st.Size(), st.ModTime().Format("Jan _2 15:04"), name)
	}
	for i, a := range rest {
		at := t.Path(a)
		st, err := t.b.fs.Stat(at)
		if err != nil || has(opts, "d") {
			st, err = t.b.fs.Lstat(at)
		}
		if err != nil {
			code = t.fail(2, "cannot access '%s': %s", a, errText(err))
			continue
		}
		if !st.IsDir() || has(opts, "d") {
			show(a, st)
			continue
		}
		if len(rest) > 1 || has(opts, "R") {
			if i > 0 {
				t.printf("\n")
			}
			t.printf("%s:\n", a)
		}
		list, _ := t.b.fs.ReadDir(at)
		if has(opts, "a") {
			show(".", st)
			show("..", st)
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), ".") && !has(opts, "a", "A") {
				continue
			}
			show(e.Name(), e)
		}
	}
	return code
}

// modeText is a mode as ls prints it.
func modeText(m fs.FileMode) string {
	kind := byte('-')
	switch {
	case m.IsDir():
		kind = 'd'
	case m&fs.ModeSymlink != 0:
		kind = 'l'
	case m&fs.ModeCharDevice != 0:
		kind = 'c'
	}
	return string(kind) + m.Perm().String()[1:]
}

func toolStat(t *run) int {
	opts, rest := t.flags("c--format ")
	format, ok := opts["c"]
	if !ok {
		format, ok = opts["format"]
	}
	for _, a := range rest {
		st, err := t.b.fs.Lstat(t.Path(a))
		if err == nil && has(opts, "L") {
			st, err = t.b.fs.Stat(t.Path(a))
		}
		if err != nil {
			return t.fail(1, "cannot statx '%s': %s", a, errText(err))
		}
		if !ok {
			t.printf("  File: %s\n  Size: %d\nAccess: (%04o/%s)\nModify: %s\n", a, st.Size(), st.Mode().Perm(), modeText(st.Mode()), st.ModTime().Format(time.RFC3339Nano))
			continue
		}
		kind := "regular file"
		switch {
		case st.IsDir():
			kind = "directory"
		case st.Mode()&fs.ModeSymlink != 0:
			kind = "symbolic link"
		}
		t.printf("%s\n", strings.NewReplacer("%n", a, "%s", strconv.FormatInt(st.Size(), 10), "%a", strconv.FormatUint(uint64(st.Mode().Perm()), 8),
			"%A", modeText(st.Mode()), "%Y", strconv.FormatInt(st.ModTime().Unix(), 10), "%F", kind, "%U", "root", "%G", "root", "%u", "0", "%g", "0",
			"%i", strconv.FormatUint(st.Inode(), 10)).Replace(format))
	}
	return 0
}

func toolFind(t *run) int {
	args := t.args
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	maxDepth, remove := 1<<30, false
	var command []string
	var tests []func(string, memfs.Info) bool
	for i := 0; i < len(args); i++ {
		negated := args[i] == "!" || args[i] == "-not"
		if negated {
			i++
		}
		arg := ""
		if i+1 < len(args) {
			arg = args[i+1]
		}
		if i >= len(args) {
			break
		}
		var f func(string, memfs.Info) bool
		switch args[i] {
		case "-name", "-iname", "-path":
			what := args[i]
			f = func(at string, _ memfs.Info) bool {
				if what != "-path" {
					at = path.Base(at)
				} else {
					ok, _ := path.Match(strings.ReplaceAll(arg, "*", "?"), "")
					return ok || globAll(arg, at)
				}
				ok, _ := path.Match(arg, at)
				return ok
			}
			i++
		case "-type":
			f = func(_ string, st memfs.Info) bool {
				return arg == "f" && st.Mode().IsRegular() || arg == "d" && st.IsDir() || arg == "l" && st.Mode()&fs.ModeSymlink != 0
			}
			i++
		case "-maxdepth":
			maxDepth, _ = strconv.Atoi(arg)
			i++
		case "-size", "-mtime", "-mmin", "-perm", "-user", "-newer":
			i++
		case "-delete":
			remove = true
		case "-exec":
			for i++; i < len(args) && args[i] != ";" && args[i] != "+"; i++ {
				command = append(command, args[i])
			}
		case "-print", "-print0", "-xdev", "-mindepth":
		default:
			return t.fail(1, "unknown predicate '%s'", args[i])
		}
		if f != nil {
			g := f
			tests = append(tests, func(at string, st memfs.Info) bool { return g(at, st) != negated })
		}
	}
	code := 0
	for _, root := range roots {
		abs := t.Path(root)
		if _, err := t.b.fs.Lstat(abs); err != nil {
			code = t.fail(1, "'%s': %s", root, errText(err))
			continue
		}
		var found []string
		t.b.walk(abs, 0, func(at string, st memfs.Info) {
			rel := strings.TrimPrefix(at, strings.TrimSuffix(abs, "/"))
			if strings.Count(rel, "/") > maxDepth {
				return
			}
			for _, f := range tests {
				if !f(at, st) {
					return
				}
			}
			found = append(found, strings.TrimSuffix(root, "/")+rel)
		})
		for _, f := range found {
			switch {
			case remove:
				_ = t.b.fs.Remove(t.Path(f))
			case command != nil:
				words := make([]string, len(command))
				for i, w := range command {
					words[i] = strings.ReplaceAll(w, "{}", f)
				}
				p, err := t.b.newProcess(t.ctx, processSpec{args: words, dir: t.Dir, env: t.env, out: t.Stdout, err: t.Stderr, parent: t.Process})
				if err != nil {
					return t.fail(1, "%v", err)
				}
				p.finish(t.b.execute(p))
			default:
				t.printf("%s\n", f)
			}
		}
	}
	return code
}

// globAll matches a pattern whose "*" also matches slashes.
func globAll(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	if !star {
		return s == ""
	}
	for i := 0; i <= len(s); i++ {
		if globAll(rest, s[i:]) {
			return true
		}
	}
	return false
}

func toolReadlink(t *run) int {
	opts, rest := t.flags("")
	for _, a := range rest {
		if t.name() == "realpath" || has(opts, "f", "e", "m", "canonicalize") {
			real, err := t.b.fs.Real(t.Path(a))
			if err != nil {
				return t.fail(1, "%s: %s", a, errText(err))
			}
			t.printf("%s\n", real)
			continue
		}
		st, err := t.b.fs.Lstat(t.Path(a))
		if err != nil || st.Mode()&fs.ModeSymlink == 0 {
			return 1
		}
		t.printf("%s\n", st.Target())
	}
	return 0
}

func toolPwd(t *run) int {
	real, err := t.b.fs.Real(t.Dir)
	if err != nil {
		return t.fail(1, "%s", errText(err))
	}
	t.printf("%s\n", real)
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

func toolSum(t *run) int {
	_, rest := t.flags("")
	return t.inputs(rest, func(name string, r io.Reader) {
		var h hash.Hash = sha256.New()
		if t.name() == "md5sum" {
			h = md5.New()
		}
		_, _ = io.Copy(h, r)
		t.printf("%s  %s\n", hex.EncodeToString(h.Sum(nil)), name)
	})
}

func toolCmp(t *run) int {
	_, rest := t.flags("")
	if len(rest) < 2 {
		return t.fail(2, "missing operand")
	}
	a, aerr := t.readInput(rest[0])
	b, berr := t.readInput(rest[1])
	if aerr != nil || berr != nil {
		return t.fail(2, "cannot read")
	}
	if bytes.Equal(a, b) {
		return 0
	}
	t.printf("%s %s differ\n", rest[0], rest[1])
	return 1
}

func toolDiff(t *run) int {
	t.args = slices.DeleteFunc(slices.Clone(t.args), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" })
	return toolCmp(t)
}

func toolDu(t *run) int {
	_, rest := t.flags("d")
	for _, a := range rest {
		total := int64(0)
		t.b.walk(t.Path(a), 0, func(_ string, st memfs.Info) { total += st.Size() })
		t.printf("%d\t%s\n", (total+1023)/1024, a)
	}
	return 0
}

func toolDf(t *run) int {
	used, _, limit := t.b.fs.Used()
	t.printf("Filesystem     1K-blocks   Used Available Use%% Mounted on\n/dev/vda %15d %6d %9d %3d%% /\n", limit/1024, used/1024, (limit-used)/1024, used*100/limit)
	return 0
}
