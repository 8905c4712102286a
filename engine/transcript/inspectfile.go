package transcript

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"compress/flate"

	"github.com/klauspost/compress/zstd"

	"refbox/engine/transcript/skim"
)

// inspectJSON is a log that is one JSON file.
type inspectJSON struct {
	*document
	log *inspect
}

func openInspectJSON(x *index, st *store, name string) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	i := &inspectJSON{d, newInspect(x)}
	d.parse = func(r *skim.Reader) {
		i.log.header(r, func(r *skim.Reader) bool {
			i.log.sample(r, 0, i.log.lane("sample"), d.pause)
			return d.pause()
		})
	}
	return i, nil
}

func (i *inspectJSON) full(e entry, limit int) (Full, error) {
	return i.log.body(i.src, e, limit, i.blob)
}

// inspectEval is a log that is an archive: a header and a member per sample, or,
// for chunked samples, members for stretches of it.
type inspectEval struct {
	x     *index
	st    *store
	name  string
	src   blob
	began int64
	log   *inspect
	spool *spool
	units []evalUnit
	at    int
	cur   *document
	done  func() // releases what cur reads
	read  int64
}

// evalUnit is a member to read.
type evalUnit struct {
	kind   string // header, sample, events, attachments
	lane   string
	member int // in spool
	size   int64
}

// methodZstd is zstandard's number in zip archives.
const methodZstd = 93

func openInspectEval(x *index, st *store, name string) (importer, error) {
	src, err := st.open(name)
	if err != nil {
		return nil, err
	}
	v := &inspectEval{x: x, st: st, name: name, src: src, began: sizeOf(src), log: newInspect(x)}
	members, err := zipMembers(src, v.began)
	if err != nil {
		x.find(Finding{Severity: Break, Trouble: Incomplete, Code: "no-directory", Step: -1, Offset: v.began,
			Text: fmt.Sprintf("the archive's directory is not readable (%v): members are found by walking over it", err)})
		if members = walkZip(src, v.began); len(members) == 0 {
			return nil, errors.Join(fmt.Errorf("an archive of which nothing can be read: %w", err), src.Close())
		}
	}
	v.spool = newSpool(members)
	v.plan(members)
	if len(v.units) == 0 {
		return nil, errors.Join(fmt.Errorf("an archive that is no Inspect log: %w", ErrFormat), src.Close())
	}
	return v, nil
}

// plan sorts the members. Of several with one name the last counts.
func (v *inspectEval) plan(members []member) {
	last := map[string]int{}
	for i, m := range members {
		if _, dup := last[m.name]; dup {
			v.x.note(Duplicated, "same-member", -1, 0, m.offset, m.packed, "%s is there more than once: the last one counts", m.name)
		}
		last[m.name] = i
	}
	var samples []evalUnit
	header := -1
	for name, i := range last {
		u := evalUnit{member: i, size: members[i].size}
		dir, base := path.Split(name)
		parts := strings.Split(strings.TrimSuffix(dir, "/"), "/")
		switch {
		case name == "header.json", name == "_journal/start.json" && header < 0:
			header = i
		case dir == "samples/" && strings.HasSuffix(base, ".json"):
			u.kind, u.lane = "sample", strings.TrimSuffix(base, ".json")
			samples = append(samples, u)
		case len(parts) == 2 && parts[0] == "samples" && base == "sample.json":
			u.kind, u.lane = "sample", parts[1]
			samples = append(samples, u)
		case len(parts) == 3 && parts[0] == "samples" && (parts[2] == "events" || parts[2] == "attachments"):
			if _, err := strconv.Atoi(strings.TrimSuffix(base, ".json")); err == nil {
				u.kind, u.lane = parts[2], parts[1]
				samples = append(samples, u)
			}
		}
	}
	if i, ok := last["header.json"]; ok {
		header = i
	} else if header >= 0 {
		v.x.note(Incomplete, "no-header", -1, 0, 0, 0, "no header: the evaluation is running, or was killed")
	}
	if header >= 0 {
		v.units = append(v.units, evalUnit{kind: "header", member: header, size: members[header].size})
	}
	// Attachments before the events that refer to them.
	order := map[string]int{"sample": 0, "attachments": 1, "events": 2}
	slices.SortFunc(samples, func(a, b evalUnit) int {
		return cmp.Or(natural(a.lane, b.lane), cmp.Compare(order[a.kind], order[b.kind]), natural(members[a.member].name, members[b.member].name))
	})
	v.units = append(v.units, samples...)
}

