package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refbox/engine/recording"
	"refbox/engine/redact"
	"refbox/engine/text"
	transcripts "refbox/engine/transcript/export"
)

// secrets is what takes secrets out; nil leaves them in.
func (o *exportOptions) secrets() *redact.Redactor {
	if o.noRedact {
		return nil
	}
	return &redact.Redactor{}
}

// openExport opens what is exported: a recording that was read to its end, or a
// transcript, which may be a seat's of a recording. dir is the recording's, or the
// transcript's file.
func openExport(ctx context.Context, path string, o exportOptions) (dir string, rec *recording.Recording, src *transcripts.Source, err error) {
	seat := ""
	_, missing := os.Stat(path)
	if errors.Is(missing, fs.ErrNotExist) {
		path, seat = filepath.Dir(path), filepath.Base(path)
	}
	rec, tr, err := openEither(path)
	if err != nil {
		if seat != "" { // not even a recording is there
			err = missing
		}
		return "", nil, nil, err
	}
	if tr != nil {
		if seat != "" {
			tr.Close() //nolint:errcheck // only read
			return "", nil, nil, fmt.Errorf("%s: %w", text.Line(filepath.Join(path, seat)), fs.ErrNotExist)
		}
		return path, nil, &transcripts.Source{T: tr}, nil
	}
	if err := rec.Load(ctx); err != nil {
		rec.Close()
		return "", nil, nil, err
	}
	var seats []string
	for _, s := range rec.World(rec.Len()).Seats() {
		seats = append(seats, s.ID)
	}
	wanted := seat != "" || o.atif != "" || o.markdown != ""
	if !wanted {
		return path, rec, nil, nil
	}
	if seat == "" && len(seats) == 1 {
		seat = seats[0]
	}
	for _, id := range seats {
		if id == seat {
			s, err := transcripts.OpenSeat(ctx, rec, seat)
			if err != nil {
				rec.Close()
				return "", nil, nil, brokenError(err)
			}
			return path, rec, &s, nil
		}
	}
	rec.Close()
	if seat == "" {
		return "", nil, nil, usageError("a transcript is one seat's: give %s/SEAT; the seats are %s", text.Line(path), text.Line(strings.Join(seats, ", ")))
	}
	return "", nil, nil, usageError("this heat has no seat %q; its seats are %s", seat, text.Line(strings.Join(seats, ", ")))
}

func exportTranscript(ctx context.Context, x exporter, src *transcripts.Source, o exportOptions) error {
	if o.report != "" || o.jsonl != "" || o.bundle != "" || o.picture != "" {
		return usageError("--report, --jsonl, --bundle and --picture are of a whole heat: give its folder")
	}
	for _, form := range []struct {
		file  string
		what  string
		write func(w io.Writer, s transcripts.Source) (int, error)
	}{
		{o.atif, "steps", func(w io.Writer, s transcripts.Source) (int, error) { return transcripts.ATIF(ctx, w, s) }},
		{o.markdown, "steps", func(w io.Writer, s transcripts.Source) (int, error) { return transcripts.Markdown(ctx, w, s) }},
		{o.cast, "frames", func(w io.Writer, s transcripts.Source) (int, error) { return transcripts.Cast(ctx, w, s, o.v3) }},
	} {
		if form.file == "" {
			continue
		}
		one := *src
		one.Redact = o.secrets()
		err := x.to(form.file, func(w io.Writer) (string, error) {
			n, err := form.write(w, one)
			return fmt.Sprintf("%d %s; %s", n, form.what, one.Redact), err
		})
		if err != nil {
			return err
		}
		if form.file == "-" {
			fmt.Fprintln(x.a.err, one.Redact)
		}
	}
	return nil
}

// warnOfSecrets counts the secrets in a log whose exports are as recorded.
func warnOfSecrets(a *app, rec *recording.Recording) {
	found := &redact.Redactor{}
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`) // near enough to the texts in the line
	for i := range rec.Len() {
		if raw, err := rec.Raw(i); err == nil {
			found.Text(plain.Replace(string(raw)))
		}
	}
	if n := found.Count(); n > 0 {
		fmt.Fprintf(a.err, "warning: the log holds what looks like %d keys, tokens or passwords; films, logs and bundles are as recorded\n", n)
	}
}
