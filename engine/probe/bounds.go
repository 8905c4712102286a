package probe

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// A verifier's memory is bounded. Its steps are counted, so what it builds step by
// step is small; what can make much of little in one step is not left to the
// interpreter: before the file is compiled, each operator, call, slice and tuple
// in it becomes a call of a guard, which first works out what the result would
// take and charges it to the thread's budget. What is charged is never given
// back, so the budget bounds the work of those operations too.

const (
	maxMemory = 64 << 20 // of one run of a verifier's function
	valueSize = 16       // charged for any value, besides what it holds
	maxDepth  = 64       // of values in values
	maxBits   = 4096     // of a product
	maxJSON   = 256 << 10
)

var errMemory = fmt.Errorf("the verifier takes more than %d MiB", maxMemory>>20)

// localBudget is the thread-local that holds what is left, an *int.
const localBudget = "budget"

func charge(t *starlark.Thread, n int) error {
	left, ok := t.Local(localBudget).(*int)
	if !ok {
		return errMemory
	}
	if n > *left {
		*left = 0
		return errMemory
	}
	*left -= n
	return nil
}

// weigh is what v takes, and what it holds as often as it occurs in itself: what
// a copy in text would take. Text counts when texts is set. An error when that is
// more than a verifier may take, or cannot be told.
func weigh(v starlark.Value, texts bool) (int, error) {
	s := scale{left: maxMemory, texts: texts}
	switch {
	case s.take(v, 0):
		return maxMemory - s.left, nil
	case s.deep:
		return tooMuch, errors.New("values are nested too deeply")
	}
	return tooMuch, errMemory
}

type scale struct {
	left  int
	texts bool
	deep  bool // it was stopped by the depth
}

// take goes through v; false when it was too much.
func (s *scale) take(v starlark.Value, depth int) bool {
	if depth > maxDepth {
		s.deep = true
		return false
	}
	s.left -= valueSize
	switch v := v.(type) {
	case starlark.String:
		if s.texts {
			s.left -= len(v)
		}
	case starlark.Bytes:
		if s.texts {
			s.left -= 4 * len(v) // as it is written
		}
	case starlark.Int:
		if _, small := v.Int64(); s.texts && !small {
			s.left -= v.BigInt().BitLen() / 3
		}
	case starlark.Tuple:
		for _, e := range v {
			if s.left < 0 || !s.take(e, depth+1) {
				return false
			}
		}
	case *starlark.List:
		for i := range v.Len() {
			if s.left < 0 || !s.take(v.Index(i), depth+1) {
				return false
			}
		}
	case *starlark.Dict:
		s.left -= 4 * valueSize * v.Len()
		for k, e := range v.Entries() {
			if s.left < 0 || !s.take(k, depth+1) || !s.take(e, depth+1) {
				return false
			}
		}
	case *starlarkstruct.Struct:
		for _, name := range v.AttrNames() {
			a, err := v.Attr(name)
			if s.left -= len(name); s.left < 0 || err != nil || !s.take(a, depth+1) {
				return false
			}
		}
	}
	return s.left >= 0
}

// chargeValue charges what v weighs.
func chargeValue(t *starlark.Thread, v starlark.Value, texts bool) error {
	n, err := weigh(v, texts)
	return errors.Join(err, charge(t, n))
}

// chargeArgument charges what a builtin may make of v: if it can be iterated over,
// a copy.
func chargeArgument(t *starlark.Thread, v starlark.Value) error {
	if err := chargeValue(t, v, true); err != nil {
		return err
	}
	switch v := v.(type) {
	case starlark.Tuple, *starlark.List, *starlark.Dict:
		return nil
	case starlark.Sequence: // such as a range
		return charge(t, times(valueSize, v.Len()))
	case starlark.Iterable: // such as a string's codepoints
		it := v.Iterate()
		defer it.Done()
		var e starlark.Value
		for it.Next(&e) {
			if err := charge(t, 4*valueSize); err != nil {
				return err
			}
		}
	}
	return nil
}

// Names of the guards. No file can spell them.
const (
	guardBinary  = "guarded operator"
	guardExtend  = "guarded +="
	guardCall    = "guarded call"
	guardCopy    = "guarded slice"
	guardMeasure = "guarded tuple"
)

type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

