package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"refbox/engine/text"
)

// reportFile is the reference's one-file form of a heat (recordings.md 6.7): the
// events, the final world and the provenance in one document.
const reportFile = "match-report.json"

const maxReport = 256 << 20

// report is what a match-report.json embeds, as the files that a folder has. Lines
// are the embedded events as they are, each made one line.
type report struct {
	events   bytes.Buffer
	files    map[string][]byte
	findings []Finding
}

func (p *report) find(code, format string, args ...any) {
	p.findings = append(p.findings, Finding{Severity: Note, Code: code, File: reportFile, Text: text.Line(fmt.Sprintf(format, args...))})
}

// readReport takes apart what it can of a report: of one that is cut or damaged
// what comes before the damage.
func readReport(data []byte) *report {
	p := &report{files: map[string][]byte{}}
	d := json.NewDecoder(bytes.NewReader(data))
	err := p.object(d, p.member)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			p.find("torn_report", "is cut at byte %d: what comes before it is read", len(data))
		} else {
			p.find("broken_report", "is damaged near byte %d: what comes before it is read: %v", d.InputOffset(), err)
		}
	}
	return p
}

// object calls member for each key of the object that comes next.
func (p *report) object(d *json.Decoder, member func(d *json.Decoder, key string) error) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return errors.New("not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if err := member(d, fmt.Sprint(key)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func (p *report) member(d *json.Decoder, key string) error {
	if key == "events" {
		return p.list(d)
	}
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return err
	}
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	switch key {
	case "world":
		p.files[worldFile] = value
	case "provenance":
		p.files[matchFile] = value
	case "analyses":
		return p.object(json.NewDecoder(bytes.NewReader(value)), func(d *json.Decoder, agent string) error {
			var analysis json.RawMessage
			if err := d.Decode(&analysis); err != nil {
				return err
			}
			if name := agent + "-analysis.json"; plainName(agent) {
				p.files[name] = analysis
			}
			return nil
		})
	}
	return nil
}

func (p *report) list(d *json.Decoder) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('[') {
		return errors.New("the events are not a list")
	}
	for d.More() {
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			return err
		}
		if err := json.Compact(&p.events, e); err != nil {
			return err
		}
		p.events.WriteByte('\n')
	}
	_, err = d.Token()
	return err
}

// plainName says that a string can be part of a file's name in a folder.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}

// useReport lets a folder without a log stand on its match-report.json, when there
// is one. The files that the report embeds then appear beside it; what a walk of
// the folder gives stays what is there.
func (r *Recording) useReport() {
	if r.single {
		return
	}
	if _, err := r.src.stat(eventsFile); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	data, err := r.src.read(reportFile, maxReport)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.found = append(r.found, Finding{Severity: Note, Code: "file_unreadable", File: reportFile, Text: text.Line(fmt.Sprintf("is not read: %v", err))})
		}
		return
	}
	p := readReport(data)
	p.files[eventsFile] = p.events.Bytes()
	p.find("from_report", "the heat is read from this file alone; lines and bytes of %s count its events, one to a line", eventsFile)
	at := time.Time{}
	if info, err := r.src.stat(reportFile); err == nil {
		at = info.ModTime()
	}
	r.found = append(r.found, p.findings...)
	r.src = &source{fsys: &overlay{r.src, p.files, at}}
}

// overlay is a folder with files in memory beside those that it has.
type overlay struct {
	under *source
	files map[string][]byte
	at    time.Time
}

// Open opens a file: of the folder, or when it has none of that name, in memory.
func (o *overlay) Open(name string) (fs.File, error) {
	f, err := o.under.fsys.Open(name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if data, ok := o.files[name]; ok {
		return &virtual{bytes.NewReader(data), o.info(name, data)}, nil
	}
	return nil, err
}

// Close closes the folder below.
func (o *overlay) Close() error { return o.under.close() }

func (o *overlay) info(name string, data []byte) virtualInfo {
	return virtualInfo{path.Base(name), int64(len(data)), o.at}
}

// virtual is an open file in memory.
type virtual struct {
	*bytes.Reader
	info virtualInfo
}

func (v *virtual) Stat() (fs.FileInfo, error) { return v.info, nil }
func (v *virtual) Close() error               { return nil }

type virtualInfo struct {
	name string
	size int64
	at   time.Time
}

func (i virtualInfo) Name() string       { return i.name }
func (i virtualInfo) Size() int64        { return i.size }
func (i virtualInfo) Mode() fs.FileMode  { return 0o444 }
func (i virtualInfo) ModTime() time.Time { return i.at }
func (i virtualInfo) IsDir() bool        { return false }
func (i virtualInfo) Sys() any           { return nil }
