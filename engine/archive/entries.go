package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// tarGz takes the files of a compressed tar. One that ends early is read as far
// as it goes: what is whole can be shown.
func (s *spool) tarGz(r io.Reader) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("is no gzip file: %w", err)
	}
	defer z.Close()
	// Headers count too: an archive of names alone must not go on for ever.
	t := tar.NewReader(&bounded{r: z, left: s.limits.bytes + int64(s.limits.entries)*4096})
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.cut(err)
		}
		if err := s.entry(); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			s.problems.add(false, "archive_entry", h.Name, "is no plain file and is left out")
			continue
		}
		if err := s.take(h.Name, h.Size, t); err != nil {
			return s.cut(err)
		}
	}
}

// cut decides about an archive that cannot be read on.
func (s *spool) cut(err error) error {
	var over *overLimit
	if errors.As(err, &over) || len(s.files) == 0 {
		return err
	}
	s.problems.add(true, "archive_torn", "", "the archive is damaged after %d files and is not read further: %v", len(s.files), err)
	return nil
}

func (s *spool) zip(r io.ReaderAt, size int64) error {
	g := &guard{r: r, left: maxDirectory}
	z, err := zip.NewReader(g, size)
	g.off = true
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("is no zip file: %w", err)
	}
	for _, f := range z.File {
		if err := s.entry(); err != nil {
			return err
		}
		switch mode := f.Mode(); {
		case mode.IsDir():
			continue
		case !mode.IsRegular():
			s.problems.add(false, "archive_entry", f.Name, "is no plain file and is left out")
			continue
		}
		if f.UncompressedSize64 > MaxFile {
			return &overLimit{fmt.Sprintf("a file of %d bytes", f.UncompressedSize64)}
		}
		src, err := f.Open()
		if err == nil {
			err = s.take(f.Name, -1, src)
			src.Close()
		}
		var over *overLimit
		switch {
		case errors.As(err, &over):
			return err
		case err != nil:
			s.problems.add(true, "archive_torn", f.Name, "cannot be read and is left out: %v", err)
		}
	}
	return nil
}

// maxDirectory bounds a zip's list of entries, in bytes: it is read as a whole
// before any entry can be counted.
const maxDirectory = MaxEntries * 128

// guard fails where more is read than a limit, until it is off.
type guard struct {
	r    io.ReaderAt
	left int64
	off  bool
}

func (g *guard) ReadAt(p []byte, at int64) (int, error) {
	if !g.off {
		if g.left -= int64(len(p)); g.left < 0 {
			return 0, &overLimit{"its list of entries is too long"}
		}
	}
	return g.r.ReadAt(p, at)
}

// overLimit is an archive that is refused.
type overLimit struct{ what string }

func (e *overLimit) Error() string {
	return "holds more than is read: " + e.what + "; unpack it and open the folder if you trust it"
}

func (s *spool) entry() error {
	if s.entries++; s.entries > s.limits.entries {
		return &overLimit{fmt.Sprintf("over %d entries", s.limits.entries)}
	}
	return nil
}

// bounded fails where a reader goes on beyond a limit.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &overLimit{"it inflates too far"}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

// take puts one file into the spool. A file that cannot be read to its end leaves
// nothing.
func (s *spool) take(name string, size int64, src io.Reader) error {
	if size > MaxFile {
		return &overLimit{fmt.Sprintf("a file of %d bytes", size)}
	}
	clean, ok := entryName(name)
	if !ok {
		s.problems.add(false, "archive_entry", name, "has a name that leaves the archive, or none, and is left out")
		return nil
	}
	if _, twice := s.files[clean]; twice {
		s.problems.add(false, "archive_duplicate", clean, "is there twice; the first is taken")
		return nil
	}
	room := min(MaxFile, s.limits.bytes-s.size)
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(s.w, hash), io.LimitReader(src, room+1))
	s.size += n
	if n > room {
		return &overLimit{"it inflates too far"}
	}
	if err != nil {
		return err
	}
	s.files[clean] = span{s.size - n, n, hex.EncodeToString(hash.Sum(nil))}
	return nil
}

// entryName is an entry's path in the tree; false for one that would leave it or
// that no tree of files can have.
func entryName(name string) (string, bool) {
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[1:], "/")
	}
	if len(name) > MaxName || strings.ContainsAny(name, "\\\x00") || !fs.ValidPath(name) || name == "." {
		return "", false
	}
	return name, strings.Count(name, "/") <= MaxDepth
}
