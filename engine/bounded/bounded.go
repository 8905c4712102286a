// Package bounded reads files that a person names, or that lie where anybody may have
// put them: documents, suites, models, scripts. It guarantees that nothing is read but
// plain files, also when another is put in a file's place meanwhile, and of them no more
// than the reader has room for; and that no pipe is waited for.
package bounded

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"

	"refbox/engine/text"
)

// File reads a plain file of at most so many bytes. The error of os.Stat or os.Open is
// returned as it is, so that fs.ErrNotExist is seen; else it names the file and what is
// wrong with it.
func File(name string, most int64) ([]byte, error) {
	// Before it is opened: to open a device may do something to it.
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, notPlain(name)
	}
	// And once it is: another may have come in its place. Without O_NONBLOCK the opening
	// of a pipe would wait for its writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, notPlain(name)
	}
	// By what is read, and not by the size: the file may grow, or be one of /proc.
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), most)) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(f, most+1))
	if err == nil && int64(b.Len()) > most {
		err = fmt.Errorf("%s is larger than the %s that are read of such a file", text.Line(name), size(most))
	}
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func notPlain(name string) error { return fmt.Errorf("%s is no plain file", text.Line(name)) }

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
