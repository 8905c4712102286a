// Package bounded reads files that a person names, or that lie where anybody may have
// put them: documents, suites, models, scripts. It guarantees that nothing is read but
// plain files, which never block, and of them no more than the reader has room for.
package bounded

import (
	"fmt"
	"io"
	"os"

	"refbox/engine/text"
)

// File reads a plain file of at most so many bytes. The error of os.Stat or os.Open is
// returned as it is, so that fs.ErrNotExist is seen; else it names the file and what is
// wrong with it.
func File(name string, most int64) ([]byte, error) {
	// Before it is opened: a pipe would be waited for.
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file", text.Line(name))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// By what is read, and not by the size: the file may grow, or be one of /proc.
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than the %s that are read of such a file", text.Line(name), size(most))
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
