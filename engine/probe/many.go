package probe

import (
	"fmt"
	"time"

	"go.starlark.net/starlark"
)

func replyValues(reps []Reply) starlark.Value {
	out := make([]starlark.Value, len(reps))
	for i, rep := range reps {
		out[i] = replyValue(rep)
	}
	return starlark.NewList(out)
}

// httpAll is seat.http_all.
func httpAll(r *running, args starlark.Tuple, kw []starlark.Tuple, machine string) (starlark.Value, error) {
	var list *starlark.List
	timeout, port, on := seconds(2*time.Second), 0, machine
	if err := starlark.UnpackArgs("http_all", args, kw, "requests", &list, "timeout?", &timeout, "port??", &port, "machine??", &on); err != nil {
		return nil, err
	}
	if list.Len() == 0 {
		return starlark.NewList(nil), nil
	}
	qs := make([]Request, list.Len())
	for i := range qs {
		d, ok := list.Index(i).(*starlark.Dict)
		if !ok {
			return nil, fmt.Errorf("http_all: requests[%d] is a %s, not a dict", i, list.Index(i).Type())
		}
		q, err := requestOf(d)
		if err != nil {
			return nil, fmt.Errorf("http_all: requests[%d]: %w", i, err)
		}
		q.Machine, q.Port, q.Timeout = on, port, time.Duration(timeout)
		qs[i] = q
	}
	reps, err := r.a.HTTPs(r.ctx, qs)
	if err != nil {
		return nil, err
	}
	return replyValues(reps), nil
}

func requestOf(d *starlark.Dict) (Request, error) {
	q := Request{Method: "GET"}
	for _, kv := range d.Items() {
		key, _ := starlark.AsString(kv[0])
		text, isText := starlark.AsString(kv[1])
		switch {
		case key == "method" && isText:
			q.Method = text
		case key == "path" && isText:
			q.Path = text
		case key == "body":
			b, err := bodyOf(kv[1])
			if err != nil {
				return q, err
			}
			q.Body = b
		case key == "after":
			var after seconds
			if err := after.Unpack(kv[1]); err != nil {
				return q, fmt.Errorf("after: %w", err)
			}
			q.After = time.Duration(after)
		default:
			return q, fmt.Errorf("%s is a %s: there are method, path, body and after", kv[0], kv[1].Type())
		}
	}
	return q, nil
}
