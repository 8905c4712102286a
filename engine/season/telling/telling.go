// Package telling checks what the agents' own records of a heat are worth: whether
// an analysis is of the transcript beside it and has what that has, whether an agent
// read the reference solution or the verifiers, whether a transcript is torn or says
// that its agent still runs (seasons reference, section 8, T1 to T3).
//
// It promises to read nothing but the recording, and never to call a heat broken for
// what an agent did or a harness wrote badly: those are notes. Only an analysis that
// is not of its transcript is broken.
package telling

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"refbox/engine/analysis"
	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/text"
	"refbox/engine/world"
)

// solution finds reads of what a player must not have: a copy of the project's
// source, its reference solutions, the verifiers, the manifest.
var solution = regexp.MustCompile(`[\w.-]*-source/[^\s"']*|adapters/oracle-[\w.-]*|(?:^|[\s"'/=:])verify/[\w.-]*|\barena\.toml\b`)

// maxTold bounds how much of a command is told.
const maxTold = 120

// Check checks what the seats of a heat tell, in the order of its seats. Seats that
// told nothing have no check.
func Check(ctx context.Context, rec *recording.Recording) (season.Checks, error) {
	h, err := analysis.OfHeat(ctx, rec)
	if err != nil {
		return nil, err
	}
	told, err := rec.Activities(ctx)
	if err != nil {
		return nil, err
	}
	w := rec.World(rec.Len())
	var out season.Checks
	for _, s := range h.Seats {
		who := text.Line(s.Agent)
		if who == "" {
			who = text.Line(s.Territory)
		}
		analysed(&out, rec, who, s)
		reads(&out, who, w, s)
		torn(&out, who, w, s, told[s.Territory])
	}
	return out, nil
}

func add(out *season.Checks, code string, v season.Verdict, where, format string, a ...any) {
	out.Add(season.Check{Code: code, Verdict: v, Where: where, Text: text.Line(fmt.Sprintf(format, a...))})
}

// analysed is T1: a recorded analysis against the transcript that it names.
func analysed(out *season.Checks, rec *recording.Recording, who string, s analysis.Seat) {
	data, _, err := rec.Artifact(s.Territory, "analysis.json")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var ref analysis.Reference
	if err == nil {
		ref, err = analysis.ReadReference(data)
	}
	if err != nil {
		add(out, "T1", season.Note, who, "the recorded analysis cannot be read: %v", err)
		return
	}
	sums := map[string]string{}
	var have []string
	for _, name := range []string{"transcript.json", "transcript.live.json"} {
		if sum, err := digest(rec, s.Territory, name); err == nil {
			sums[sum] = name
			have = append(have, name+" "+sum[:12]+"…")
		}
	}
	switch file := sums[ref.SourceSHA256]; {
	case len(have) == 0:
		out.Add(season.Check{Code: "T1", Verdict: season.Unchecked, Where: who, Text: "the recorded analysis", Missing: "the transcript that it is of"})
	case file == "":
		out.Add(season.Check{Code: "T1", Verdict: season.Broken, Where: who, Text: "the recorded analysis is of a transcript that is here", Want: strings.Join(have, " or "), Got: text.Line(ref.SourceSHA256)})
	case s.Analysis.SourceSHA256 != ref.SourceSHA256:
		add(out, "T1", season.Holds, who, "the analysis is of %s, whose actions are not read here", file)
	default:
		compare(out, who, ref, s.Analysis)
	}
}

// compare holds what does not depend on anybody's judgement: which actions there
// are, when, and how they ended.
func compare(out *season.Checks, who string, ref analysis.Reference, got analysis.Analysis) {
	have := map[string]analysis.Step{}
	key := func(a analysis.Action) string {
		if a.ID != "" {
			return a.ID
		}
		return fmt.Sprint(a.Index)
	}
	for _, st := range got.Steps {
		have[key(st.Action)] = st
	}
	otherwise, errs := 0, 0
	for _, a := range ref.Actions {
		st, ok := have[key(a)]
		if !ok || st.StartedMS != a.StartedMS || st.Success != a.Success {
			is := "no such action"
			if ok {
				is = fmt.Sprintf("start %d ms, success %v", st.StartedMS, st.Success)
			}
			out.Add(season.Check{Code: "T1", Verdict: season.Broken, Where: who, Text: fmt.Sprintf("the analysis has the transcript's actions: action %d", a.Index),
				Want: is, Got: fmt.Sprintf("start %d ms, success %v", a.StartedMS, a.Success)})
			return
		}
		if !a.Success {
			errs++
		}
		if a.ReferenceKind != "" && st.Kind != a.ReferenceKind {
			otherwise++
		}
	}
	if ref.Metrics.ToolCalls != len(ref.Actions) || ref.Metrics.ToolErrors != errs {
		out.Add(season.Check{Code: "T1", Verdict: season.Broken, Where: who, Text: "the analysis counts its own actions",
			Want: fmt.Sprintf("%s, %s", text.Count(len(ref.Actions), "call"), text.Count(errs, "error")), Got: fmt.Sprintf("%s, %s", text.Count(ref.Metrics.ToolCalls, "call"), text.Count(ref.Metrics.ToolErrors, "error"))})
		return
	}
	more := ""
	if n := len(got.Steps) - len(ref.Actions); n > 0 {
		more = fmt.Sprintf("; %d that were begun and never ended are not in it", n)
	}
	add(out, "T1", season.Holds, who, "the analysis has the %d actions of its transcript, their times and ends; of their kinds refbox judges %d otherwise%s", len(ref.Actions), otherwise, more)
}

// digest is that of a seat's file, whatever its size.
func digest(rec *recording.Recording, territory, name string) (string, error) {
	b, _, err := rec.OpenArtifact(territory, name)
	if err != nil {
		return "", err
	}
	defer b.Close()
	st, err := b.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(b, 0, st.Size())); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// reads is T2.
func reads(out *season.Checks, who string, w *world.World, s analysis.Seat) {
	var where []string
	for _, st := range s.Analysis.Steps {
		if found := solution.FindString(st.Text()); found != "" {
			where = append(where, fmt.Sprintf("action %d: %s", st.Index, text.Truncate(strings.Trim(text.Line(found), ` "'/=:`), maxTold, "…")))
		}
	}
	if len(where) == 0 {
		if len(s.Analysis.Steps) > 0 {
			add(out, "T2", season.Holds, who, "no action names the project's source, a reference solution, a verifier or the manifest")
		}
		return
	}
	won := ""
	if w.Winner != nil && *w.Winner == s.Territory {
		won = ", and it won"
	}
	more := ""
	if n := len(where) - 4; n > 0 {
		where, more = where[:4], fmt.Sprintf(" and %d more", n)
	}
	add(out, "T2", season.Note, who, "names what a player must not read%s: %s%s", won, strings.Join(where, "; "), more)
}

// torn is T3.
func torn(out *season.Checks, who string, w *world.World, s analysis.Seat, act *recording.Activity) {
	if act == nil {
		return
	}
	clean := true
	for _, what := range []string{act.Trouble, act.Damage} {
		if what != "" {
			clean = false
			add(out, "T3", season.Note, who, "%s", what)
		}
	}
	if o := s.Analysis.Outcome; o != nil && *o == "running" && w.Over() {
		clean = false
		add(out, "T3", season.Note, who, "the transcript says that its agent still runs, and the heat is over: it was killed before it could say more")
	}
	if clean {
		add(out, "T3", season.Holds, who, "the transcript is whole")
	}
}
