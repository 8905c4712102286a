package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

func parseYAML(data []byte) (v *Value, err error) {
	// The library promises errors; a hostile file is no place to find out.
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, &Error{Text: fmt.Sprintf("cannot be read as YAML: %v", r)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{Pos{1, 1}, "the file is empty"}
		}
		return nil, yamlError(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Error{Pos{more.Line, more.Column}, "a second document follows; one is wanted"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	if doc.Kind == yaml.DocumentNode {
		if len(doc.Content) == 0 {
			return nil, &Error{Pos{1, 1}, "the file is empty"}
		}
		return yamlValue(doc.Content[0], 0)
	}
	return yamlValue(&doc, 0)
}

func yamlError(err error) error {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return &Error{Pos{le.Mark.Line, le.Mark.Column}, le.Message}
	}
	return &Error{Text: strings.TrimPrefix(err.Error(), "yaml: ")}
}

func yamlValue(n *yaml.Node, depth int) (*Value, error) {
	at := Pos{n.Line, n.Column}
	fail := func(format string, a ...any) (*Value, error) { return nil, &Error{at, fmt.Sprintf(format, a...)} }
	if depth > MaxDepth {
		return fail("nested deeper than %d levels", MaxDepth)
	}
	v := &Value{Pos: at}
	switch n.Kind {
	case yaml.AliasNode:
		return fail("aliases (*%s) are not read here; write the value out", n.Value)
	case yaml.SequenceNode:
		v.Kind = List
		for _, c := range n.Content {
			item, err := yamlValue(c, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
	case yaml.MappingNode:
		v.Kind = Object
		seen := newKeys()
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			at = Pos{k.Line, k.Column}
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				return fail("a key must be a plain string; merge keys are not read here")
			}
			if err := seen.add(k.Value, at); err != nil {
				return nil, err
			}
			c, err := yamlValue(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			v.Fields = append(v.Fields, Field{k.Value, at, c})
		}
	case yaml.ScalarNode:
		return v, yamlScalar(v, n)
	default:
		return fail("cannot be read")
	}
	return v, nil
}

func yamlScalar(v *Value, n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		v.Kind, v.Text = String, n.Value
		return nil
	case "!!bool", "!!int", "!!float":
		var x any
		if err := n.Decode(&x); err != nil {
			return yamlError(err)
		}
		switch x := x.(type) {
		case bool:
			v.Kind, v.Bool = Bool, x
			return nil
		case int:
			v.Kind, v.Text = Number, strconv.Itoa(x)
			return nil
		case int64:
			v.Kind, v.Text = Number, strconv.FormatInt(x, 10)
			return nil
		case uint64:
			v.Kind, v.Text = Number, strconv.FormatUint(x, 10)
			return nil
		case float64:
			if s, ok := floatText(x); ok {
				v.Kind, v.Text = Number, s
				return nil
			}
		}
		return &Error{v.Pos, fmt.Sprintf("%s is no finite number", n.Value)}
	default:
		return &Error{v.Pos, fmt.Sprintf("the tag %s is not read here", tag)}
	}
}
