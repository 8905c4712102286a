package transcript

import (
	"strings"

	"refbox/engine/transcript/skim"
)

func (c *claude) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(c.src, e.off, e.length)
	c.bodies(r, b, e, int(e.block), false)
	if err := r.Err(); err != nil {
		return rawRecord(c.src, e, limit)
	}
	if e.resLength > 0 {
		r := reader(c.src, e.resOff, e.resLength)
		c.bodies(r, b, e, int(e.resBlock), true)
	}
	return f, nil
}

// bodies takes one block of a record. The rich result beside a message says what
// the block's content says, in parts; it is taken instead where it splits
// standard error from output, and for patches.
func (c *claude) bodies(r *skim.Reader, b *bodies, e entry, block int, result bool) {
	var rich Full
	start, before := r.Offset(), len(b.f.Parts)
	if r.Kind() != skim.Object {
		b.json(r, PartData, "")
		return
	}
	for key := range r.Keys() {
		switch key {
		case "cwd":
			if !result {
				b.f.WorkDir = r.Str(4096)
			}
		case "toolUseResult", "tool_use_result":
			if result {
				claudeRich(r, &bodies{f: &rich, limit: b.limit})
			}
		case "message":
			if r.Kind() != skim.Object {
				b.text(r, PartMessage, "")
				continue
			}
			for key := range r.Keys() {
				switch key {
				case "model":
					b.f.Model = r.Str(200)
				case "content":
					if r.Kind() == skim.String {
						b.text(r, PartMessage, "")
						continue
					}
					for n := range r.Items() {
						if n == block {
							c.block(r, b, e)
						}
					}
				}
			}
		}
	}
	if !result && len(b.f.Parts) == before && r.Err() == nil && e.kind != Thinking {
		r.Return(start)
		c.other(r, b)
	}
	if _, ok := rich.Part(PartError); ok && result {
		kept := b.f.Parts[:0]
		for _, p := range b.f.Parts {
			if p.Role != PartOutput {
				kept = append(kept, p)
			}
		}
		b.f.Parts = append(kept, rich.Parts...)
	} else if result {
		b.f.Parts = append(b.f.Parts, rich.All(PartPatch)...)
	}
}

func claudeRich(r *skim.Reader, b *bodies) {
	if r.Kind() != skim.Object {
		return
	}
	for key := range r.Keys() {
		switch key {
		case "stdout":
			b.text(r, PartOutput, "")
		case "stderr":
			b.text(r, PartError, "stderr")
		case "structuredPatch":
			b.patch(r)
		}
	}
}

// patch takes hunks as Claude Code notes them.
func (b *bodies) patch(r *skim.Reader) {
	var text strings.Builder
	for range r.Items() {
		var oldStart, oldLines, newStart, newLines int64
		var lines []string
		for key := range r.Keys() {
			switch key {
			case "oldStart":
				oldStart, _ = r.Int()
			case "oldLines":
				oldLines, _ = r.Int()
			case "newStart":
				newStart, _ = r.Int()
			case "newLines":
				newLines, _ = r.Int()
			case "lines":
				for range r.Items() {
					if line := r.Str(b.limit); text.Len() < b.limit && len(lines) < 100_000 {
						lines = append(lines, line)
					}
				}
			}
		}
		if text.Len() < b.limit {
			text.WriteString(hunk(oldStart, oldLines, newStart, newLines, lines))
		}
	}
	b.say(PartPatch, "", text.String())
}

func (c *claude) block(r *skim.Reader, b *bodies, e entry) {
	if r.Kind() != skim.Object {
		b.json(r, PartData, "")
		return
	}
	at := r.Offset()
	var kind, name string
	input, content := int64(-1), int64(-1)
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(64)
		case "name":
			name = r.Str(200)
		case "id", "tool_use_id":
			b.f.CallID = r.Str(200)
		case "input":
			input = r.Offset()
		case "content":
			content = r.Offset()
		}
	}
	end := r.Offset()
	switch {
	case r.Err() != nil:
		return
	case input >= 0 && (kind == "tool_use" || kind == "server_tool_use"):
		r.Return(input)
		b.arguments(name, e.class, r)
	case content >= 0 && strings.HasSuffix(kind, "tool_result"):
		r.Return(content)
		role := PartOutput
		if e.outcome == Failed {
			role = PartError
		}
		b.content(r, role)
	default:
		r.Return(at)
		role := PartMessage
		if e.kind == Output {
			role = PartOutput
		}
		b.piece(r, role)
	}
	if r.Err() == nil {
		r.Return(end)
	}
}

// other takes a record that is no message.
func (c *claude) other(r *skim.Reader, b *bodies) {
	start := r.Offset()
	if r.Kind() == skim.Object {
		kind := ""
		for key := range r.Keys() {
			switch key {
			case "type":
				kind = r.Str(64)
				b.say(PartDescription, "", kind)
			case "subtype", "operation":
				b.say(PartDescription, key, r.Str(64))
			case "content", "summary", "lastPrompt", "title", "aiTitle":
				if r.Kind() == skim.String {
					b.text(r, PartMessage, key)
				}
			}
		}
	} else {
		r.Skip()
	}
	r.Return(start)
	b.json(r, PartData, "")
}
