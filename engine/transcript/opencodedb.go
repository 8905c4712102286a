package transcript

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // reads opencode's databases

	"refbox/engine/transcript/skim"
)

// openCodeDB is opencode's database. It is opened so that nothing is written: a
// database that has a write-ahead log, or lies in no folder on disk, is copied
// first. A record's offset is its row.
type openCodeDB struct {
	x     *index
	st    *store
	name  string
	log   *openCode
	db    *sql.DB
	temp  string
	began int64
	lanes map[string]uint16
	last  int64 // the row of the last part that was read
	seen  map[string]openCodeMessage
}

const (
	maxCopied = 1 << 30
	maxRow    = 64 << 20
)

func openOpenCodeDB(x *index, st *store, name string) (importer, error) {
	o := &openCodeDB{x: x, st: st, name: name, log: newOpenCode(x), lanes: map[string]uint16{}, seen: map[string]openCodeMessage{}}
	file, err := o.prepare()
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: file,
		RawQuery: "mode=ro&immutable=1&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"}
	if o.temp != "" {
		u.RawQuery = "_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"
	}
	if o.db, err = sql.Open("sqlite", u.String()); err != nil {
		return nil, errors.Join(err, o.close())
	}
	o.db.SetMaxOpenConns(2)
	if err := o.sessions(); err != nil {
		return nil, errors.Join(fmt.Errorf("a database that is not opencode's (%w): %w", err, ErrFormat), o.close())
	}
	return o, nil
}

// prepare returns the path of a file that can be opened without a write.
func (o *openCodeDB) prepare() (string, error) {
	info, err := o.st.stat(o.name)
	if err != nil {
		return "", err
	}
	o.began = info.Size()
	wal := o.st.isFile(o.name + "-wal")
	if o.st.root != nil && !wal {
		return filepath.Join(o.st.dir, filepath.FromSlash(o.name)), nil
	}
	if o.began > maxCopied {
		o.x.note(Bounded, "log-not-read", -1, 0, 0, 0, "the database is too large to copy: what is in its write-ahead log is not shown")
		return filepath.Join(o.st.dir, filepath.FromSlash(o.name)), nil
	}
	if o.temp, err = os.MkdirTemp("", "refbox-database-*"); err != nil {
		return "", err
	}
	for _, suffix := range []string{"", "-wal"} {
		if suffix != "" && !wal {
			continue
		}
		if err := o.copy(suffix); err != nil {
			return "", errors.Join(err, os.RemoveAll(o.temp))
		}
	}
	return filepath.Join(o.temp, "copy.db"), nil
}

func (o *openCodeDB) copy(suffix string) error {
	in, err := o.st.open(o.name + suffix)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(o.temp, "copy.db"+suffix), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, maxCopied))
	return errors.Join(err, out.Close())
}

func (o *openCodeDB) sessions() error {
	rows, err := o.db.Query(`SELECT id, coalesce(parent_id, ''), coalesce(title, '') FROM session ORDER BY parent_id IS NOT NULL, time_created, id LIMIT 60000`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, title string
		if err := rows.Scan(&id, &parent, &title); err != nil {
			return err
		}
		if len(o.lanes) == 0 {
			o.x.changeAgent(0, func(a *AgentInfo) { a.ID, a.Name = label(id), label(title) })
			o.x.describe(func(i *Info) { i.Session, i.Task = label(id), label(title) })
			o.lanes[id] = 0
			continue
		}
		up := -1
		if lane, ok := o.lanes[parent]; ok {
			up = int(lane)
		}
		o.lanes[id] = o.x.agent(AgentInfo{ID: id, Name: title, Parent: up, Step: -1})
	}
	return rows.Err()
}

// advance reads parts in the order of their sessions and messages, a page at a
// time; the order is the database's.
func (o *openCodeDB) advance(budget int64) (bool, error) {
	rows, err := o.db.Query(`SELECT p.rowid, p.session_id, p.message_id, coalesce(m.data, ''), coalesce(m.time_created, 0), length(p.data),
		CASE WHEN length(p.data) <= ? THEN p.data ELSE '' END
		FROM part p LEFT JOIN message m ON m.id = p.message_id WHERE p.rowid > ? ORDER BY p.rowid LIMIT 2000`, maxRow, o.last)
	if err != nil {
		return true, fmt.Errorf("reading the database: %w", err)
	}
	defer rows.Close()
	read, some := int64(0), false
	for rows.Next() {
		var row, created, size int64
		var session, message string
		var info, data []byte
		if err := rows.Scan(&row, &session, &message, &info, &created, &size, &data); err != nil {
			return true, fmt.Errorf("reading the database: %w", err)
		}
		o.last, some = row, true
		m, ok := o.seen[message]
		if !ok {
			r := skim.Bytes(info, 0)
			m = o.log.message(r)
			if m.at == noTime && created > 0 {
				m.at = created
			}
			if len(o.seen) > maxNames {
				clear(o.seen)
			}
			o.seen[message] = m
		}
		e := step(Unknown, NoActor, row, size)
		e.agent, e.pos = o.lanes[session], int32(min(row, 1<<31-1))
		r := skim.Bytes(data, 0)
		if size > maxRow {
			r.Fail(fmt.Errorf("%d bytes, more than the %d that are read", size, int64(maxRow)))
		}
		if o.log.part(r, e, m); r.Err() != nil {
			e.flags |= Damaged
			i := o.x.add(e)
			o.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "damaged-record", Step: i, Offset: row, Length: size, Text: "not readable: " + r.Err().Error()})
		}
		if read += size + 1; read > budget {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return true, fmt.Errorf("reading the database: %w", err)
	}
	o.x.progress(o.x.readSoFar()+read, 0)
	if !some {
		o.log.flush()
	}
	return !some, nil
}

func (o *openCodeDB) row(e entry) ([]byte, error) {
	var data []byte
	err := o.db.QueryRow(`SELECT data FROM part WHERE rowid = ? AND length(data) <= ?`, e.off, maxRow).Scan(&data)
	return data, err
}

func (o *openCodeDB) full(e entry, limit int) (Full, error) {
	data, err := o.row(e)
	if err != nil {
		return Full{}, fmt.Errorf("row %d: %w", e.off, err)
	}
	if e.has(Damaged) {
		return rawRecord(bytes.NewReader(data), entry{length: int64(len(data))}, limit)
	}
	return openCodeBody(skim.Bytes(data, 0), e, limit)
}

// raw is a row; it has no place that an offset could name.
func (o *openCodeDB) raw(e entry) (io.ReadCloser, error) {
	data, err := o.row(e)
	return io.NopCloser(bytes.NewReader(data)), err
}

func (o *openCodeDB) blob(uint32) (blob, func(), error) {
	b, err := o.st.open(o.name)
	if err != nil {
		return nil, nil, err
	}
	return b, func() { b.Close() }, nil
}

func (o *openCodeDB) size() int64 { return o.began }

func (o *openCodeDB) stale() bool {
	info, err := o.st.stat(o.name)
	return err == nil && info.Size() != o.began
}

func (o *openCodeDB) close() error {
	var err error
	if o.db != nil {
		err = o.db.Close()
	}
	if o.temp != "" {
		err = errors.Join(err, os.RemoveAll(o.temp))
	}
	return err
}
