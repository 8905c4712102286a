// Package lint says everything that is wrong with an arena's package: its manifest,
// what it refers to, and what stands in its verifiers and scripts, all at once,
// each with the file and, where there is one, the line.
package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/probe"
	"refbox/engine/text"
)

// Report is what there is to say about a package. Its first keys are those of the
// reference's report (recordings reference, section 1.3).
type Report struct {
	Valid         bool            `json:"valid"`
	Arena         string          `json:"arena"`
	SchemaVersion uint32          `json:"schema_version"`
	Root          string          `json:"root"`     // the package's folder, or "bundled"
	Manifest      string          `json:"manifest"` // its file
	Errors        []arena.Problem `json:"errors"`
	Warnings      []arena.Problem `json:"warnings"`
	Notes         []string        `json:"notes"` // what is done otherwise than the package asks for
}

// Validate looks at an arena, named as for arena.Load. The error says that there is
// none, or that it cannot be read.
func Validate(name string) (Report, error) {
	p, problems, err := arena.Inspect(name)
	if err != nil {
		return Report{}, err
	}
	r := Report{Errors: []arena.Problem{}, Warnings: []arena.Problem{}, Notes: []string{}}
	if p == nil {
		r.Manifest, r.Root, r.Errors = problems[0].File, filepath.Dir(problems[0].File), problems
		return r, nil
	}
	r.Arena, r.SchemaVersion, r.Root, r.Manifest = p.Manifest.Arena.ID, p.Manifest.SchemaVersion, p.Origin, p.File
	l := &linter{p: p, problems: problems, dir: path.Dir(filepath.ToSlash(p.File)), seen: map[string]bool{}}
	l.verifiers()
	l.scripts()
	l.briefs()
	l.rest()
	for _, pr := range l.problems {
		if pr.Warning {
			r.Warnings = append(r.Warnings, pr)
		} else {
			r.Errors = append(r.Errors, pr)
		}
	}
	for _, n := range p.Notes {
		warns := func(pr arena.Problem) bool { return pr.String() == n.Text }
		if !slices.ContainsFunc(r.Warnings, warns) {
			r.Notes = append(r.Notes, n.String())
		}
	}
	r.Valid = len(r.Errors) == 0
	return r, nil
}

type linter struct {
	p        *arena.Package
	dir      string
	problems []arena.Problem
	seen     map[string]bool // files that were looked at
}

func (l *linter) add(file string, line int, warning bool, format string, args ...any) {
	at := l.dir + "/" + file
	if file == "" {
		at = l.p.File
	}
	l.problems = append(l.problems, arena.Problem{File: at, Line: line, Text: text.Line(fmt.Sprintf(format, args...)), Warning: warning})
}

var places = regexp.MustCompile(`^(?:[a-z ]+: )?([^\s:]+):(\d+)(?::\d+)?: (?s:(.*))$`)

// broken adds the error of a file, which may name a line.
func (l *linter) broken(file string, err error) {
	if m := places.FindStringSubmatch(err.Error()); m != nil && m[1] == file {
		line, _ := strconv.Atoi(m[2])
		l.add(file, line, false, "%s", m[3])
		return
	}
	l.add(file, 0, false, "%s", strings.TrimPrefix(err.Error(), file+": "))
}

// fresh tells whether a file is there and is looked at for the first time.
func (l *linter) fresh(name string) ([]byte, bool) {
	if name == "" || l.seen[name] {
		return nil, false
	}
	l.seen[name] = true
	data, err := arena.ReadFile(l.p.FS, name)
	return data, err == nil
}

func (l *linter) verifiers() {
	for _, ms := range l.p.Manifest.Milestones() {
		for _, name := range []string{l.p.Verifier(ms.ID), l.p.ReferenceCheck(ms.ID)} {
			data, ok := l.fresh(name)
			if !ok {
				continue
			}
			if _, err := probe.Load(l.p.FS, name); err != nil {
				l.broken(name, err)
				continue
			}
			if path.Ext(name) == ".star" {
				l.waits(name, data, ms)
			} else if !bytes.HasPrefix(data, []byte("#!")) && !bytes.HasPrefix(data, []byte("\x7fELF")) {
				l.add(name, 1, false, "is no executable: its first line must begin with #!, e.g. #!/usr/bin/env bash")
			}
		}
	}
}