func guards() starlark.StringDict {
	out := starlark.StringDict{}
	for name, f := range map[string]builtin{
		guardBinary: func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			op, _ := starlark.AsInt32(args[0])
			return binary(t, syntax.Token(op), args[1], args[2])
		},
		guardExtend: func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			list, ok := args[0].(*starlark.List)
			if _, iterable := args[1].(starlark.Iterable); !ok || !iterable {
				return binary(t, syntax.PLUS, args[0], args[1])
			}
			extend, err := list.Attr("extend") // in place, as += does
			if err == nil {
				err = chargeArgument(t, args[1])
			}
			if err != nil {
				return nil, err
			}
			_, err = starlark.Call(t, extend, args[1:2], nil)
			return list, err
		},
		guardCall: func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			return call(t, args[0], args[1:], kw)
		},
		guardCopy: func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			n := valueSize
			if s, ok := args[0].(starlark.Sequence); ok {
				n += valueSize * s.Len()
			} else {
				n += max(0, starlark.Len(args[0]))
			}
			return args[0], charge(t, n)
		},
		guardMeasure: func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return args[0], chargeValue(t, args[0], false)
		},
	} {
		out[name] = starlark.NewBuiltin(name, f)
	}
	return out
}

func binary(t *starlark.Thread, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	var err error
	switch op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		if err = errors.Join(chargeValue(t, x, false), chargeValue(t, y, false)); err != nil {
			return nil, err
		}
		ok, err := starlark.Compare(op, x, y)
		return starlark.Bool(ok), err
	case syntax.STAR:
		err = charge(t, product(x, y))
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			n, werr := weigh(y, true)
			err = errors.Join(werr, charge(t, times(1+strings.Count(string(format), "%"), n)+len(format)))
		}
	case syntax.PLUS, syntax.PIPE:
		err = errors.Join(chargeValue(t, x, true), chargeValue(t, y, true))
	case syntax.IN, syntax.NOT_IN:
		err = errors.Join(chargeValue(t, x, false), chargeValue(t, y, false))
	}
	if err != nil {
		return nil, err
	}
	if op == syntax.NOT_IN {
		in, err := starlark.Binary(syntax.IN, x, y)
		if err != nil {
			return nil, err
		}
		return !in.Truth(), nil
	}
	return starlark.Binary(op, x, y)
}

// product is what x * y takes.
func product(x, y starlark.Value) int {
	a, xi := x.(starlark.Int)
	b, yi := y.(starlark.Int)
	switch {
	case xi && yi:
		if a.BigInt().BitLen()+b.BigInt().BitLen() > maxBits {
			return tooMuch
		}
		return 2 * valueSize
	case xi:
		x, b = y, a
	case !yi:
		return valueSize // an error, or floats
	}
	n, ok := b.Int64()
	if !ok || n > maxMemory {
		return tooMuch
	}
	each := valueSize
	switch x := x.(type) {
	case starlark.String:
		each = len(x)
	case starlark.Bytes:
		each = len(x)
	case starlark.Sequence:
		each = valueSize * x.Len()
	}
	return valueSize + times(each, int(max(0, n)))
}

// tooMuch can be added to.
const tooMuch = maxMemory + 1

// times multiplies what is not negative, up to tooMuch.
func times(a, b int) int {
	if a != 0 && b > maxMemory/a {
		return tooMuch
	}
	return a * b
}

func call(t *starlark.Thread, f starlark.Value, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	b, ok := f.(*starlark.Builtin)
	if !ok { // its own operations are guarded
		return starlark.Call(t, f, args, kw)
	}
	all := args
	for _, p := range kw {
		if _, ok := p[1].(*starlark.Builtin); ok && p[0] == starlark.String("key") {
			return nil, fmt.Errorf("%s: key must be a function of the file", b.Name())
		}
		all = append(all[:len(all):len(all)], p[1])
	}
	for _, a := range all {
		if err := chargeArgument(t, a); err != nil {
			return nil, err
		}
	}
	if err := chargeMaking(t, b, all); err != nil {
		return nil, err
	}
	v, err := starlark.Call(t, f, args, kw)
	if err != nil {
		return nil, err
	}
	return v, chargeValue(t, v, true)
}

// chargeMaking charges builtins whose result may be more than their arguments.
func chargeMaking(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple) error {
	text := func(i int) string {
		if i < len(args) {
			if s, ok := args[i].(starlark.String); ok {
				return string(s)
			}
		}
		return ""
	}
	self, _ := b.Receiver().(starlark.String)
	switch b.Name() {
	case "replace":
		return charge(t, times(len(self)+1, len(text(1))))
	case "join":
		n := 0
		if len(args) > 0 {
			n = max(0, starlark.Len(args[0]))
		}
		return charge(t, times(len(self), n))
	case "format":
		n, err := weigh(args, true)
		return errors.Join(err, charge(t, times(1+strings.Count(string(self), "{"), n)+len(self)))
	case "split", "rsplit", "splitlines":
		return charge(t, times(2*valueSize, len(self)))
	case "int", "json.decode":
		// The first takes its text's length squared, the second is recursive.
		limit := maxJSON
		if b.Name() == "int" {
			limit = maxBits
		}
		if s := text(0); len(s) > limit {
			return fmt.Errorf("%s: the text is longer than %d bytes", b.Name(), limit)
		} else if b.Name() == "json.decode" {
			return charge(t, times(4*valueSize, len(s)))
		}
	}
	return nil
}
