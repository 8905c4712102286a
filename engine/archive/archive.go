// Package archive reads a heat's folder out of a .tar.gz or .zip, as a tree of
// files (an fs.FS), without unpacking it anywhere that lasts.
//
// An archive comes from anybody, so every number in it is bounded: entries, the
// size of one file and of all, how far it may inflate, how deep names nest. Names
// that leave the archive, a second file of one name, links, devices and pipes are
// left out and told of. What remains are plain files below the folder that holds
// events.jsonl. A bundle's manifest of hashes is checked while the files are read.
//
// The files lie in one unnamed temporary file: memory stays small, any offset can
// be read, and nothing is left however the program ends.
package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"refbox/engine/text"
)

// Limits of an archive. One that is larger is refused as a whole.
const (
	MaxEntries = 200_000
	MaxFile    = 4 << 30 // bytes of one file
	MaxTotal   = 6 << 30 // bytes of all files
	MaxRatio   = 250     // how many times its own size an archive may inflate to
	MaxName    = 1024    // bytes of a path
	MaxDepth   = 16      // folders around a file

	alwaysAllowed = 64 << 20 // bytes that any archive may inflate to
	maxTold       = 100      // problems that are told one by one
)

// Problem is something about an archive that a reader should know. Text is one
// line, sanitised.
type Problem struct {
	Code string // archive_entry, archive_duplicate, bundle_altered, bundle_missing, bundle_extra, bundle_unreadable
	File string
	Text string
	// Broken: a hash of the manifest is wrong, or what it names is not there.
	Broken bool
}

// Is says whether a path names an archive, by its name alone.
func Is(path string) bool { return Stem(path) != path }

// Stem is a path without what makes it an archive's.
func Stem(path string) string {
	for _, ext := range []string{".tar.gz", ".tgz", ".zip"} {
		if cut := len(path) - len(ext); cut >= 0 && strings.EqualFold(path[cut:], ext) {
			return path[:cut]
		}
	}
	return path
}

// Open reads an archive's files. Its root is the folder that holds events.jsonl
// (or match-report.json), or the only folder there is. The error says what is
// wrong with an archive that cannot be read at all; close the tree after use.
func Open(path string) (*Tree, error) {
	// Not even opened: a pipe would block whoever does.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the archive: %s is not a plain file: copy it to one first", text.Line(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	t, err := read(f, info.Size(), limitsFor(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Line(filepath.Base(path)), err)
	}
	return t, nil
}

// limits of one archive.
type limits struct {
	bytes   int64 // of all files
	entries int
}

func limitsFor(archiveSize int64) limits {
	l := limits{MaxTotal, MaxEntries}
	if archiveSize < MaxTotal/MaxRatio {
		l.bytes = max(archiveSize*MaxRatio, alwaysAllowed)
	}
	return l
}

// read tells the format by the first bytes: a name may lie.
func read(r io.ReaderAt, size int64, l limits) (*Tree, error) {
	magic := make([]byte, 4)
	if _, err := r.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s, err := newSpool(l)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		err = s.tarGz(io.NewSectionReader(r, 0, size))
	case bytes.HasPrefix(magic, []byte("PK")):
		err = s.zip(r, size)
	default:
		err = errors.New("is neither a .tar.gz nor a .zip")
	}
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		s.file.Close()
		return nil, err
	}
	t := s.tree()
	t.checkBundle()
	return t, nil
}

// spool takes the files of an archive one after the other.
type spool struct {
	file     *os.File // without a name
	w        *bufio.Writer
	size     int64
	limits   limits
	entries  int
	files    map[string]span
	problems problems
}

// span is where a file lies in the spool, and its hash.
type span struct {
	off, size int64
	sha       string
}

func newSpool(l limits) (*spool, error) {
	f, err := os.CreateTemp("", "refbox-archive-")
	if err != nil {
		return nil, fmt.Errorf("no room to read the archive: %w; set TMPDIR to a folder with room", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, 256<<10), limits: l, files: map[string]span{}}, nil
}

func (s *spool) flush() error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("no room to read the archive: %w; set TMPDIR to a folder with room", err)
	}
	return nil
}

// problems keeps the first ones, and counts.
type problems struct {
	list    []Problem
	dropped int
}

func (p *problems) add(broken bool, code, file, format string, args ...any) {
	if len(p.list) >= maxTold && !broken {
		p.dropped++
		return
	}
	if len(p.list) >= 10*maxTold {
		p.dropped++
		return
	}
	p.list = append(p.list, Problem{Code: code, File: text.Line(file), Text: text.Line(fmt.Sprintf(format, args...)), Broken: broken})
}
