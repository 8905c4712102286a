package transcript

import (
	"strings"

	"refbox/engine/transcript/skim"
)

// body decodes a step that lies in src; open gives the sample's other files.
func (n *inspect) body(src blob, e entry, limit int, open func(file uint32) (blob, func(), error)) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	b.resolve = func(ref string) (string, int64, bool) {
		key, ok := strings.CutPrefix(ref, "attachment://")
		if !ok || len(key) > 200 {
			return "", 0, false
		}
		n.mu.Lock()
		at, ok := n.pools[e.agent].get(key)
		n.mu.Unlock()
		if !ok {
			return "", 0, false
		}
		in, release, err := open(at.file)
		if err != nil {
			return "", 0, false
		}
		defer release()
		s, size := reader(in, at.off, at.length).Text(limit)
		return s, size, true
	}
	n.record(reader(src, e.off, e.length), b, e)
	if e.resLength > 0 {
		r := reader(src, e.resOff, e.resLength)
		n.result(r, b, e)
	}
	if len(f.Parts) == 0 && e.kind != Thinking {
		return rawRecord(src, e, limit)
	}
	return f, nil
}

func (p *pool) get(key string) (place, bool) {
	if p == nil {
		return place{}, false
	}
	at, ok := p.texts[key]
	return at, ok
}

func (n *inspect) result(r *skim.Reader, b *bodies, e entry) {
	output := PartOutput
	if e.outcome == Failed || e.outcome == TimedOut {
		output = PartError
	}
	for key := range r.Keys() {
		switch key {
		case "content":
			b.content(r, output)
		case "error", "tool_error":
			b.fault(r)
		}
	}
}

// fault takes an error: a text, or {type, message}.
func (b *bodies) fault(r *skim.Reader) {
	switch r.Kind() {
	case skim.String:
		b.text(r, PartError, "")
	case skim.Object:
		kind, at := "", int64(-1)
		for key := range r.Keys() {
			switch key {
			case "type":
				kind = short(r, 64)
			case "message":
				at = r.Offset()
			}
		}
		r.Back(at, func() { b.text(r, PartError, kind) })
	}
}

func (n *inspect) record(r *skim.Reader, b *bodies, e entry) {
	start := r.Offset()
	at := map[string]int64{}
	for key := range r.Keys() {
		if len(at) < 100 {
			at[key] = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	take := func(key string, read func()) {
		if off, ok := at[key]; ok {
			r.Return(off)
			read()
		}
	}
	defer r.Return(end)
	kind := ""
	take("event", func() { kind = r.Str(64) })
	switch {
	case e.kind == ToolCall && kind == "tool":
		name := ""
		take("function", func() { name = r.Str(200) })
		take("id", func() { b.f.CallID = short(r, 200) })
		take("arguments", func() { b.arguments(name, e.class, r) })
		take("result", func() { b.content(r, PartOutput) })
		take("error", func() { b.fault(r) })
	case e.kind == ToolCall:
		take("tool_calls", func() {
			for i := range r.Items() {
				if i == int(e.block)-2 {
					b.call(r, e.class, "id", "function")
				}
			}
		})
	case kind == "model":
		take("model", func() { b.f.Model = short(r, 200) })
		take("output", func() {
			for key := range r.Keys() {
				if key != "choices" {
					continue
				}
				for i := range r.Items() {
					if i > 0 {
						continue
					}
					for key := range r.Keys() {
						if key == "message" {
							n.words(r, b, e)
						}
					}
				}
			}
		})
		take("error", func() { b.fault(r) })
		if e.kind == State {
			b.say(PartDescription, "", "model turn")
		}
	case kind == "sandbox":
		take("action", func() { b.say(PartDescription, "", short(r, 64)) })
		take("cmd", func() { b.text(r, PartCommand, "") })
		take("file", func() { b.text(r, PartPath, "") })
		take("input", func() { b.content(r, PartInput) })
		take("output", func() { b.content(r, PartOutput) })
		take("result", func() {
			if code, ok := r.Int(); ok {
				b.exit(code)
			}
		})
	case kind == "sample_init":
		take("sample", func() {
			for key := range r.Keys() {
				if key == "input" {
					n.input(r, b)
				}
			}
		})
	case kind == "input":
		take("input", func() { b.content(r, PartMessage) })
	case kind == "":
		r.Return(start)
		n.words(r, b, e)
	}
	if e.kind == State || e.kind == Marker || e.kind == Lifecycle || e.kind == Unknown {
		if kind != "" && kind != "model" {
			b.say(PartDescription, "", kind)
			for _, key := range []string{"name", "message", "explanation", "source", "type"} {
				take(key, func() {
					if r.Kind() == skim.String {
						b.text(r, PartMessage, key)
					}
				})
			}
		}
		if kind != "model" { // it repeats the whole conversation
			r.Return(start)
			b.json(r, PartData, "")
		}
	}
}

// input takes a sample's input: a text, or messages.
func (n *inspect) input(r *skim.Reader, b *bodies) {
	if r.Kind() != skim.Array {
		b.content(r, PartMessage)
		return
	}
	for range r.Items() {
		for key := range r.Keys() {
			if key == "content" {
				b.content(r, PartMessage)
			}
		}
	}
}

// words takes a message's words, or its reasoning.
func (n *inspect) words(r *skim.Reader, b *bodies, e entry) {
	for key := range r.Keys() {
		switch key {
		case "model":
			b.f.Model = short(r, 200)
		case "content":
			if r.Kind() != skim.Array {
				if e.kind != Thinking {
					b.content(r, PartMessage)
				}
				continue
			}
			for range r.Items() {
				n.part(r, b, e)
			}
		}
	}
}

func (n *inspect) part(r *skim.Reader, b *bodies, e entry) {
	at := r.Offset()
	kind, redacted := "", false
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(32)
		case "redacted":
			redacted, _ = r.Bool()
		}
	}
	if r.Err() != nil || (kind == "reasoning") != (e.kind == Thinking) || len(b.f.Parts) > maxParts {
		return
	}
	end := r.Offset()
	if redacted {
		b.sealed("redacted reasoning", end-at)
		return
	}
	r.Return(at)
	b.piece(r, PartMessage)
	if r.Err() == nil {
		r.Return(end)
	}
}
