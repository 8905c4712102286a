package transcript

import (
	"fmt"
	"strings"

	"refbox/engine/text"
)

// titleWidth is the most that a title takes, in cells.
const titleWidth = 200

// titleOf is one line about a step: never reasoning, never sealed content.
func titleOf(h Head, f *Full) string {
	first := func(roles ...Role) string {
		for _, role := range roles {
			for _, p := range f.Parts {
				if p.Role == role && role == PartInput {
					return text.Line(strings.Join(strings.Fields(head(p.Text.raw, 4*titleWidth)), " "))
				}
				if p.Role == role {
					if s := firstLine(p.Text.raw); s != "" {
						return s
					}
				}
			}
		}
		return ""
	}
	var s string
	switch h.Kind {
	case ToolCall:
		switch s = first(PartDescription); {
		case s != "":
		case h.Class == Shell || h.Class == Code:
			s = first(PartCommand, PartCode, PartPath, PartInput, PartOutput, PartError)
		case h.Class == Edit && first(PartPath) == "":
			s = first(PartPatch, PartCommand, PartInput)
		case h.Class == Search || h.Class == Browse:
			s = first(PartQuery, PartCommand)
			if where := first(PartPath); where != "" {
				s = strings.TrimSpace(s + " in " + where)
			}
			if s == "" {
				s = first(PartInput)
			}
		default:
			s = first(PartPath, PartQuery, PartCommand, PartCode, PartPatch, PartMessage, PartInput, PartOutput, PartError)
		}
	case Thinking:
		var size int64
		for _, p := range f.Parts {
			size += p.Text.size
		}
		s = "reasoning"
		if h.Has(Encrypted) {
			s = "encrypted reasoning"
		}
		if size > 0 {
			s += fmt.Sprintf(", %d bytes", size)
		}
	default:
		s = first(PartMessage, PartDescription, PartOutput, PartError, PartCommand, PartPatch, PartData, PartInput)
		if s == "" && len(f.Parts) > 0 {
			p := f.Parts[0]
			s = fmt.Sprintf("%s %s, %d bytes", p.Role, label(p.Label), p.Text.size)
		}
	}
	return text.Truncate(s, titleWidth, "")
}

// firstLine is the first line of a text with something to see on it.
func firstLine(raw string) string {
	for raw != "" {
		line, rest, _ := strings.Cut(raw, "\n")
		if len(line) > 4*titleWidth {
			line = line[:4*titleWidth]
		}
		if s := strings.TrimSpace(text.Line(line)); s != "" {
			return s
		}
		raw = rest
	}
	return ""
}
