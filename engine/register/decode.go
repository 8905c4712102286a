package register

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"refbox/engine/register/internal/tree"
)

// maxNumber bounds every number; maxID every id.
const (
	maxNumber = 1 << 53
	maxID     = 128
)

// decoder fills the declared fields of a document from a tree. It goes on
// after a problem, so that one run names them all (up to maxProblems).
type decoder struct {
	problems problems
}

// field is one JSON key of a struct.
type field struct {
	key      string
	index    int
	ignored  bool // derived or joined
	optional bool
}

var fieldCache sync.Map // reflect.Type → []field

func fieldsOf(t reflect.Type) []field {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]field)
	}
	var list []field
	for i := range t.NumField() {
		sf := t.Field(i)
		key, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		tag := sf.Tag.Get("reg")
		list = append(list, field{
			key:      key,
			index:    i,
			ignored:  tag == "derived" || tag == "joined",
			optional: tag == "optional" || sf.Type.Kind() == reflect.Pointer,
		})
	}
	fieldCache.Store(t, list)
	return list
}

func (d *decoder) bad(path string, at tree.Pos, format string, a ...any) {
	d.problems.add(Problem{Path: path, Line: at.Line, Column: at.Col, Message: fmt.Sprintf(format, a...)})
}

// value decodes v into out. An unreadable value leaves out at zero.
func (d *decoder) value(path string, v *tree.Value, out reflect.Value) {
	if d.problems.full() {
		return
	}
	if out.Kind() == reflect.Pointer {
		if v.Kind == tree.Null {
			return
		}
		out.Set(reflect.New(out.Type().Elem()))
		d.value(path, v, out.Elem())
		return
	}
	if _, ok := out.Interface().(interface{ isKeyed() }); ok {
		d.keyed(path, v, out)
		return
	}
	want := map[reflect.Kind]tree.Kind{
		reflect.Struct: tree.Object, reflect.Slice: tree.List, reflect.String: tree.String, reflect.Bool: tree.Bool,
	}
	kind, ok := want[out.Kind()]
	if !ok {
		kind = tree.Number
	}
	if v.Kind != kind {
		d.bad(path, v.Pos, "is %s; %s is wanted", v.Kind, kind)
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		d.object(path, v, out)
	case reflect.Slice:
		list := reflect.MakeSlice(out.Type(), len(v.Items), len(v.Items))
		for i, c := range v.Items {
			d.value(path+"["+strconv.Itoa(i)+"]", c, list.Index(i))
		}
		out.Set(list)
	case reflect.Bool:
		out.SetBool(v.Bool)
	case reflect.String:
		d.text(path, v, out)
	default:
		d.number(path, v, out)
	}
}

func (d *decoder) object(path string, v *tree.Value, out reflect.Value) {
	if def, ok := out.Addr().Interface().(interface{ setDefaults() }); ok {
		def.setDefaults()
	}
	fields := fieldsOf(out.Type())
	for i := range v.Fields {
		f := &v.Fields[i]
		known := false
		for _, k := range fields {
			known = known || k.key == f.Key
		}
		if !known {
			d.bad(join(path, keyName(f.Key)), f.Pos, "unknown key%s", nearest(f.Key, fields))
		}
	}
	for _, k := range fields {
		if k.ignored {
			continue
		}
		f := v.Field(k.key)
		slot := out.Field(k.index)
		switch {
		case f != nil && (f.Kind != tree.Null || !k.optional):
			d.value(join(path, k.key), f.Value, slot)
		case f == nil && !k.optional:
			d.bad(join(path, k.key), v.Pos, "is missing")
		}
		if slot.Kind() == reflect.Slice && slot.IsNil() {
			slot.Set(reflect.MakeSlice(slot.Type(), 0, 0))
		}
	}
}

// keyed decodes an object into a Keyed, a slice of {ID, Value}.
func (d *decoder) keyed(path string, v *tree.Value, out reflect.Value) {
	if v.Kind != tree.Object {
		d.bad(path, v.Pos, "is %s; a table is wanted", v.Kind)
		return
	}
	list := reflect.MakeSlice(out.Type(), len(v.Fields), len(v.Fields))
	for i := range v.Fields {
		f := &v.Fields[i]
		if why := badID(f.Key); why != "" {
			d.bad(join(path, keyName(f.Key)), f.Pos, "%s", why)
			continue
		}
		list.Index(i).Field(0).SetString(f.Key)
		d.value(join(path, f.Key), f.Value, list.Index(i).Field(1))
	}
	out.Set(list)
}

func (d *decoder) text(path string, v *tree.Value, out reflect.Value) {
	switch kind := out.Interface().(type) {
	case Date:
		if _, ok := ParseDate(v.Text); !ok {
			d.bad(path, v.Pos, "%q is not a day that exists; write it as 2026-07-12", clip(v.Text))
			return
		}
	case interface{ known() []string }:
		known := kind.known()
		ok := false
		for _, w := range known {
			ok = ok || w == v.Text
		}
		if !ok {
			d.bad(path, v.Pos, "%q is not known here; it is one of %s", clip(v.Text), strings.Join(known, ", "))
			return
		}
	default:
		if r, ok := forbidden(v.Text); ok {
			d.bad(path, v.Pos, "holds the control character %U; remove it", r)
			return
		}
	}
	out.SetString(v.Text)
}

func (d *decoder) number(path string, v *tree.Value, out reflect.Value) {
	f, err := strconv.ParseFloat(v.Text, 64)
	switch {
	case err != nil || f > maxNumber:
		d.bad(path, v.Pos, "%s is too large", clip(v.Text))
	case f < 0:
		d.bad(path, v.Pos, "%s is negative", clip(v.Text))
	case out.Kind() == reflect.Float64:
		out.SetFloat(f)
	default:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil {
			d.bad(path, v.Pos, "%s is not a whole number", clip(v.Text))
			return
		}
		out.SetInt(n)
	}
}

// forbidden finds what no text of a register needs and a terminal would obey:
// controls but tab and line feed, and the marks that turn the writing around.
func forbidden(s string) (rune, bool) {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return r, true
		}
	}
	return 0, false
}

// badID says why s cannot be an id, or "".
func badID(s string) string {
	if s == "" {
		return "an id must not be empty"
	}
	if len(s) > maxID {
		return fmt.Sprintf("an id is at most %d bytes long", maxID)
	}
	for i, r := range s {
		if r < utf8Self && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			continue
		}
		if i > 0 && strings.ContainsRune("-_.:/@", r) {
			continue
		}
		return fmt.Sprintf("%q cannot be an id: letters, digits and -_.:/@, the first a letter or digit", clip(s))
	}
	return ""
}

const utf8Self = 0x80

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// keyName is a key as a path shows it: quoted when it is no plain word.
func keyName(key string) string {
	if badID(key) == "" {
		return key
	}
	return strconv.Quote(clip(key))
}

// clip keeps a value that an error quotes short.
func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	n := 80
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// nearest names the key that was probably meant.
func nearest(key string, fields []field) string {
	best, least := "", 3
	for _, f := range fields {
		if d := distance(strings.ToLower(key), strings.ToLower(f.key)); d < least {
			best, least = f.key, d
		}
	}
	if best == "" {
		return ""
	}
	return "; is " + best + " meant?"
}

// distance is Levenshtein's, for short strings.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
