package register

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"refbox/engine/bounded"
	"refbox/engine/register/internal/tree"
	"refbox/engine/text"
)

// Source is a register's file as it was read: what it declares, and what it
// says about derived fields, which is never believed.
type Source struct {
	File     string
	Syntax   string // json, toml or yaml
	Declared Document
	// Rendered says that the file holds derived fields, which Check compares.
	Rendered bool

	data   []byte
	root   *tree.Value
	estate *estateFile // given apart, or nil
}

type estateFile struct {
	file  string
	root  *tree.Value
	facts Estate
}

// Load reads a register. A file that cannot be understood gives an *Invalid.
func Load(file string) (*Source, error) {
	data, err := bounded.File(file, tree.MaxJSONBytes)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// bulk is the derived list that grows with stores × scenarios; nothing but a
// comparison looks at it.
const bulk = "matrix"

// Parse is Load without the reading; file names the syntax and the problems.
func Parse(file string, data []byte) (*Source, error) {
	s := &Source{File: file, data: data}
	root, err := s.parse(file, data)
	if err != nil {
		return nil, err
	}
	s.root = root
	s.Syntax = string(tree.SyntaxOf(file, data))
	var d decoder
	d.value("", root, reflect.ValueOf(&s.Declared).Elem())
	if err := d.problems.err(file); err != nil {
		return nil, err
	}
	for _, key := range []string{"summary", "matrix", "findings"} {
		s.Rendered = s.Rendered || root.Get(key) != nil
	}
	return s, nil
}

func (s *Source) parse(file string, data []byte) (*tree.Value, error) {
	root, err := tree.Parse(tree.SyntaxOf(file, data), data, bulk)
	var te *tree.Error
	if errors.As(err, &te) {
		return nil, &Invalid{Problems: []Problem{{File: file, Line: te.Pos.Line, Column: te.Pos.Col, Message: text.Line(te.Text)}}}
	}
	return root, err
}

// LoadEstate joins the facts of a file of their own; they win over a block in
// the register.
func (s *Source) LoadEstate(file string) error {
	data, err := bounded.File(file, tree.MaxJSONBytes)
	if err != nil {
		return err
	}
	return s.ParseEstate(file, data)
}

// ParseEstate is LoadEstate without the reading.
func (s *Source) ParseEstate(file string, data []byte) error {
	root, err := s.parse(file, data)
	if err != nil {
		return err
	}
	e := &estateFile{file: file, root: root}
	var d decoder
	d.value("", root, reflect.ValueOf(&e.facts).Elem())
	if err := d.problems.err(file); err != nil {
		return err
	}
	s.estate = e
	return nil
}

// Facts are the estate's: those given apart, else those declared, else those
// that the rendered fields let infer.
func (s *Source) Facts() (*Estate, error) {
	switch {
	case s.estate != nil:
		return &s.estate.facts, nil
	case s.Declared.Estate != nil:
		return s.Declared.Estate, nil
	case s.Rendered:
		return s.infer()
	}
	return nil, s.invalid("estate", "is missing: declare the estate's nodes and targets, or give them in a file of their own")
}

func (s *Source) invalid(path, format string, a ...any) error {
	p := problems{}
	p.add(Problem{Path: path, Message: fmt.Sprintf(format, a...)})
	return s.placed(&p)
}

// placed gives problems their places.
func (s *Source) placed(p *problems) error {
	for i := range p.list {
		x := &p.list[i]
		root, path := s.root, x.Path
		x.File = s.File
		if rest, ok := strings.CutPrefix(x.Path, "estate."); ok && s.estate != nil {
			root, path = s.estate.root, rest
			x.File, x.Path = s.estate.file, rest
		}
		at := root.At(path)
		x.Line, x.Column = at.Line, at.Col
	}
	return p.err(s.File)
}

// Settings choose how a register is derived. Their zero values are the
// document's own choice.
type Settings struct {
	Profile Profile
	On      Date // the day of evaluation
	Today   Date // used where neither On nor the document says a day
}

// Resolve fills in what the settings leave to the document: a rendered
// register without a profile follows the seed's rules, any other all of them.
func (s *Source) Resolve(set Settings) (Settings, error) {
	facts, err := s.Facts()
	if err != nil {
		return set, err
	}
	if set.Profile == "" {
		set.Profile = s.Declared.Profile
	}
	if set.Profile == "" {
		set.Profile = Full
		if s.Rendered {
			set.Profile = Seed
		}
	}
	if set.On == "" {
		set.On = s.Declared.EvaluatedOn
	}
	if set.On == "" && facts.Now != nil {
		set.On = *facts.Now
	}
	if set.On == "" {
		set.On = set.Today
	}
	if _, ok := ParseDate(string(set.On)); !ok {
		return set, fmt.Errorf("the day of evaluation %q does not exist; write it as 2026-07-12", set.On)
	}
	return set, nil
}

// Derive validates the register and derives it.
func (s *Source) Derive(set Settings) (*Document, error) {
	e, err := s.Explainer(set)
	if err != nil {
		return nil, err
	}
	return e.Document(), nil
}

// Explainer validates the register and derives it for questions.
func (s *Source) Explainer(set Settings) (*Explainer, error) {
	facts, err := s.Facts()
	if err != nil {
		return nil, err
	}
	if set, err = s.Resolve(set); err != nil {
		return nil, err
	}
	if err := s.placed(validate(&s.Declared, facts)); err != nil {
		return nil, err
	}
	e := NewExplainer(&s.Declared, facts, set.On, set.Profile)
	s.name(e.m.out, facts)
	if s.estate != nil && set.Profile == Full {
		e.m.out.Estate = facts // so that the rendering is its own source
	}
	return e, nil
}

// name says where the register comes from where the estate does not: what was
// rendered keeps its origin.
func (s *Source) name(doc *Document, facts *Estate) {
	if facts.Source != nil {
		return
	}
	doc.Source = s.File
	if v := s.root.Get("source"); v != nil && v.Kind == tree.String {
		doc.Source = v.Text
	}
	if _, bad := forbidden(doc.Source); bad {
		doc.Source = text.Line(doc.Source)
	}
}
