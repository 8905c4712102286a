package main

import (
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// maxLog is where the log starts anew; the old one is kept beside it.
const maxLog = 1 << 20

// openLog sends slog, and the standard logger of libraries, to a file: standard
// error is the user's, and under the screen it would be lost. The file is made
// with the first line that is logged.
func openLog() {
	w := &lazyLog{path: logFile()}
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	log.SetOutput(w)
}

// lazyLog is a file that is opened by its first write. Two loggers share it.
type lazyLog struct {
	path string
	mu   sync.Mutex
	file io.Writer
}

func (l *lazyLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		l.file = io.Discard
		if l.path != "" && os.MkdirAll(filepath.Dir(l.path), 0o700) == nil {
			if st, err := os.Stat(l.path); err == nil && st.Size() > maxLog {
				os.Rename(l.path, l.path+".old") //nolint:errcheck // then the log goes on in the old file
			}
			if f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				l.file = f
			}
		}
	}
	return l.file.Write(p)
}
