package register

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"github.com/aymanbagabas/go-udiff"

	"refbox/engine/bounded"
	"refbox/engine/register/internal/tree"
	"refbox/engine/text"
)

// Addition is what a heat adds to what a register declares: a drill of a store's
// restore or promotion, a rehearsal of a store, or the day on which a queue's drain
// or a migration's rollback was proven.
type Addition struct {
	Store     string    `json:"store"`
	Migration string    `json:"migration,omitempty"` // of a rollback
	Procedure Procedure `json:"procedure"`
	Drill     Drill     `json:"drill"` // of a drain or a rollback only its date counts
	// Rehearses: it is no drill, for the reason in Drill.Note.
	Rehearses bool `json:"rehearses"`
}

// Edit is a register's file with additions, not yet written.
type Edit struct {
	File string
	// After is the register with them. It was read from the changed text: what it
	// declares is what was declared, and the additions.
	After *Source

	before []byte
	real   string // the file behind links
}

// Add adds to a register's file. Every byte of it stays, but for a date that a later
// one replaces; comments, order, line ends and indentation are as they were. A file
// that is rendered, or in which there is no place that could be changed so, is
// refused.
func (s *Source) Add(list []Addition) (*Edit, error) {
	if s.Rendered {
		return nil, fmt.Errorf("%s is rendered: add to the register that it was derived from, and derive it anew", s.File)
	}
	e := &Edit{File: s.File, After: s, before: s.data, real: s.File}
	for _, a := range list {
		next, err := e.After.add(a)
		if err != nil {
			return nil, err
		}
		e.After = next
	}
	if real, err := filepath.EvalSymlinks(s.File); err == nil {
		e.real = real
	}
	return e, nil
}

// Diff shows the change as a unified diff; "" for none. Its text is fit to be shown.
func (e *Edit) Diff() string {
	return text.Block(udiff.Unified(e.File, e.File, string(e.before), string(e.After.data)))
}

