package transcript

import (
	"strings"

	"refbox/engine/transcript/skim"
)

// digest reads the reference's analysis.json: all that is left of a transcript
// when only its analysis was published. Commands are cut at 700 characters,
// outputs at 280; messages are missing.
type digest struct{ *document }

func openDigest(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	g := &digest{d}
	d.parse = g.read
	x.setClock(Relative)
	x.note(Bounded, "digest", -1, 0, 0, 0, "an analysis, not the transcript: commands and outputs are cut, messages are missing")
	return g, nil
}

func (g *digest) read(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "analyzer":
			g.x.label(&g.x.info.Harness, r.Str(200))
		case "schema_version":
			g.x.label(&g.x.info.Version, short(r, 32))
		case "model":
			g.x.label(&g.x.info.Model, r.Str(200))
		case "outcome":
			g.x.label(&g.x.info.Outcome, short(r, 200))
		case "territory":
			g.x.label(&g.x.info.Territory, r.Str(200))
		case "agent":
			g.x.label(&g.x.info.Session, r.Str(200))
		case "source_sha256":
			g.x.fact(key, r.Str(100))
		case "metrics", "architecture":
			g.x.facts(r, key+".", 1)
		case "actions":
			for range r.Items() {
				g.action(r)
				if !g.pause() {
					return
				}
			}
		}
	}
	if r.Err() == nil {
		g.x.reclock()
	}
}

func (g *digest) action(r *skim.Reader) {
	r.Kind()
	e := step(ToolCall, Agent, r.Offset(), 0)
	e.class, e.outcome = Shell, Done
	tool := "Bash"
	for key := range r.Keys() {
		switch key {
		case "index":
			if n, ok := r.Int(); ok && n >= 0 && n < 1<<31 {
				e.pos = int32(n)
			}
		case "started_after_ms":
			if n, ok := r.Int(); ok {
				e.at = clampMS(n)
			}
		case "duration_ms":
			if n, ok := r.Int(); ok {
				e.dur = span32(n)
			}
		case "success":
			if ok, known := r.Bool(); known && ok {
				e.outcome = Succeeded
			} else if known {
				e.outcome = Failed
			}
		case "command":
			s, _ := r.Text(8 << 10)
			if strings.HasSuffix(s, "…") {
				e.flags |= Truncated
			}
			// What was no shell command is written as the tool and its file.
			if word, rest, _ := strings.Cut(s, " "); digestTools[word] && !strings.ContainsAny(head(rest, 200), "\n;|&") {
				tool, e.class = word, classOf(word)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	e.length = r.Offset() - e.off
	e.tool = g.x.tool(tool)
	g.x.add(e)
}

var digestTools = map[string]bool{"Write": true, "Edit": true, "MultiEdit": true, "Read": true, "Glob": true, "Grep": true,
	"NotebookEdit": true, "apply_patch": true, "write_file": true, "edit_file": true, "read_file": true}

func (g *digest) full(e entry, limit int) (Full, error) {
	var f Full
	b := newBodies(&f, e, limit)
	r := reader(g.src, e.off, e.length)
	for key := range r.Keys() {
		switch key {
		case "tool_id":
			f.CallID = r.Str(200)
		case "kind":
			f.ReferenceKind = label(r.Str(64))
		case "description":
			b.text(r, PartDescription, "")
		case "command":
			if e.class == Shell {
				b.text(r, PartCommand, "")
				continue
			}
			s, n := r.Text(limit)
			if _, rest, ok := strings.Cut(s, " "); ok && strings.HasPrefix(rest, "/") {
				b.add(PartPath, "", rest, int64(len(rest)))
				continue
			}
			b.add(PartInput, "", s, n)
		case "output_excerpt":
			role := PartOutput
			if e.outcome == Failed {
				role = PartError
			}
			b.text(r, role, "excerpt")
		}
	}
	return f, r.Err()
}
