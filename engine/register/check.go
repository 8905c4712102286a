package register

import (
	"bytes"
	"fmt"
	"strconv"

	"refbox/engine/register/internal/tree"
	"refbox/engine/text"
)

// Difference is one place where a rendered register is not what its declared
// part derives. Have and Want are brief: strings are quoted and clipped, lists
// and tables are counted, and empty is absent.
type Difference struct {
	Path   string `json:"path"`
	Line   int    `json:"line"` // in the file; of the surroundings where it is absent
	Column int    `json:"column"`
	Have   string `json:"have"`
	Want   string `json:"want"`
}

// Result is what Check found.
type Result struct {
	File     string `json:"file"`
	Rendered bool   `json:"rendered"` // false: the file only declares, so nothing was compared
	// Holds is true when the file says exactly what it derives, to the byte for
	// JSON (but for one newline at its end).
	Holds       bool         `json:"holds"`
	Profile     Profile      `json:"profile"`
	On          Date         `json:"evaluatedOn"`
	Differences []Difference `json:"differences"` // the first MaxDifferences
	Total       int          `json:"total"`
	// Form is where a file with no other difference is written otherwise than
	// the derivation writes it; null if it is not.
	Form     *Difference `json:"form"`
	Summary  Summary     `json:"summary"`  // derived
	Findings []Finding   `json:"findings"` // derived
	Document *Document   `json:"-"`
}

// MaxDifferences is how many differences a Result lists.
const MaxDifferences = 200

// Check strips a register of its derived fields, derives them again and
// compares.
func (s *Source) Check(set Settings) (*Result, error) {
	set, err := s.Resolve(set)
	if err != nil {
		return nil, err
	}
	doc, err := s.Derive(set)
	if err != nil {
		return nil, err
	}
	r := &Result{File: s.File, Rendered: s.Rendered, Profile: set.Profile, On: set.On, Differences: []Difference{}, Summary: doc.Summary, Findings: doc.Findings, Document: doc}
	if !s.Rendered {
		r.Holds = true
		return r, nil
	}
	want := doc.Encode()
	if s.Syntax == string(tree.JSON) && bytes.Equal(bytes.TrimSuffix(s.data, []byte("\n")), want) {
		r.Holds = true
		return r, nil
	}
	derived, err := tree.Parse(tree.JSON, want, bulk)
	if err != nil {
		return nil, fmt.Errorf("the derived register cannot be read back: %w", err)
	}
	c := comparison{r: r, toml: s.Syntax == string(tree.TOML)}
	c.value("", s.root.Pos, s.root, derived)
	if r.Total == 0 && s.Syntax == string(tree.JSON) {
		r.Form = form(bytes.TrimSuffix(s.data, []byte("\n")), want)
	}
	r.Holds = r.Total == 0 && r.Form == nil
	return r, nil
}

type comparison struct {
	r    *Result
	toml bool // which has no null: there an absent key is one
}

func (c *comparison) differ(path string, at tree.Pos, have, want string) {
	c.r.Total++
	if len(c.r.Differences) < MaxDifferences {
		c.r.Differences = append(c.r.Differences, Difference{path, at.Line, at.Col, have, want})
	}
}

func (c *comparison) value(path string, at tree.Pos, have, want *tree.Value) {
	switch {
	case have.Kind != want.Kind, !same(have, want):
		c.differ(path, at, brief(have), brief(want))
	case have.Kind == tree.Object:
		c.object(path, have, want)
	case have.Kind == tree.List:
		for i := range max(have.Len(), want.Len()) {
			p := path + "[" + strconv.Itoa(i) + "]"
			switch {
			case i >= want.Len():
				h := have.Item(i)
				c.differ(p, h.Pos, brief(h), "")
			case i >= have.Len():
				c.differ(p, have.Pos, "", brief(want.Item(i)))
			default:
				h := have.Item(i)
				c.value(p, h.Pos, h, want.Item(i))
			}
		}
	}
}

func (c *comparison) object(path string, have, want *tree.Value) {
	for i := range want.Fields {
		w := &want.Fields[i]
		h := have.Field(w.Key)
		switch {
		case h != nil:
			c.value(join(path, w.Key), h.Pos, h.Value, w.Value)
		case !c.toml || w.Kind != tree.Null:
			c.differ(join(path, w.Key), have.Pos, "", brief(w.Value))
		}
	}
	for i := range have.Fields {
		if h := &have.Fields[i]; want.Field(h.Key) == nil {
			c.differ(join(path, keyName(h.Key)), h.Pos, brief(h.Value), "")
		}
	}
}

// same compares two values of one kind, but not what is inside.
func same(a, b *tree.Value) bool {
	switch a.Kind {
	case tree.Bool:
		return a.Bool == b.Bool
	case tree.String:
		return a.Text == b.Text
	case tree.Number:
		x, errX := strconv.ParseFloat(a.Text, 64)
		y, errY := strconv.ParseFloat(b.Text, 64)
		return errX == nil && errY == nil && x == y
	}
	return true
}

// brief is a value as a difference shows it.
func brief(v *tree.Value) string {
	switch v.Kind {
	case tree.Null:
		return "null"
	case tree.Bool:
		return strconv.FormatBool(v.Bool)
	case tree.Number:
		return clip(v.Text)
	case tree.String:
		return strconv.Quote(clip(v.Text))
	case tree.List:
		return fmt.Sprintf("[%s]", text.Count(v.Len(), "item"))
	default:
		return fmt.Sprintf("{%s}", text.Count(len(v.Fields), "key"))
	}
}

// form finds the first line that is written otherwise.
func form(have, want []byte) *Difference {
	if bytes.Equal(have, want) {
		return nil
	}
	for line := 1; ; line++ {
		h, restH, moreH := bytes.Cut(have, []byte("\n"))
		w, restW, moreW := bytes.Cut(want, []byte("\n"))
		if !bytes.Equal(h, w) || moreH != moreW {
			col := 1
			for col <= len(h) && col <= len(w) && h[col-1] == w[col-1] {
				col++
			}
			return &Difference{Line: line, Column: col, Have: strconv.Quote(clip(string(h))), Want: strconv.Quote(clip(string(w)))}
		}
		have, want = restH, restW
	}
}
