package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"refbox/engine/archive"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/recordings"
)

// locate finds what a user calls a recording: a path, or where none is there a name in
// the data folder, as refbox ls prints it; of either a seat, as DIR/SEAT. What is
// neither stays as it is.
func locate(path string) string {
	may := whereabouts(path)
	for _, p := range may {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	if len(may) == 1 {
		return path
	}
	base := strings.TrimSuffix(may[1], filepath.Clean(path))
	heat := filepath.Dir(path)
	_, here := os.Stat(heat)
	if _, there := os.Stat(filepath.Join(base, heat)); here != nil && there == nil {
		return filepath.Join(base, path)
	}
	return path
}

// whereabouts are where what a user calls a recording may be, or come to be: the path, and
// the name in the data folder.
func whereabouts(path string) []string {
	base, err := recordingsDir()
	if err != nil || !filepath.IsLocal(path) {
		return []string{path}
	}
	return []string{path, filepath.Join(base, path)}
}

// openRecording opens a heat's folder, a single log, or an archive of either, by its
// path or its name; what is neither may be the name of one that the program brings along.
func openRecording(path string) (*recording.Recording, error) {
	path = locate(path)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if slices.Contains(recordings.Names(), path) {
			return recording.OpenFS(recordings.Heats(), path)
		}
		return nil, fmt.Errorf("%s is not there; refbox ls lists the recordings", text.Line(path))
	}
	if !archive.Is(path) || err == nil && info.IsDir() {
		rec, err := recording.Open(path)
		return withEvents(path, rec, err)
	}
	tree, err := archive.Open(path)
	if err != nil {
		return nil, err
	}
	if !tree.Heat() {
		tree.Close()
		err := errNoRecording(path)
		if p := tree.Problems(); len(p) > 0 {
			err = fmt.Errorf("%w; %s %s", err, p[0].File, p[0].Text)
		}
		return nil, brokenError(err)
	}
	var found []recording.Finding
	for _, p := range tree.Problems() {
		f := recording.Finding{Severity: recording.Note, Code: p.Code, File: p.File, Text: p.Text}
		if p.Broken {
			f.Severity = recording.Break
		}
		found = append(found, f)
	}
	rec, err := recording.OpenTree(tree, path, found...)
	return withEvents(path, rec, err)
}

// loadRecording opens a recording and reads all of it.
func loadRecording(ctx context.Context, path string) (*recording.Recording, error) {
	rec, err := openRecording(path)
	if err != nil {
		return nil, err
	}
	if err := rec.Load(ctx); err != nil {
		rec.Close()
		return nil, err
	}
	return rec, nil
}

// withEvents refuses a recording that holds nothing of a heat, and says what is in
// the place of one.
func withEvents(path string, rec *recording.Recording, err error) (*recording.Recording, error) {
	if err != nil || !rec.Complete() || begun(rec) {
		return rec, err
	}
	err = errNoRecording(path)
	for _, f := range rec.Integrity().Findings {
		if f.Line > 0 {
			err = fmt.Errorf("%w; %s: %s", err, f.File, f.Text)
			break
		}
	}
	rec.Close()
	return nil, brokenError(err)
}

// begun says that a recording holds something of a heat. An empty log alone does
// not: it is there before its writer has the lock and writes match.json.
func begun(rec *recording.Recording) bool { return rec.Len() > 0 || rec.Match() != nil }

func errNoRecording(path string) error {
	return fmt.Errorf("%s holds no recording: there is neither an events.jsonl with events nor a match-report.json in it", text.Line(path))
}
