package main

import (
	"fmt"

	"refbox/engine/archive"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// openRecording opens a heat's folder, a single log, or an archive of either.
func openRecording(path string) (*recording.Recording, error) {
	if !archive.Is(path) {
		rec, err := recording.Open(path)
		if err == nil && rec.Complete() && !begun(rec) {
			rec.Close()
			return nil, brokenError(errNoRecording(path))
		}
		return rec, err
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
	return recording.OpenTree(tree, path, found...)
}

// begun says that a recording holds something of a heat. An empty log alone does
// not: it is there before its writer has the lock and writes match.json.
func begun(rec *recording.Recording) bool { return rec.Len() > 0 || rec.Match() != nil }

func errNoRecording(path string) error {
	return fmt.Errorf("%s holds no recording: there is neither an events.jsonl with events nor a match-report.json in it", text.Line(path))
}
