package tree

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"refbox/engine/internal/tomlplace"
)

func parseTOML(data []byte) (*Value, error) {
	places := tomlplace.Find(data, MaxDepth)
	if places.TooDeep >= 0 {
		return nil, &Error{newLines(data).pos(places.TooDeep), fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	var raw map[string]any
	if _, err := toml.Decode(string(data), &raw); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, &Error{Pos{pe.Position.Line, pe.Position.Col}, pe.Message}
		}
		return nil, &Error{Text: err.Error()}
	}
	return (&tomlTree{places.Keys, newLines(data)}).value(raw, "", 0)
}

type tomlTree struct {
	places map[string]int
	lines  *lines
}

func (t *tomlTree) pos(path string) Pos {
	if off, ok := t.places[path]; ok {
		return t.lines.pos(off)
	}
	return Pos{}
}

func (t *tomlTree) value(raw any, path string, depth int) (*Value, error) {
	v := &Value{Pos: t.pos(path)}
	if depth > MaxDepth {
		return nil, &Error{v.Pos, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	list := func(n int, item func(int) any) error {
		v.Kind = List
		for i := range n {
			c, err := t.value(item(i), path+tomlplace.Index(i), depth+1)
			if err != nil {
				return err
			}
			v.Items = append(v.Items, c)
		}
		return nil
	}
	switch raw := raw.(type) {
	case map[string]any:
		v.Kind = Object
		return v, t.object(v, raw, path, depth)
	case []map[string]any:
		return v, list(len(raw), func(i int) any { return raw[i] })
	case []any:
		return v, list(len(raw), func(i int) any { return raw[i] })
	case int64:
		v.Kind, v.Text = Number, strconv.FormatInt(raw, 10)
	case float64:
		s, ok := floatText(raw)
		if !ok {
			return nil, &Error{v.Pos, "is no finite number"}
		}
		v.Kind, v.Text = Number, s
	case bool:
		v.Kind, v.Bool = Bool, raw
	case string:
		v.Kind, v.Text = String, strings.ReplaceAll(raw, "\r\n", "\n") // of a text of several lines
	case time.Time:
		// The library marks what the file said by the zone's name.
		layout := map[string]string{"date-local": "2006-01-02", "time-local": "15:04:05.999999999", "datetime-local": "2006-01-02T15:04:05.999999999"}[raw.Location().String()]
		if layout == "" {
			layout = time.RFC3339Nano
		}
		v.Kind, v.Text = String, raw.Format(layout)
	default:
		return nil, &Error{v.Pos, fmt.Sprintf("cannot be read (%T)", raw)}
	}
	return v, nil
}

func (t *tomlTree) object(v *Value, raw map[string]any, path string, depth int) error {
	names := make([]string, 0, len(raw))
	for k := range raw {
		names = append(names, k)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := t.places[path+tomlplace.Key(names[i])], t.places[path+tomlplace.Key(names[j])]
		if a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	for _, k := range names {
		c, err := t.value(raw[k], path+tomlplace.Key(k), depth+1)
		if err != nil {
			return err
		}
		v.Fields = append(v.Fields, Field{k, c.Pos, c})
	}
	return nil
}