// natural compares names so that 9 comes before 10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, ra := digits(a)
		nb, rb := digits(b)
		if na != "" && nb != "" {
			x, y := strings.TrimLeft(na, "0"), strings.TrimLeft(nb, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

func (v *inspectEval) advance(budget int64) (bool, error) {
	for v.at < len(v.units) {
		u := v.units[v.at]
		if v.cur == nil && !v.begin(u) {
			v.at++
			continue
		}
		done, _ := v.cur.advance(budget)
		if !done {
			return false, nil
		}
		v.done()
		v.read += v.cur.size()
		v.cur, v.at = nil, v.at+1
		v.x.mu.Lock()
		v.x.current, v.x.read = 0, min(v.read, v.began)
		v.x.mu.Unlock()
		return v.at == len(v.units), nil
	}
	return true, nil
}

// begin opens a member and sets the parser that its kind needs.
func (v *inspectEval) begin(u evalUnit) bool {
	name := v.spool.members[u.member].name
	b, release, err := v.spool.open(u.member)
	if err != nil {
		v.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "unreadable-member", Step: -1, Offset: v.spool.members[u.member].offset,
			Text: fmt.Sprintf("%s cannot be read: %v", name, err)})
		return false
	}
	if err := v.spool.damage(u.member); err != nil {
		v.x.find(Finding{Severity: Break, Trouble: Incomplete, Code: "cut-member", Step: -1, Offset: v.spool.members[u.member].offset,
			Text: fmt.Sprintf("%s is not whole (%v): its beginning is read", name, err)})
	}
	info, err := b.Stat()
	if err != nil {
		release()
		return false
	}
	file := v.x.file(path.Base(v.name) + " ▸ " + name)
	v.spool.number(file, u.member)
	v.x.mu.Lock()
	v.x.current = file
	v.x.mu.Unlock()
	d := &document{x: v.x, st: v.st, name: v.name, src: nopClose{b}, began: info}
	switch u.kind {
	case "header":
		d.parse = func(r *skim.Reader) { v.log.header(r, nil) }
	case "sample":
		lane := v.log.lane(u.lane)
		if v.chunked(u.lane) {
			v.log.pool(lane).events = true // they follow
		}
		d.parse = func(r *skim.Reader) { v.log.sample(r, file, lane, d.pause) }
	case "events":
		d.parse = func(r *skim.Reader) { v.log.events(r, v.laneOf(u.lane), d.pause) }
	case "attachments":
		start, _ := strconv.Atoi(strings.TrimSuffix(path.Base(name), ".json"))
		d.parse = func(r *skim.Reader) { v.log.listed(r, file, v.laneOf(u.lane), start) }
	}
	v.cur, v.done = d, release
	return true
}

func (v *inspectEval) chunked(lane string) bool {
	return slices.ContainsFunc(v.units, func(u evalUnit) bool { return u.lane == lane && u.kind == "events" })
}

func (v *inspectEval) laneOf(name string) uint16 {
	v.x.mu.RLock()
	defer v.x.mu.RUnlock()
	for i := len(v.x.agents) - 1; i > 0; i-- {
		if v.x.agents[i].ID == label(name) {
			return uint16(i)
		}
	}
	return 0
}

// listed reads a stretch of attachments, which are referred to by their index.
func (n *inspect) listed(r *skim.Reader, file uint32, lane uint16, start int) {
	p := n.pool(lane)
	for i := range r.Items() {
		off, length := valueSpan(r)
		n.mu.Lock()
		if len(p.texts) < 1<<20 {
			p.texts[strconv.Itoa(start+i)] = place{file, off, length}
		}
		n.mu.Unlock()
	}
}

type nopClose struct{ blob }

func (nopClose) Close() error { return nil }

func (v *inspectEval) full(e entry, limit int) (Full, error) {
	src, release, err := v.blob(e.file)
	if err != nil {
		return Full{}, err
	}
	defer release()
	return v.log.body(src, e, limit, v.blob)
}

func (v *inspectEval) blob(file uint32) (blob, func(), error) { return v.spool.file(file) }

func (v *inspectEval) size() int64 { return v.began }

func (v *inspectEval) stale() bool {
	info, err := v.st.stat(v.name)
	return err == nil && info.Size() != v.began
}

func (v *inspectEval) close() error {
	if v.cur != nil {
		if v.cur.stop != nil {
			v.cur.stop()
		}
		v.done()
	}
	v.spool.close()
	return v.src.Close()
}

// member is a file in an archive.
type member struct {
	name           string
	offset, packed int64 // in the archive
	size           int64 // unpacked, as the archive says; -1 when it does not
	open           func() (io.ReadCloser, error)
}

func zipMembers(src io.ReaderAt, size int64) ([]member, error) {
	z, err := zip.NewReader(src, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	z.RegisterDecompressor(methodZstd, zstd.ZipDecompressor(zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(1)))
	members := make([]member, 0, len(z.File))
	for _, f := range z.File {
		off, _ := f.DataOffset()
		members = append(members, member{f.Name, off, int64(f.CompressedSize64), int64(f.UncompressedSize64), f.Open})
	}
	return members, nil
}

// walkZip finds the members of an archive whose directory is lost, by the headers
// in front of them.
func walkZip(src io.ReaderAt, size int64) []member {
	var members []member
	for at := int64(0); at >= 0 && at < size && len(members) < maxNames; {
		var h [30]byte
		if n, _ := src.ReadAt(h[:], at); n < len(h) {
			break
		}
		if string(h[:4]) != "PK\x03\x04" {
			at = locate(src, at+1, size, "PK\x03\x04")
			continue
		}
		le := binary.LittleEndian
		flags, method := le.Uint16(h[6:]), le.Uint16(h[8:])
		packed := int64(le.Uint32(h[18:]))
		nameLen, extra := int64(le.Uint16(h[26:])), int64(le.Uint16(h[28:]))
		name := make([]byte, nameLen)
		if n, _ := src.ReadAt(name, at+30); int64(n) < nameLen {
			break
		}
		data := at + 30 + nameLen + extra
		length := packed
		if flags&8 != 0 || packed == 0 || packed == 1<<32-1 || data+packed > size {
			length = size - data // not known here: the packing says where it ends
		}
		section := func() io.Reader { return io.NewSectionReader(src, data, length) }
		members = append(members, member{string(name), data, packed, -1, func() (io.ReadCloser, error) {
			switch method {
			case zip.Store:
				return io.NopCloser(section()), nil
			case zip.Deflate:
				return flate.NewReader(section()), nil
			case methodZstd:
				d, err := zstd.NewReader(section(), zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(1))
				if err != nil {
					return nil, err
				}
				return d.IOReadCloser(), nil
			}
			return nil, zip.ErrAlgorithm
		}})
		if length == packed {
			at = data + packed
		} else {
			at = locate(src, data, size, "PK\x03\x04")
		}
	}
	return members
}
