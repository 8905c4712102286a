package arena

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"refbox/engine/text"
)

// Problem is one fault of a manifest or a package.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 unknown
	Offset int64  `json:"offset,omitempty"` // in bytes, JSON alone
	Path   string `json:"path"`             // build.milestones[2].points; "" for the whole
	Text   string `json:"text"`
	// Warning: the arena can be run, but is probably not what was meant.
	Warning bool `json:"warning,omitempty"`
	// Unknown: a key that this version does not know. A reader of recordings
	// may pass over it; an arena that is to be run may not have any.
	Unknown bool `json:"unknown,omitempty"`
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(text.Line(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Offset > 0 {
		fmt.Fprintf(&b, " (byte %d)", p.Offset)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	return b.String() + ": " + p.Text
}

// Invalid is the error of a manifest or package that cannot be run. It holds
// every problem that was found, warnings excluded.
type Invalid struct {
	File     string
	Problems []Problem
}

func (e *Invalid) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].String()
	}
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("%s: %s", e.File, text.Count(len(e.Problems), "fault")))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// read reads a manifest, TOML or JSON (by the file's name, else by its first
// byte), without looking at its package. A syntax error comes alone. Else the
// problems are those of the file's form (unknown or missing keys, types), in order
// of place; then the rules', in the order of the recordings reference, section 1.2,
// ours after them, but for those that follow from a fault of form. Only warnings
// mean that it can be run.
//
// The manifest is nil when the syntax is wrong. Else it holds what could be
// read, so that a recording's arena.json of another era can still be shown.
// Root says where things stand.
func read(file string, data []byte) (m *Manifest, root *value, problems []Problem) {
	root, err := parse(file, data)
	if err != nil {
		p := Problem{File: file, Text: text.Line(err.Error())}
		var se *syntaxError
		if errors.As(err, &se) {
			p.Line, p.Offset = se.at.line, se.at.offset
		}
		return nil, nil, []Problem{p}
	}
	m = &Manifest{}
	d := &decoder{file: file}
	d.decode(root, reflect.ValueOf(m).Elem(), "", "")
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Offset, b.Offset))
	})
	rules := consequences(d.problems, Check(m))
	for i := range rules {
		at := root.find(rules[i].Path)
		rules[i].File, rules[i].Line, rules[i].Offset = file, at.line, at.offset
	}
	return m, root, append(d.problems, rules...)
}

// consequences drops what is only said because of faults that are known: of the
// same part of the manifest, or of what it refers to.
func consequences(known, found []Problem) []Problem {
	refers := map[string]string{"no milestone is called": "build", "is neither \"durable\"": "build", "no class is called": "classes",
		"no territory is called": "territories", "no node is called": "visualization", "none of guest.values": "guest"}
	return slices.DeleteFunc(found, func(p Problem) bool {
		return slices.ContainsFunc(known, func(k Problem) bool {
			if k.Warning || p.Path == "" {
				return false
			}
			if k.Path == p.Path || under(k.Path, p.Path) || under(p.Path, k.Path) {
				return true
			}
			for words, table := range refers {
				if strings.Contains(p.Text, words) && (k.Path == table || under(k.Path, table)) {
					return true
				}
			}
			return false
		})
	})
}

