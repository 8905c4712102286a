package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/archive"
	"refbox/engine/event"
	"refbox/engine/export"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	film "refbox/tui/export"
)

type exportOptions struct {
	cast, report, jsonl, bundle string
	picture, at                 string
	size                        string
	v3, reference               bool
	atif, markdown              string
	noRedact                    bool
}

func newExport(a *app) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export DIR[/SEAT]|FILE",
		Short: "Write a recording as a film, a page, a log or a bundle, a transcript as ATIF or Markdown",
		Long: `Writes a recording, or a transcript, in other forms; several at once are fine.

  --cast    an asciicast of the replay, with the milestones as markers
  --picture one frame of the replay as SVG, at --at
  --report  one HTML page that needs no network: outcome, ladder, time line, actions
  --jsonl   the log; with --reference as the reference system writes its own
  --bundle  a .tar.gz with a manifest of hashes; every command opens it again

Of a transcript of any harness, or of what one seat's agent did (DIR/SEAT):

  --atif      an ATIF-v1.7 trajectory, with the referee's evaluation of the seat
  --markdown  for reading
  --cast      its terminal, as an asciicast

Keys, tokens and passwords are replaced in the page and in the forms of a transcript.
A film, a log and a bundle are as recorded, since hashes hold them: what is found in
the log is counted on standard error.

FILE may be - for standard output.`,
		Example: "  refbox export ./heat --report heat.html --cast heat.cast\n" +
			"  refbox export ./heat --jsonl --reference > events.jsonl\n  refbox export ./heat --bundle heat.tar.gz\n" +
			"  refbox export ./heat/failover-one --atif trajectory.json\n  refbox export session.jsonl --markdown session.md",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && o.jsonl == "-" {
				return usageError("%s takes one recording; a file for the log is given as --jsonl=FILE", cmd.CommandPath())
			}
			return exactArgs(1, "one recording or transcript")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return exportAll(cmd.Context(), a, locate(args[0]), o) },
	}
	f := c.Flags()
	f.StringVar(&o.cast, "cast", "", "write an asciicast to `FILE`")
	f.StringVar(&o.picture, "picture", "", "write one frame as SVG to `FILE`")
	f.StringVar(&o.at, "at", "100%", "the picture's place on the heat's clock: 50%, 1m30s, 12:30")
	f.StringVar(&o.size, "size", "120x34", "columns and rows of the cast and of the picture")
	f.BoolVar(&o.v3, "v3", false, "write asciicast version 3 instead of 2")
	f.StringVar(&o.report, "report", "", "write an HTML page to `FILE`")
	f.StringVar(&o.jsonl, "jsonl", "", "write the log to standard output, or with =`FILE` to a file")
	f.Lookup("jsonl").NoOptDefVal = "-"
	f.BoolVar(&o.reference, "reference", false, "write the log in the reference's form")
	f.StringVar(&o.bundle, "bundle", "", "write a .tar.gz to `FILE`")
	f.StringVar(&o.atif, "atif", "", "write an ATIF trajectory to `FILE`")
	f.StringVar(&o.markdown, "markdown", "", "write Markdown to `FILE`")
	f.BoolVar(&o.noRedact, "no-redact", false, "leave keys, tokens and passwords in")
	return c
}

func exportAll(ctx context.Context, a *app, dir string, o exportOptions) error {
	format := film.Format{V3: o.v3}
	outputs := 0
	for _, file := range []string{o.cast, o.report, o.jsonl, o.bundle, o.picture, o.atif, o.markdown} {
		if file == "-" {
			outputs++
		}
	}
	switch {
	case o.cast == "" && o.report == "" && o.jsonl == "" && o.bundle == "" && o.picture == "" && o.atif == "" && o.markdown == "":
		return usageError("nothing to export: give --cast, --picture, --report, --jsonl or --bundle, of a transcript --atif, --markdown or --cast\ntry: refbox export --help")
	case o.reference && o.jsonl == "":
		return usageError("--reference goes with --jsonl")
	case o.v3 && o.cast == "":
		return usageError("--v3 goes with --cast")
	case outputs > 1:
		return usageError("standard output takes one export")
	}
	if n, err := fmt.Sscanf(o.size+"\n", "%dx%d\n", &format.Width, &format.Height); err != nil || n != 2 ||
		format.Width < film.MinWidth || format.Width > film.MaxWidth || format.Height < film.MinHeight || format.Height > film.MaxHeight {
		return usageError("--size is columns x rows, from %dx%d to %dx%d; it is %q", film.MinWidth, film.MinHeight, film.MaxWidth, film.MaxHeight, o.size)
	}
	dir, rec, src, err := openExport(ctx, dir, o)
	if err != nil {
		return err
	}
	if src != nil {
		defer src.T.Close()
		if rec != nil {
			defer rec.Close()
		}
		return exportTranscript(ctx, exporter{a: a, dir: dir}, src, o)
	}
	defer rec.Close()
	if rec.Live() && (o.cast != "" || o.bundle != "") {
		return brokenError(fmt.Errorf("%s: the heat still runs; a cast or a bundle can be made when it has ended", text.Line(dir)))
	}
	if !o.noRedact && (o.jsonl != "" || o.bundle != "" || o.picture != "" || o.cast != "") {
		warnOfSecrets(a, rec)
	}
	x := exporter{a: a, dir: dir}
	if o.jsonl != "" {
		err = x.to(o.jsonl, func(w io.Writer) (string, error) { return exportLog(w, rec, o.reference) })
	}
	if err == nil && o.report != "" {
		err = x.to(o.report, func(w io.Writer) (string, error) {
			secrets := o.secrets()
			err := export.Report(ctx, w, rec, secrets)
			return "a page; " + secrets.String(), err
		})
	}
	if err == nil && o.bundle != "" {
		err = x.to(o.bundle, func(w io.Writer) (string, error) { return exportBundle(w, rec, dir) })
	}
	if err == nil && o.picture != "" {
		ms, perr := playback.Parse(o.at, playback.Head{MS: rec.Head()})
		if perr != nil {
			return usageError("--at: %w", perr)
		}
		err = x.to(o.picture, func(w io.Writer) (string, error) {
			own, err := openRecording(dir) // the picture's from here on, as with the film
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("a frame at %s", playback.Format(ms)), film.Picture(ctx, w, own, format.Width, format.Height, ms)
		})
	}
	if err == nil && o.cast != "" {
		err = x.to(o.cast, func(w io.Writer) (string, error) {
			done, err := film.Cast(ctx, w, rec, format) // the recording is the film's from here on
			return fmt.Sprintf("%s, %s, %.1f s", text.Count(done.Frames, "frame"), text.Count(done.Markers, "marker"), float64(done.MS)/1000), err
		})
	}
	return err
}

