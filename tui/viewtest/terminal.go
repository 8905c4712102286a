package viewtest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"refbox/engine/text"
)

// ownModes are the private modes that the program sets and resets: the cursor, the
// other screen, pasting in brackets, whole frames, the mouse.
var ownModes = []string{"25", "1049", "2004", "2026", "1000", "1002", "1003", "1006"}

// Repertoire is an error unless everything that a terminal received is what the program
// itself draws with: text that text.Line would let through, SGR, the movements and the
// erasing that the library's renderer uses, its modes, the one window title, and copies
// of clean text. It says what and where. What kernel and shell add, "\r\n" for a line's
// end, is part of it.
func Repertoire(raw []byte) error {
	var state byte
	p := ansi.NewParser()
	p.SetDataSize(2 << 20)
	at := 0
	fault := func(what string, seq string) error {
		from, to := max(0, at-60), min(len(raw), at+len(seq)+60)
		return fmt.Errorf("byte %d: %s %q, in %q", at, what, seq, raw[from:to])
	}
	for at < len(raw) {
		seq, width, n, next := ansi.DecodeSequence(string(raw[at:]), state, p)
		switch {
		case strings.HasPrefix(seq, "\x1b["):
			cmd := ansi.Cmd(p.Command())
			switch final, prefix := cmd.Final(), cmd.Prefix(); {
			case cmd.Intermediate() != 0:
				return fault("a sequence that is not ours", seq)
			case prefix == 0 && strings.ContainsRune("mABCDHKJGXLM", rune(final)):
			case prefix == '?' && (final == 'h' || final == 'l'):
				if !slices.Contains(ownModes, seq[3:len(seq)-1]) {
					return fault("a mode that is not ours", seq)
				}
			default:
				return fault("a sequence that is not ours", seq)
			}
		case strings.HasPrefix(seq, "\x1b]2;"):
			if seq != "\x1b]2;refbox\a" {
				return fault("a title that is not ours", seq)
			}
		case strings.HasPrefix(seq, "\x1b]52;c;"):
			copied, err := base64.StdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(seq, "\x1b]52;c;"), "\a\x1b\\"))
			if err != nil || text.Block(string(copied)) != string(copied) {
				return fault("a copy of what is not clean", seq)
			}
		case strings.ContainsRune(seq, 0x1b), seq == "":
			return fault("a sequence that is not ours", seq)
		case seq == "\n", seq == "\r":
		case seq == "\x1b", width == 0 && strings.TrimLeftFunc(seq, func(r rune) bool { return unicode.Is(unicode.Mn, r) }) != "":
			return fault("what has no width", seq)
		case !utf8.ValidString(seq):
			return fault("what is not UTF-8", seq)
		default:
			for _, r := range seq {
				if r < ' ' || r >= 0x7f && r < 0xa0 || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) {
					return fault("a character that controls", seq)
				}
			}
		}
		at, state = at+n, next
	}
	return nil
}