// waits finds loops that are longer than the milestone's timeout: then the player is
// told that time is out, not what is missing.
func (l *linter) waits(name string, data []byte, ms arena.Milestone) {
	file, err := (&syntax.FileOptions{}).Parse(name, data, 0)
	if err != nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fn.(*syntax.Ident); !ok || f.Name != "eventually" {
			return true
		}
		for _, arg := range call.Args {
			b, ok := arg.(*syntax.BinaryExpr)
			if !ok || b.Op != syntax.EQ {
				continue
			}
			key, ok := b.X.(*syntax.Ident)
			lit, isLit := b.Y.(*syntax.Literal)
			if !ok || !isLit || key.Name != "timeout" {
				continue
			}
			if s, err := strconv.ParseFloat(lit.Raw, 64); err == nil && s > float64(ms.TimeoutSeconds) {
				l.add(name, int(b.OpPos.Line), true, "waits for up to %s s, and the milestone %s has timeout_seconds = %d: a player is told that time is out, not what is missing", lit.Raw, ms.ID, ms.TimeoutSeconds)
			}
		}
		return true
	})
}

func (l *linter) scripts() {
	m := l.p.Manifest
	var names []string
	for _, a := range m.Agents {
		if a.Script != nil {
			names = append(names, *a.Script)
		}
	}
	for _, t := range m.Players {
		names = append(names, t.Script)
	}
	for _, c := range m.Cheats {
		names = append(names, c.Script)
	}
	for _, name := range names {
		name = path.Clean(name)
		data, ok := l.fresh(name)
		if !ok {
			continue
		}
		if _, err := agent.ParseScript(name, data); err != nil {
			l.broken(name, err)
		}
	}
}

var (
	spans  = regexp.MustCompile(`(?i)\b(\d{1,6})[ -](second|minute|hour)s?\b`)
	limits = regexp.MustCompile(`(?i)\b(heat|race|deadline|time limit)\b`)
)

// briefs finds time limits in what players are told that are not the heat's.
func (l *linter) briefs() {
	m := l.p.Manifest
	names := []string{"CONTRACT.md"}
	for _, t := range m.Territories {
		names = append(names, "instructions/"+t.ID+".md")
	}
	if m.FogOfWar != nil {
		names = []string{path.Clean(m.FogOfWar.PlayerBrief)}
	}
	for _, name := range names {
		data, ok := l.fresh(name)
		if !ok {
			continue
		}
		for i, line := range strings.Split(string(data), "\n") {
			if !limits.MatchString(line) {
				continue
			}
			for _, s := range spans.FindAllStringSubmatch(line, -1) {
				n, _ := strconv.ParseUint(s[1], 10, 64)
				unit := map[string]uint64{"second": 1, "minute": 60, "hour": 3600}[strings.ToLower(s[2])]
				if n*unit != m.Rules.DurationSeconds {
					l.add(name, i+1, true, "speaks of %s, and rules.duration_seconds is %d: players are told the limit anyway", s[0], m.Rules.DurationSeconds)
				}
			}
		}
	}
}

func (l *linter) rest() {
	m := l.p.Manifest
	if _, err := fs.Stat(l.p.FS, "README.md"); err != nil && l.p.Origin != "bundled" {
		l.add("", 0, true, "the package has no README.md")
	}
	right, wrong := 0, 0
	for _, t := range m.Players {
		if t.Right() {
			right++
		} else {
			wrong++
		}
	}
	if (m.Build != nil && !m.Arena.Laboratory || len(m.Players) > 0) && (right == 0 || wrong < 3) {
		l.add("", 0, true, "names %d right and %d wrong players under [[players]]: an arena is tried with one right and three wrong ones", right, wrong)
	}
	slices.SortStableFunc(l.problems, func(a, b arena.Problem) int {
		// The manifest first, its problems in their order; then the others' by place.
		if c := cmp.Compare(boolInt(a.File != l.p.File), boolInt(b.File != l.p.File)); c != 0 || a.File == l.p.File {
			return c
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