// Write writes the file: whole or not at all, with the mode that it has. A file that
// is not what was read any more is refused, and one that may not be written.
func (e *Edit) Write() error {
	st, err := e.unchanged()
	if err != nil {
		return err
	}
	may, err := os.OpenFile(e.real, os.O_WRONLY, 0) // a new file in its place would not ask
	if err != nil {
		return err
	}
	may.Close()
	dir := filepath.Dir(e.real)
	f, err := os.CreateTemp(dir, ".refbox-register-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when it was renamed
	defer f.Close()
	if _, err = f.Write(e.After.data); err == nil {
		err = f.Chmod(st.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		_, err = e.unchanged() // the writing took its time
	}
	if err == nil {
		err = os.Rename(f.Name(), e.real)
	}
	if err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil { // some file systems have no sync of folders
		d.Sync() //nolint:errcheck // the file itself is whole either way
		d.Close()
	}
	return nil
}

// unchanged makes sure that the file is what was read.
func (e *Edit) unchanged() (fs.FileInfo, error) {
	st, err := os.Stat(e.real)
	if err != nil {
		return nil, err
	}
	now, err := bounded.File(e.real, tree.MaxJSONBytes)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(now, e.before) {
		return nil, fmt.Errorf("%s has changed since it was read, and is left alone; run this again", text.Line(e.File))
	}
	return st, nil
}

// place is where an addition goes: a list's next item, or a key's value.
type place struct {
	path  []tree.Step
	key   string
	item  []tree.Pair
	value tree.Scalar
	// put does the same to what is declared.
	put func(*Document)
}

func (s *Source) add(a Addition) (*Source, error) {
	p, err := s.place(a)
	if err != nil || p == nil {
		return s, err
	}
	want, err := Parse(s.File, s.data)
	if err != nil {
		return nil, err
	}
	p.put(&want.Declared)
	var why error
	for _, way := range tree.Graft(tree.Syntax(s.Syntax), s.data, s.root, p.path, p.key, p.item, p.value) {
		got, err := Parse(s.File, tree.Apply(s.data, way))
		if err == nil && reflect.DeepEqual(got.Declared, want.Declared) {
			got.estate = s.estate
			return got, nil
		}
		why = errors.Join(why, err)
	}
	return nil, fmt.Errorf("%s is written in a way that refbox cannot add to without changing more; add %s to %s yourself", text.Line(s.File), p.words(), p.where())
}

func (p *place) where() string {
	out := ""
	for _, s := range p.path {
		if s.Key == "" {
			out += "[" + strconv.Itoa(s.Index) + "]"
		} else {
			out = join(out, s.Key)
		}
	}
	return join(out, p.key)
}

func (p *place) words() string {
	if p.item == nil {
		return p.value.Text
	}
	out := ""
	for i, x := range p.item {
		if i > 0 {
			out += ", "
		}
		out += x.Key + " " + x.Value.Text
	}
	return "{" + out + "}"
}

// place finds where an addition goes; nil where the register already says as much.
func (s *Source) place(a Addition) (*place, error) {
	i := slices.IndexFunc(s.Declared.Stores, func(x Store) bool { return x.ID == a.Store })
	if i < 0 {
		return nil, fmt.Errorf("%s has no store %s", text.Line(s.File), text.Line(a.Store))
	}
	st := &s.Declared.Stores[i]
	at := func(keys ...string) []tree.Step {
		out := []tree.Step{{Key: "stores"}, {Index: i}}
		for _, k := range keys {
			out = append(out, tree.Step{Key: k})
		}
		return out
	}
	d := a.Drill
	if a.Rehearses {
		d.RestoredTo = "" // nothing was
		r := Rehearsal{Date: d.Date, Procedure: a.Procedure, Outcome: d.Outcome, MeasuredMinutes: d.MeasuredMinutes, MeasuredMs: d.MeasuredMs, Heat: d.Heat, Note: d.Note}
		return &place{path: at(), key: "rehearsals", item: pairs(d, a.Procedure, s.Syntax), put: func(doc *Document) {
			x := &doc.Stores[i]
			x.Rehearsals = append(x.Rehearsals, r)
		}}, nil
	}
	switch {
	case a.Procedure == Restoring && st.Restore != nil:
		return &place{path: at("restore"), key: "drills", item: pairs(d, "", s.Syntax), put: func(doc *Document) {
			r := doc.Stores[i].Restore
			r.Drills = append(r.Drills, d)
		}}, nil
	case a.Procedure == Promoting && st.Promotion != nil:
		return &place{path: at("promotion"), key: "drills", item: pairs(d, "", s.Syntax), put: func(doc *Document) {
			p := doc.Stores[i].Promotion
			p.Drills = append(p.Drills, d)
		}}, nil
	case a.Procedure == Draining && st.LocalFirst != nil:
		return dated(st.LocalFirst.DrainVerifiedOn, d.Date, at("localFirst"), "drainVerifiedOn", func(doc *Document) **Date { return &doc.Stores[i].LocalFirst.DrainVerifiedOn }), nil
	case a.Procedure == RollingBack:
		k := slices.IndexFunc(s.Declared.Migrations, func(m Migration) bool { return m.ID == a.Migration && m.Store == a.Store })
		if k >= 0 {
			path := []tree.Step{{Key: "migrations"}, {Index: k}, {Key: "rollback"}}
			return dated(s.Declared.Migrations[k].Rollback.TestedOn, d.Date, path, "testedOn", func(doc *Document) **Date { return &doc.Migrations[k].Rollback.TestedOn }), nil
		}
	}
	return nil, fmt.Errorf("%s: %s declares no %s that a drill could be added to", text.Line(s.File), st.ID, a.Procedure)
}

// dated sets a day, unless a later one is there.
func dated(have *Date, day Date, path []tree.Step, key string, of func(*Document) **Date) *place {
	if have != nil && *have >= day {
		return nil
	}
	return &place{path: path, key: key, value: tree.Scalar{Kind: tree.Date, Text: string(day)}, put: func(doc *Document) { *of(doc) = &day }}
}

// pairs are a drill's keys, or those of a rehearsal of a procedure. JSON says that
// there is no time; the other two languages leave it out.
func pairs(d Drill, rehearses Procedure, syntax string) []tree.Pair {
	out := []tree.Pair{{Key: "date", Value: tree.Scalar{Kind: tree.Date, Text: string(d.Date)}}}
	if rehearses != "" {
		out = append(out, tree.Pair{Key: "procedure", Value: tree.Scalar{Kind: tree.Word, Text: string(rehearses)}})
	}
	out = append(out, tree.Pair{Key: "outcome", Value: tree.Scalar{Kind: tree.Word, Text: string(d.Outcome)}})
	switch {
	case d.MeasuredMinutes != nil:
		out = append(out, tree.Pair{Key: "measuredMinutes", Value: tree.Float(*d.MeasuredMinutes)})
	case syntax == string(tree.JSON):
		out = append(out, tree.Pair{Key: "measuredMinutes", Value: tree.Scalar{Kind: tree.Plain, Text: "null"}})
	}
	if d.MeasuredMs != nil {
		out = append(out, tree.Pair{Key: "measuredMs", Value: tree.Scalar{Kind: tree.Plain, Text: strconv.FormatInt(*d.MeasuredMs, 10)}})
	}
	for _, x := range []struct{ key, text string }{{"heat", d.Heat}, {"restoredTo", d.RestoredTo}, {"note", d.Note}} {
		if x.text != "" {
			out = append(out, tree.Pair{Key: x.key, Value: tree.Scalar{Text: x.text}})
		}
	}
	return out
}
