package transcript

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"refbox/engine/transcript/skim"
)

// reader reads a record: a small one from memory, a large one where it lies.
func reader(src io.ReaderAt, off, length int64) *skim.Reader {
	if length > stride {
		return skim.At(src, off, off+length)
	}
	b := make([]byte, max(length, 0))
	n, _ := io.ReadFull(io.NewSectionReader(src, off, length), b)
	return skim.Bytes(b[:n], off)
}

// rawRecord is a step whose record cannot be read: its bytes as they lie.
func rawRecord(src io.ReaderAt, e entry, limit int) (Full, error) {
	b := make([]byte, min(max(e.length, 0), int64(limit)))
	n, err := src.ReadAt(b, e.off)
	if n == 0 && err != nil && err != io.EOF {
		return Full{}, err
	}
	raw := seal(string(b[:n]))
	return Full{Parts: []Part{{PartData, "as it lies on disk", Text{raw, max(e.length, int64(len(raw)))}}}}, nil
}

// hunk writes lines that begin with "+", "-" or " " as a part of a unified diff.
func hunk(oldStart, oldLines, newStart, newLines int64, lines []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", oldStart, oldLines, newStart, newLines)
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// sealedKeys hold what a provider encrypted or signed: for no reader's eyes, and of
// no use to one.
var sealedKeys = regexp.MustCompile(`("(?:encrypted_content|encryptedContent|reasoning_encrypted|signature|thoughtSignature|thinkingSignature|reasoning_opaque)"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// sealedBlocks are whole blocks of that kind, as far as they name it first.
var sealedBlocks = regexp.MustCompile(`("type"\s*:\s*"(?:redacted_thinking|reasoning\.encrypted)"[^{}]{0,200}"data"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// privateKeys hold reasoning: a record that is shown as JSON, because it is damaged
// or unknown, must not tell what the steps of kind Thinking hide.
var privateKeys = regexp.MustCompile(`("(?:thinking|reasoning|reasoning_content|reasoning_text)"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// sealWords are in every text that one of these can match.
var sealWords = []string{"crypted", "ignature", "redacted", "opaque", "thinking", "reasoning"}

// seal takes encrypted content and private reasoning out of JSON text, also out of
// a beginning of one.
func seal(s string) string {
	if !slices.ContainsFunc(sealWords, func(w string) bool { return strings.Contains(s, w) }) {
		return s
	}
	s = sealedKeys.ReplaceAllString(s, `$1"⟨sealed⟩"`)
	s = sealedBlocks.ReplaceAllString(s, `$1"⟨sealed⟩"`)
	return privateKeys.ReplaceAllString(s, `$1"⟨private reasoning⟩"`)
}