func exportLog(w io.Writer, rec *recording.Recording, reference bool) (string, error) {
	if !reference {
		return text.Count(rec.Len(), "event"), export.Lines(w, rec)
	}
	written, left, err := export.Reference(w, rec)
	return fmt.Sprintf("%s, %d of kinds that the reference lacks left out", text.Count(written, "event"), left), err
}

func exportBundle(w io.Writer, rec *recording.Recording, dir string) (string, error) {
	tree := rec.Tree()
	if tree == nil {
		return "", usageError("%s is a log without a folder: there is nothing to bundle", text.Line(dir))
	}
	done, err := export.Bundle(w, tree, bundleName(dir))
	what := fmt.Sprintf("%s, %d bytes", text.Count(done.Files, "file"), done.Bytes)
	if n := len(done.LeftOut); n > 0 {
		what += fmt.Sprintf("; left out, as no part of a recording: %s: %q", text.Count(n, "file"), done.LeftOut[:min(n, 5)])
	}
	return text.Line(what), err
}

// bundleName is the recording's own name, not an archive's.
func bundleName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if filepath.Base(dir) == "events.jsonl" {
		dir = filepath.Dir(dir)
	}
	return archive.Stem(filepath.Base(dir))
}

// exporter writes files whole or not at all, and never into the recording.
type exporter struct {
	a   *app
	dir string
}

func (x exporter) to(file string, write func(io.Writer) (string, error)) error {
	if file == "-" {
		out := bufio.NewWriterSize(x.a.out, 64<<10)
		w := io.Writer(out)
		if isTerminal(x.a.out) {
			w = terminalJSON{out}
		}
		if _, err := write(w); err != nil {
			return err
		}
		return out.Flush()
	}
	if err := x.outside(file); err != nil {
		return err
	}
	_, before := os.Lstat(file)
	f, err := os.CreateTemp(filepath.Dir(file), ".refbox-export-")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when it was renamed
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	what, err := write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	did := "wrote"
	if before == nil {
		did = "replaced"
	}
	fmt.Fprintf(x.a.err, "%s %s: %s\n", did, text.Line(file), what)
	return nil
}

// terminalJSON writes JSON so that a terminal shows all of it and obeys none.
type terminalJSON struct{ w io.Writer }

func (t terminalJSON) Write(p []byte) (int, error) {
	shown := event.Text(p)
	if strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' && r != '\n' }) {
		var b strings.Builder
		for _, r := range shown {
			if r < ' ' && r != '\n' {
				fmt.Fprintf(&b, "\\u%04x", r)
			} else {
				b.WriteRune(r)
			}
		}
		shown = b.String()
	}
	if _, err := io.WriteString(t.w, shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// outside says that a file does not lie in the recording, which nobody writes to
// but its engine.
func (x exporter) outside(file string) error {
	dir, err := os.Stat(x.dir)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if !dir.IsDir() {
		if now, err := os.Stat(file); err == nil && os.SameFile(dir, now) {
			return usageError("%s is the recording itself: choose another file", text.Line(file))
		}
		if dir, err = os.Stat(filepath.Dir(x.dir)); err != nil || filepath.Base(x.dir) != "events.jsonl" {
			return nil
		}
	}
	at, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for at = filepath.Dir(at); ; at = filepath.Dir(at) {
		if now, err := os.Stat(at); err == nil && os.SameFile(dir, now) {
			return usageError("%s lies in the recording, which is never written to: choose another place", text.Line(file))
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
