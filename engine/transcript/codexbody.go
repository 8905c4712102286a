package transcript

import (
	"refbox/engine/transcript/skim"
)

func (c *codex) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	c.bodies(reader(c.src, e.off, e.length), b, e, false)
	if e.resLength > 0 {
		c.bodies(reader(c.src, e.resOff, e.resLength), b, e, true)
	}
	if len(f.Parts) == 0 && e.kind != Thinking {
		return rawRecord(c.src, e, limit)
	}
	return f, nil
}

func (c *codex) bodies(r *skim.Reader, b *bodies, e entry, result bool) {
	start := r.Offset()
	payload := start
	for key := range r.Keys() {
		if key == "payload" {
			payload = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	r.Return(payload)
	output := PartOutput
	if e.outcome == Failed {
		output = PartError
	}
	var name, inner string
	args := int64(-1)
	for key := range r.Keys() {
		switch key {
		case "name", "tool":
			name = r.Str(200)
		case "type":
			if inner = r.Str(64); e.kind != Message && e.kind != ToolCall && e.kind != Thinking {
				b.say(PartDescription, "", inner)
			}
		case "call_id":
			b.f.CallID = r.Str(200)
		case "arguments", "input", "action":
			args = r.Offset()
		case "content":
			role := PartMessage
			if e.kind == Thinking {
				role = PartReasoning
			}
			b.content(r, role)
		case "summary":
			if e.kind == Thinking {
				b.content(r, PartReasoning)
			}
		case "message", "text":
			b.text(r, PartMessage, "")
		case "encrypted_content":
			if r.Kind() == skim.String {
				_, n := r.Text(1)
				b.sealed("encrypted", n)
			}
		case "output":
			if r.Kind() == skim.Object {
				b.wrapped(r, output)
				continue
			}
			before := len(b.f.Parts)
			b.content(r, output)
			if len(b.f.Parts) > before {
				if exit, ok, _ := codexEmbedded(head(b.f.Parts[before].Text.raw, 2048)); ok {
					b.exit(exit)
				}
			}
		case "aggregated_output", "stdout":
			b.text(r, output, "")
		case "stderr":
			b.text(r, PartError, "stderr")
		case "exit_code":
			if n, ok := r.Int(); ok {
				b.exit(n)
			}
		case "model":
			b.f.Model = r.Str(200)
		case "cwd":
			b.f.WorkDir = r.Str(4096)
		}
	}
	if args >= 0 && !result && r.Err() == nil {
		r.Return(args)
		if r.Kind() == skim.String && e.class != Edit {
			b.arguments(name, e.class, r)
		} else if r.Kind() == skim.String {
			b.text(r, PartPatch, "")
		} else {
			b.arguments(name, Shell, r)
		}
	}
	if e.kind == State || e.kind == Lifecycle || e.kind == Unknown {
		r.Return(start)
		b.json(r, PartData, "")
	}
}

// wrapped takes {content, success} as older versions wrote results.
func (b *bodies) wrapped(r *skim.Reader, role Role) {
	for key := range r.Keys() {
		if key == "content" || key == "output" || key == "text" {
			b.content(r, role)
		}
	}
}

func (b *bodies) exit(n int64) {
	if n >= -1<<31 && n < 1<<31 {
		code := int(n)
		b.f.Exit = &code
	}
}

func head(s string, n int) string { return s[:min(len(s), n)] }
