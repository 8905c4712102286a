package recording

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"refbox/engine/archive"
	"refbox/engine/text"
)

// likeness tells one log from another: the hash of its length, its beginning and
// its end, which of a log of up to 2 MiB is all of it. "" for a log that is empty
// or still written.
func (r *Recording) likeness() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || r.live || r.total == 0 {
		return ""
	}
	const part = 1 << 20
	h := sha256.New()
	fmt.Fprintln(h, r.total)
	head := min(r.total, part)
	tail := min(r.total-head, part)
	for _, s := range []*io.SectionReader{io.NewSectionReader(r.file, 0, head), io.NewSectionReader(r.file, r.total-tail, tail)} {
		if _, err := io.Copy(h, s); err != nil {
			return ""
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// MarkSame notes in each summary of a list which others have the same log: one
// match under several names. It may be called again when the list has grown.
func MarkSame(list []Summary) {
	by := map[string][]int{}
	for i, s := range list {
		if s.likeness != "" {
			by[s.likeness] = append(by[s.likeness], i)
		}
	}
	for i := range list {
		s := &list[i]
		var others []string
		for _, j := range by[s.likeness] {
			// A heat beside its own bundle goes by one name.
			if j != i && list[j].Path != s.Path && archive.Stem(list[j].Name) != archive.Stem(s.Name) {
				others = append(others, list[j].Name)
			}
		}
		var kept []Finding
		for _, f := range s.Integrity.Findings {
			if f.Code != sameMatch {
				kept = append(kept, f)
			}
		}
		if n := len(others); n > 0 {
			kept = append(kept, Finding{Severity: Note, Code: sameMatch, File: eventsFile,
				Text: text.Line(fmt.Sprintf("the same match is recorded under %d other names: %s", n, strings.Join(others[:min(n, 5)], ", ")))})
		}
		if len(others) > 0 || len(kept) != len(s.Integrity.Findings) {
			s.Integrity.Findings = kept
			s.Badge = s.Integrity.Badge()
		}
	}
}

const sameMatch = "same_match"