// under tells whether a path is of a part of another's.
func under(path, whole string) bool {
	rest, ok := strings.CutPrefix(path, whole)
	return ok && whole != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// find is the place of a path, or of the nearest thing around it.
func (v *value) find(at string) place {
	where := v.at
	for at != "" {
		var step string
		if i := strings.IndexAny(at[1:], ".["); i < 0 {
			step, at = at, ""
		} else {
			step, at = at[:i+1], at[i+1:]
		}
		var next *value
		switch data := v.data.(type) {
		case *object:
			next = data.fields[strings.TrimPrefix(step, ".")]
		case []*value:
			if n, err := strconv.Atoi(strings.Trim(step, "[]")); err == nil && n < len(data) {
				next = data[n]
			}
		}
		if next == nil {
			break
		}
		v, where = next, next.at
	}
	return where
}

type decoder struct {
	file     string
	problems []Problem
}

func (d *decoder) add(at place, where, format string, args ...any) *Problem {
	d.problems = append(d.problems, Problem{
		File: d.file, Line: at.line, Offset: at.offset, Path: where, Text: fmt.Sprintf(format, args...),
	})
	return &d.problems[len(d.problems)-1]
}

func (d *decoder) decode(v *value, into reflect.Value, where, enum string) {
	switch into.Kind() {
	case reflect.Pointer:
		if v.data == nil {
			return
		}
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(v, into.Elem(), where, enum)
	case reflect.Struct:
		o, ok := v.data.(*object)
		if !ok {
			d.add(v.at, where, "must be a table, not %s", kindOf(v.data))
			return
		}
		d.table(o, v.at, into, where)
	case reflect.Slice:
		list, ok := v.data.([]*value)
		if !ok {
			d.add(v.at, where, "must be an array, not %s", kindOf(v.data))
			return
		}
		into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
		for i, item := range list {
			d.decode(item, into.Index(i), fmt.Sprintf("%s[%d]", where, i), "")
		}
	case reflect.String:
		s, ok := v.data.(string)
		switch {
		case !ok:
			d.add(v.at, where, "must be a string, not %s", kindOf(v.data))
		case enum != "" && !slices.Contains(strings.Split(enum, ","), s):
			d.add(v.at, where, "%s is none of %s", quote(s), strings.ReplaceAll(enum, ",", ", "))
		default:
			into.SetString(s)
		}
	case reflect.Bool:
		b, ok := v.data.(bool)
		if !ok {
			d.add(v.at, where, "must be true or false, not %s", kindOf(v.data))
			return
		}
		into.SetBool(b)
	default: // unsigned integers, the only other kind in a manifest
		n, ok := v.data.(json.Number)
		if !ok {
			d.add(v.at, where, "must be a whole number, not %s", kindOf(v.data))
			return
		}
		u, err := strconv.ParseUint(string(n), 10, into.Type().Bits())
		if err != nil {
			d.add(v.at, where, "must be a whole number from 0 to %d, not %s", ^uint64(0)>>(64-into.Type().Bits()), n)
			return
		}
		into.SetUint(u)
	}
}

func (d *decoder) table(o *object, at place, into reflect.Value, where string) {
	known := make([]string, 0, into.NumField())
	for i := range into.NumField() {
		field := into.Type().Field(i)
		key, opts, _ := strings.Cut(field.Tag.Get("json"), ",")
		known = append(known, key)
		def, hasDefault := field.Tag.Lookup("default")
		switch v := o.fields[key]; {
		case v != nil:
			d.decode(v, into.Field(i), join(where, key), field.Tag.Get("enum"))
		case hasDefault:
			setDefault(into.Field(i), def)
		case field.Type.Kind() != reflect.Pointer && opts != "omitempty":
			d.add(at, join(where, key), "is missing")
		}
	}
	for _, key := range o.keys {
		if !slices.Contains(known, key) {
			d.add(o.fields[key].at, join(where, printable(key)), "unknown key; the keys here are %s", strings.Join(known, ", ")).Unknown = true
		}
	}
}

func setDefault(into reflect.Value, def string) {
	switch into.Kind() {
	case reflect.Slice:
		into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	case reflect.String:
		into.SetString(def)
	case reflect.Bool:
		into.SetBool(def == "true")
	default:
		n, err := strconv.ParseUint(def, 10, 64)
		if err == nil {
			into.SetUint(n)
		}
	}
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

func kindOf(data any) string {
	switch data := data.(type) {
	case nil:
		return "null"
	case *object:
		return "a table"
	case []*value:
		return "an array"
	case string:
		return "the string " + quote(data)
	case bool:
		return strconv.FormatBool(data)
	case json.Number:
		return "the number " + printable(string(data))
	}
	return "a time"
}

// quote shows hostile text: escaped, and not more than a line of it.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

func printable(s string) string {
	q := quote(s)
	return q[1 : len(q)-1]
}

// local reports whether p names a file inside the package.
func local(p string) bool {
	return p != "" && !path.IsAbs(p) && path.Clean(p) != "." && !slices.Contains(strings.Split(p, "/"), "..") && !strings.ContainsAny(p, "\\\x00")
}
