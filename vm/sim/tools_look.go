package sim

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
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
