// Package redact finds keys, tokens and passwords in text, and takes them out of
// what leaves this host.
//
// It hides what secrets look like: the marked forms that issuers give their keys
// (a prefix, a length, an alphabet), and places that hold one whatever it looks
// like (an Authorization header, a URL's password, an assignment to a name such as
// API_TOKEN).
//
// Guarantees: work is linear in the text; what is not a secret stays byte for
// byte; hashes, UUIDs and identifiers alone are no secrets; a mark names the kind
// of what was there, and never holds a part of it. It can miss a secret that has
// neither a form nor a name.
//
// The idea and many of the forms are those of gitleaks' rules (MIT). The library
// itself brings 55 modules (archives, a configuration framework, a logger), and
// finds lines rather than spans; Google's veles reports where a secret begins and
// not where it ends. So the table is here, bounded, and each rule has a test.
package redact

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Redactor takes secrets out of the texts of one export and counts them. The nil
// Redactor leaves everything as it is. Methods may be called from any goroutine.
type Redactor struct {
	mu     sync.Mutex
	counts map[string]int
}

// Text is s with each secret replaced by a mark such as "[redacted jwt]".
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	found := find(s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(s[at:f.start])
		b.WriteString(mark(f.kind))
		at = f.end
	}
	b.WriteString(s[at:])
	r.count(found)
	return b.String()
}

// Chunks redacts a stream that was recorded in pieces: a secret is found also where
// it lies in several of them. The result has as many pieces; the mark is in the
// first that the secret touched.
func (r *Redactor) Chunks(list []string) []string {
	if r == nil {
		return list
	}
	whole := strings.Join(list, "")
	found := find(whole)
	if len(found) == 0 {
		return list
	}
	out := make([]string, len(list))
	at, next := 0, 0
	for i, piece := range list {
		end := at + len(piece)
		var b strings.Builder
		for pos := at; pos < end; {
			for next < len(found) && found[next].end <= pos {
				next++
			}
			if next == len(found) || found[next].start >= end {
				b.WriteString(whole[pos:end])
				break
			}
			f := found[next]
			if pos <= f.start {
				b.WriteString(whole[pos:f.start])
				b.WriteString(mark(f.kind))
			}
			pos = min(f.end, end)
		}
		out[i] = b.String()
		at = end
	}
	r.count(found)
	return out
}

// Value redacts every text in a decoded JSON value, names of keys included; a text
// under a key that names a secret is one. The value is not changed; a copy comes
// back.
func (r *Redactor) Value(v any) any {
	if r == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.Value(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			key := r.Text(k)
			s, ok := x.(string)
			if kind := named(k); ok && kind != "" && convincing(s) {
				r.count([]span{{kind: kind}})
				out[key] = mark(kind)
				continue
			}
			out[key] = r.Value(x)
		}
		return out
	}
	return v
}

// Count is how many secrets were replaced.
func (r *Redactor) Count() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.counts {
		n += c
	}
	return n
}

// Kinds is how many of each kind were replaced.
func (r *Redactor) Kinds() map[string]int {
	out := map[string]int{}
	if r == nil {
		return out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, n := range r.counts {
		out[k] = n
	}
	return out
}

// String says what was replaced, in words: "2 secrets redacted: 1 jwt, 1 url-password".
func (r *Redactor) String() string {
	if r == nil {
		return "secrets not redacted"
	}
	kinds := r.Kinds()
	if len(kinds) == 0 {
		return "no secrets found"
	}
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for i, k := range names {
		names[i] = fmt.Sprintf("%d %s", kinds[k], k)
	}
	n, s := r.Count(), "secrets"
	if n == 1 {
		s = "secret"
	}
	return fmt.Sprintf("%d %s redacted: %s", n, s, strings.Join(names, ", "))
}

func (r *Redactor) count(found []span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	for _, f := range found {
		r.counts[f.kind]++
	}
}

func mark(kind string) string { return "[redacted " + kind + "]" }

// span is a secret in a text.
type span struct {
	start, end int
	kind       string
}

// find returns the secrets of a text in its order, none over another: of two that
// overlap the one whose rule comes first in the table stands.
func find(s string) []span {
	var found []span
	folded := ""
	for i := range rules {
		r := &rules[i]
		in := s
		if r.fold {
			if folded == "" {
				folded = lower(s)
			}
			in = folded
		}
		for _, w := range r.words {
			for at := 0; ; {
				k := strings.Index(in[at:], w)
				if k < 0 {
					break
				}
				at += k
				start, end, ok := r.match(s, at)
				if ok {
					found = append(found, span{start, end, r.kind})
				}
				at = max(end, at+len(w))
			}
		}
	}
	if len(found) < 2 {
		return found
	}
	// Stable: rules stay in their order where spans begin together.
	slices.SortStableFunc(found, func(a, b span) int { return a.start - b.start })
	out := found[:1]
	for _, f := range found[1:] {
		last := &out[len(out)-1]
		if f.start >= last.end {
			out = append(out, f)
			continue
		}
		last.end = max(last.end, f.end)
	}
	return out
}

// reach is how far from its word a secret is looked for at first, and at most.
const (
	reach    = 512
	maxReach = 64 << 10
)

// match tries a rule where one of its words stands. When there is nothing, end is
// where to look on, or less than at.
//
// What keeps the work linear in any text: looking farther than reach ends either
// with a secret, which is not looked at again, or in a run that is left behind.
func (r *rule) match(s string, at int) (start, end int, ok bool) {
	if at > 0 && r.before != nil && !r.before(s[at-1]) {
		return 0, 0, false
	}
	for n := reach; ; n *= 8 {
		m := r.re.FindStringSubmatchIndex(s[at:min(at+n, len(s))])
		if m == nil {
			if r.run == nil {
				return r.beginning(s, at)
			}
			// A key's end may lie far from its beginning.
			if n < maxReach && at+n < len(s) {
				continue
			}
			if start, end, ok = r.beginning(s, at); !ok {
				end = at + runOf(s[at:], r.run)
			}
			return start, end, ok
		}
		start, end = m[0], m[1]
		if len(m) > 2 {
			start, end = m[2], m[3]
		}
		start, end = at+start, at+end
		if start >= end || r.check != nil && !r.check(s[start:min(end, start+reach)]) {
			return r.beginning(s, at)
		}
		if m[1] == n && at+n < len(s) && n < maxReach {
			continue
		}
		return start, end, true
	}
}

// runOf is how many bytes of a kind s begins with.
func runOf(s string, of func(byte) bool) int {
	for i := range len(s) {
		if !of(s[i]) {
			return i
		}
	}
	return len(s)
}

// beginning finds what is left of a secret that was cut for showing.
func (r *rule) beginning(s string, at int) (start, end int, ok bool) {
	if r.cut == nil {
		return 0, 0, false
	}
	n := r.cut(s[at:min(at+reach, len(s))])
	return at, at + n, n >= 0
}

// lower is s with ASCII letters in lower case; offsets stay.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
