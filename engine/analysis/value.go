package analysis

import (
	"path"
	"strings"
)

// A value is text known at the time of reading, in which each part that only
// running the program would tell is one unknown byte. NUL cannot occur in a
// shell word or a path, so it stands for itself nowhere.
const unknown = "\x00"

// background is what $! holds: the action's own background process.
const background = "\x00!"

// temporary is the name that mktemp and its kin choose.
const temporary = "\x00tmp"

// code is text to be parsed, with the way back to the action's text.
type code struct {
	text  string
	at    []int32 // of each byte, where the action's text has it; nil: the same place
	fixed *Span   // all of it is shown by this span
	via   string  // the script it comes from
}

// span maps a range of the code to the action's text.
func (c code) span(start, end int) Span {
	if c.fixed != nil {
		return *c.fixed
	}
	if c.at == nil {
		return Span{start, end}
	}
	start, end = max(start, 0), min(end, len(c.at))
	if start >= end {
		if len(c.at) == 0 {
			return Span{}
		}
		start = min(start, len(c.at)-1)
		end = start + 1
	}
	lo, hi := c.at[start], c.at[end-1]+1
	if hi <= lo {
		hi = lo + 1
	}
	return Span{int(lo), int(hi)}
}

// slice is a part of the code.
func (c code) slice(start, end int) code {
	out := code{text: c.text[start:end], fixed: c.fixed, via: c.via}
	if c.fixed == nil {
		if c.at != nil {
			out.at = c.at[start:end]
		} else {
			out.at = make([]int32, end-start)
			for i := range out.at {
				out.at[i] = int32(start + i)
			}
		}
	}
	return out
}

// writer builds code piece by piece.
type writer struct {
	src code
	b   []byte
	at  []int32
}

// maxValue bounds a value: loops and repeated doubling must not grow it.
const maxValue = 256 << 10

// text appends bytes that all come from one place of the source.
func (w *writer) text(s string, at int) {
	if len(w.b)+len(s) > maxValue {
		s = s[:max(0, maxValue-len(w.b))]
	}
	pos := int32(w.src.span(at, at+1).Start)
	for i := range len(s) {
		w.b = append(w.b, s[i])
		w.at = append(w.at, pos)
	}
}

func (w *writer) byte(c byte, at int) {
	if len(w.b) < maxValue {
		w.b = append(w.b, c)
		w.at = append(w.at, int32(w.src.span(at, at+1).Start))
	}
}

func (w *writer) code() code {
	return code{text: string(w.b), at: w.at, fixed: w.src.fixed, via: w.src.via}
}

// shown is a value as people read it.
func shown(v string) string {
	v = strings.ReplaceAll(strings.ReplaceAll(v, background, "$!"), temporary, unknown)
	for strings.Contains(v, unknown+unknown) {
		v = strings.ReplaceAll(v, unknown+unknown, unknown)
	}
	return clip(strings.ReplaceAll(v, unknown, "…"), 200)
}

// clip cuts text to at most n bytes at a rune's start.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// join resolves a path against a folder; both may have unknown parts.
func join(dir, p string) string {
	if strings.HasPrefix(p, unknown) && !strings.HasPrefix(p, unknown+"/") {
		return p // nobody knows whether it is absolute
	}
	if !strings.HasPrefix(p, "/") {
		if dir == "" {
			dir = unknown
		}
		p = dir + "/" + p
	}
	if strings.HasPrefix(p, unknown) {
		return path.Clean(p)
	}
	return path.Clean("/" + p)
}

// scratchRoots are the places that hold nothing that lasts and that nothing
// reads at start.
var scratchRoots = []string{"/tmp/", "/var/tmp/", "/dev/shm/", "/dev/fd/", "/dev/pts/", "/proc/self/", "/run/user/", "/private/tmp/"}

var scratchFiles = map[string]bool{
	"/tmp": true, "/var/tmp": true, "/dev/shm": true, "/dev/null": true, "/dev/zero": true, "/dev/full": true, "/dev/tty": true,
	"/dev/stdout": true, "/dev/stderr": true, "/dev/stdin": true, "/dev/console": true, "/dev/random": true, "/dev/urandom": true,
	":memory:": true, "-": true,
}

// scratch tells whether a resolved path is a temporary place.
func scratch(p string) bool {
	if scratchFiles[p] {
		return true
	}
	for _, root := range scratchRoots {
		if strings.HasPrefix(p, root) {
			return true
		}
	}
	return false
}

// hasGlob tells whether a path is a pattern rather than a name.
func hasGlob(p string) bool { return strings.ContainsAny(p, "*?[{") }
