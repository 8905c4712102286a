package transcript

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"refbox/engine/transcript/skim"
)

// openCodeExport is a session in one file, as the export or a dump writes it.
type openCodeExport struct {
	*document
	log *openCode
}

func openOpenCode(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	o := &openCodeExport{d, newOpenCode(x)}
	d.parse = o.read
	return o, nil
}

func (o *openCodeExport) read(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "info", "session":
			o.log.session(r, 0)
		case "messages":
			for i := range r.Items() {
				o.message(r, i)
				if !o.pause() {
					return
				}
			}
		}
	}
	o.log.flush()
}

func (o *openCodeExport) message(r *skim.Reader, pos int) {
	info, parts := int64(-1), int64(-1)
	for key := range r.Keys() {
		switch key {
		case "info", "data":
			info = r.Offset()
		case "parts":
			parts = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	var m openCodeMessage
	if info >= 0 {
		r.Return(info)
		m = o.log.message(r)
	}
	if parts >= 0 {
		r.Return(parts)
		for range r.Items() {
			r.Kind()
			e := step(Unknown, NoActor, r.Offset(), 0)
			e.pos = int32(min(pos, 1<<30))
			o.part(r, e, m)
		}
	}
	if r.Err() == nil {
		r.Return(end)
	}
}

// part finds the part inside of a dump's row.
func (o *openCodeExport) part(r *skim.Reader, e entry, m openCodeMessage) {
	data := int64(-1)
	for key := range r.Keys() {
		if key == "data" && r.Kind() == skim.Object {
			data = r.Offset()
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	if data >= 0 {
		e.off = data
	}
	r.Return(e.off)
	o.log.part(r, e, m)
	if r.Err() == nil {
		r.Return(end)
	}
}

func (o *openCodeExport) full(e entry, limit int) (Full, error) {
	if e.kind == Unknown {
		return rawRecord(o.src, e, limit)
	}
	return openCodeBody(reader(o.src, e.off, e.length), e, limit)
}

// openCodeStream is what `opencode run --format json` prints: a part per line.
type openCodeStream struct {
	*lines
	log *openCode
}

func openOpenCodeStream(x *index, st *store, name string) (importer, error) {
	l, err := newLines(x, st, name)
	if err != nil {
		return nil, err
	}
	o := &openCodeStream{l, newOpenCode(x)}
	l.record = o.read
	return o, nil
}

func (o *openCodeStream) read(r *skim.Reader, s span) error {
	part, at, kind := int64(-1), int64(noTime), ""
	object := r.Kind() == skim.Object
	for key := range r.Keys() {
		switch key {
		case "part":
			part = r.Offset()
		case "timestamp":
			at = epochMS(r)
		case "type":
			kind = r.Str(64)
		case "sessionID":
			o.x.label(&o.x.info.Session, r.Str(200))
		}
	}
	if !r.AtEnd() {
		if r.Err() == nil {
			return &skim.SyntaxError{Offset: r.Offset(), What: "more behind the record"}
		}
		return r.Err()
	}
	e := step(Lifecycle, System, s.off, s.length)
	e.at, e.pos = at, int32(s.line-1)
	if s.giant {
		e.flags |= Giant
	}
	switch {
	case !object || part < 0 && kind != "error":
		oddRecord(o.x, s, "a line without a part")
	case part < 0:
		e.outcome = Failed
		o.x.add(e)
	default:
		r.Return(part)
		e.kind, e.actor = Unknown, NoActor
		o.log.part(r, e, openCodeMessage{at: at})
	}
	return nil
}

func (o *openCodeStream) full(e entry, limit int) (Full, error) {
	if e.kind == Unknown {
		return rawRecord(o.src, e, limit)
	}
	return openCodeBody(reader(o.src, e.off, e.length), e, limit)
}

// openCodeTree is the older storage: a file per session, message and part.
type openCodeTree struct {
	x     *index
	st    *store
	log   *openCode
	root  string
	todo  []treeMessage
	at    int
	bytes int64
}

type treeMessage struct {
	session, id string
	lane        uint16
	file        string
}

func openOpenCodeTree(x *index, st *store, name string) (importer, error) {
	o := &openCodeTree{x: x, st: st, log: newOpenCode(x), root: name}
	type session struct{ id, parent, file string }
	var sessions []session
	for _, dir := range append([]string{"info/"}, st.list(path.Join(name, "session"))...) {
		if !strings.HasSuffix(dir, "/") {
			continue
		}
		for _, f := range st.list(path.Join(name, "session", dir)) {
			file := path.Join(name, "session", dir, f)
			if !strings.HasSuffix(f, ".json") || slices.ContainsFunc(sessions, func(s session) bool { return s.file == file }) {
				continue
			}
			b, err := st.read(file, 1<<20)
			if err != nil || len(sessions) >= maxNames {
				continue
			}
			s := session{id: stem(f), file: file}
			r := skim.Bytes(b, 0)
			for key := range r.Keys() {
				if key == "parentID" {
					s.parent = short(r, 200)
				}
			}
			sessions = append(sessions, s)
		}
	}
	if len(sessions) == 0 {
		return nil, fmt.Errorf("a storage tree without sessions: %w", ErrFormat)
	}
	lanes := map[string]uint16{}
	for i, s := range sessions {
		lane := uint16(0)
		if i == 0 {
			x.changeAgent(0, func(a *AgentInfo) { a.ID = label(s.id) })
		} else {
			lane = x.agent(AgentInfo{ID: s.id, Parent: -1, Step: -1})
		}
		lanes[s.id] = lane
		if b, err := st.read(s.file, 1<<20); err == nil {
			o.log.session(skim.Bytes(b, 0), lane)
		}
	}
	for _, s := range sessions {
		if parent, ok := lanes[s.parent]; ok && s.parent != s.id {
			x.changeAgent(int(lanes[s.id]), func(a *AgentInfo) { a.Parent = int(parent) })
		}
		dir := path.Join("message", s.id)
		if !st.isDir(path.Join(name, dir)) {
			dir = path.Join("session", "message", s.id)
		}
		for _, f := range st.list(path.Join(name, dir)) {
			if strings.HasSuffix(f, ".json") && len(o.todo) < maxListed {
				o.todo = append(o.todo, treeMessage{s.id, stem(f), lanes[s.id], path.Join(name, dir, f)})
			}
		}
	}
	return o, nil
}

func (o *openCodeTree) advance(budget int64) (bool, error) {
	for read := int64(0); o.at < len(o.todo); o.at++ {
		if read > budget {
			return false, nil
		}
		m := o.todo[o.at]
		b, err := o.st.read(m.file, 16<<20)
		if err != nil {
			o.lost(m.file, 0, err)
			continue
		}
		read += int64(len(b)) + 4096
		r := skim.Bytes(b, 0)
		info := o.log.message(r)
		if r.Err() != nil {
			o.lost(m.file, int64(len(b)), r.Err())
		}
		o.bytes += int64(len(b))
		dir := path.Join(o.root, "part", m.id)
		if !o.st.isDir(dir) {
			dir = path.Join(o.root, "session", "part", m.session, m.id)
		}
		for _, f := range o.st.list(dir) {
			if strings.HasSuffix(f, ".json") {
				read += o.part(path.Join(dir, f), m.lane, info)
			}
		}
		o.x.progress(o.bytes, 1)
	}
	o.log.flush()
	return true, nil
}

func (o *openCodeTree) part(name string, lane uint16, m openCodeMessage) int64 {
	b, err := o.st.open(name)
	if err != nil {
		o.lost(name, 0, err)
		return 0
	}
	defer b.Close()
	size := sizeOf(b)
	o.bytes += size
	e := step(Unknown, NoActor, 0, size)
	e.file, e.agent = o.x.file(name), lane
	r := reader(b, 0, size)
	if o.log.part(r, e, m); r.Err() != nil {
		o.lost(name, size, r.Err())
	}
	return size + 4096
}

func (o *openCodeTree) lost(name string, size int64, err error) {
	o.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "damaged-record", File: name, Step: -1, Length: size, Text: "not readable: " + err.Error()})
}

func (o *openCodeTree) blob(file uint32) (blob, func(), error) {
	b, err := o.st.open(o.x.fileName(file))
	if err != nil {
		return nil, nil, err
	}
	return b, func() { b.Close() }, nil
}

func (o *openCodeTree) full(e entry, limit int) (Full, error) {
	b, release, err := o.blob(e.file)
	if err != nil {
		return Full{}, err
	}
	defer release()
	return openCodeBody(reader(b, e.off, e.length), e, limit)
}

func (o *openCodeTree) size() int64  { return o.bytes }
func (o *openCodeTree) close() error { return nil }
