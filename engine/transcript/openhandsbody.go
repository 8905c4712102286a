package transcript

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"refbox/engine/transcript/skim"
)

// openHandsBody decodes a step from its action and its observation.
func openHandsBody(src, resSrc blob, e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	openHandsPart(reader(src, e.off, e.length), b, e, false)
	if e.resLength > 0 {
		openHandsPart(reader(resSrc, e.resOff, e.resLength), b, e, true)
	}
	if len(f.Parts) == 0 && e.kind != Thinking {
		return rawRecord(src, e, limit)
	}
	return f, nil
}

func openHandsPart(r *skim.Reader, b *bodies, e entry, result bool) {
	start := r.Offset()
	if r.Kind() != skim.Object {
		return
	}
	at := map[string]int64{}
	for key := range r.Keys() {
		if len(at) < 100 {
			at[key] = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	take := func(key string, read func()) bool {
		off, ok := at[key]
		if ok {
			r.Return(off)
			read()
		}
		return ok
	}
	output := PartOutput
	if e.outcome == Failed {
		output = PartError
	}
	switch {
	case e.kind == Thinking:
		take("reasoning_content", func() { b.text(r, PartReasoning, "") })
	case result || e.kind == Output:
		if !take("content", func() { b.content(r, output) }) {
			take("observation", func() { b.observation(r, output) })
		}
		take("error", func() { b.fault(r) })
		take("extras", func() { b.extras(r) })
	case e.kind == ToolCall:
		tool := ""
		take("tool_name", func() { tool = r.Str(200) })
		take("tool_call_id", func() { b.f.CallID = short(r, 200) })
		take("thought", func() { b.content(r, PartMessage) })
		take("summary", func() {
			if r.Kind() == skim.String {
				b.text(r, PartDescription, "")
			}
		})
		take("tool_call_metadata", func() {
			for key := range r.Keys() {
				switch key {
				case "function_name":
					tool = r.Str(200)
				case "tool_call_id":
					b.f.CallID = short(r, 200)
				}
			}
		})
		args := func() {
			before := len(b.f.Parts)
			b.arguments(tool, e.class, r)
			for i := before; i < len(b.f.Parts); i++ {
				if b.f.Parts[i].Role == PartCode && e.class == Code {
					b.f.Parts[i].Label = "python"
				}
			}
		}
		if !take("args", args) {
			take("action", func() {
				if r.Kind() == skim.Object {
					args()
				} else if off, ok := at["extras"]; ok {
					r.Return(off)
					args()
				}
			})
		}
		take("args", func() { b.thought(r) })
	case e.kind == Message:
		found := take("llm_message", func() {
			for key := range r.Keys() {
				if key == "content" {
					b.content(r, PartMessage)
				}
			}
		})
		if !found {
			take("args", func() {
				for key := range r.Keys() {
					if key == "content" {
						b.content(r, PartMessage)
					}
				}
			})
		}
		if len(b.f.Parts) == 0 {
			take("message", func() { b.content(r, PartMessage) })
		}
		if len(b.f.Parts) == 0 {
			take("content", func() { b.content(r, PartMessage) })
		}
	default:
		for _, key := range []string{"kind", "action", "observation"} {
			take(key, func() {
				if r.Kind() == skim.String {
					b.text(r, PartDescription, key)
				}
			})
		}
		take("message", func() { b.content(r, PartMessage) })
		r.Return(start)
		b.json(r, PartData, "")
	}
}

// thought is what the agent said with an action of V0.
func (b *bodies) thought(r *skim.Reader) {
	for key := range r.Keys() {
		if key == "thought" || key == "final_thought" {
			b.content(r, PartMessage)
		}
	}
}

func (b *bodies) observation(r *skim.Reader, role Role) {
	for key := range r.Keys() {
		switch key {
		case "content", "output", "result":
			b.content(r, role)
		case "exit_code":
			if n, ok := r.Int(); ok && b.f.Exit == nil {
				b.exit(n)
			}
		case "metadata":
			b.shell(r)
		}
	}
}

func (b *bodies) extras(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "exit_code":
			if n, ok := r.Int(); ok && b.f.Exit == nil {
				b.exit(n)
			}
		case "metadata":
			b.shell(r)
		case "diff":
			if r.Kind() == skim.String {
				b.text(r, PartPatch, "")
			}
		}
	}
}

// shell takes what the metadata of a command says: it knows better.
func (b *bodies) shell(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "exit_code":
			if n, ok := r.Int(); ok {
				b.exit(n)
			}
		case "working_dir":
			b.f.WorkDir = short(r, 4096)
		}
	}
}

// openHandsDir is V1: a conversation's folder, an event per file.
type openHandsDir struct {
	x     *index
	st    *store
	log   *openHands
	names []string
	at    int
	read  int64
	have  map[string]bool
}

func openOpenHandsDir(x *index, st *store, _ string) (importer, error) {
	o := &openHandsDir{x: x, st: st, log: newOpenHands(x), have: map[string]bool{}}
	if b, err := st.read("base_state.json", 4<<20); err == nil {
		r := skim.Bytes(b, 0)
		for key := range r.Keys() {
			switch key {
			case "id":
				x.label(&x.info.Session, short(r, 200))
			case "execution_status", "agent_status":
				x.label(&x.info.Outcome, short(r, 64))
			case "agent":
				for key := range r.Keys() {
					if key == "llm" {
						for key := range r.Keys() {
							if key == "model" {
								x.label(&x.info.Model, short(r, 200))
							}
						}
					}
				}
			}
		}
	}
	o.look()
	return o, nil
}

// look finds events that were not there before.
func (o *openHandsDir) look() {
	var fresh []string
	for _, name := range o.st.list("events") {
		if strings.HasSuffix(name, ".json") && !o.have[name] && len(o.have) < maxListed {
			o.have[name] = true
			fresh = append(fresh, name)
		}
	}
	slices.SortFunc(fresh, func(a, b string) int { return cmp.Or(natural(a, b), cmp.Compare(a, b)) })
	o.names = append(o.names, fresh...)
}

func (o *openHandsDir) advance(budget int64) (bool, error) {
	if o.at == len(o.names) {
		o.look()
	}
	for read := int64(0); o.at < len(o.names); o.at++ {
		if read > budget {
			return false, nil
		}
		name := path.Join("events", o.names[o.at])
		b, err := o.st.open(name)
		if err != nil {
			o.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "unreadable-file", File: name, Step: -1, Text: err.Error()})
			continue
		}
		size := sizeOf(b)
		r := reader(b, 0, size)
		file := o.x.file(name)
		if o.log.event(r, file, 0, o.at); r.Err() != nil {
			e := step(Unknown, NoActor, 0, size)
			e.file, e.flags, e.pos = file, Damaged, int32(o.at)
			i := o.x.add(e)
			o.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "damaged-record", File: name, Step: i, Length: size, Text: "not readable: " + r.Err().Error()})
		}
		b.Close()
		read += size + 4096
		o.read += size
		o.x.progress(o.read, 1)
	}
	return true, nil
}

func (o *openHandsDir) blob(file uint32) (blob, func(), error) {
	b, err := o.st.open(o.x.fileName(file))
	if err != nil {
		return nil, nil, err
	}
	return b, func() { b.Close() }, nil
}

func (o *openHandsDir) full(e entry, limit int) (Full, error) {
	b, release, err := o.blob(e.file)
	if err != nil {
		return Full{}, err
	}
	defer release()
	res := b
	if e.resLength > 0 && e.resFile != e.file {
		var done func()
		if res, done, err = o.blob(e.resFile); err != nil {
			return Full{}, err
		}
		defer done()
	}
	return openHandsBody(b, res, e, limit)
}

func (o *openHandsDir) size() int64 { return o.read }

func (o *openHandsDir) close() error { return nil }
