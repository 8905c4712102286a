package probe

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"refbox/engine/text"
)

// method is a builtin with the attempt that it serves.
type method func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error)

func methods(m map[string]method) starlark.StringDict {
	out := make(starlark.StringDict, len(m))
	for name, f := range m {
		out[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			r, err := runOf(t)
			if err != nil {
				return nil, err
			}
			if err := r.ctx.Err(); err != nil {
				return nil, err
			}
			return f(r, args, kw)
		})
	}
	return out
}

func object(name string, d starlark.StringDict) starlark.Value {
	return starlarkstruct.FromStringDict(starlark.String(name), d)
}

func replyValue(r Reply) starlark.Value {
	return object("reply", starlark.StringDict{
		"status": starlark.MakeInt(r.Status), "body": starlark.String(r.Body), "error": starlark.String(r.Error),
		"took": starlark.Float(r.Took.Seconds()),
	})
}

func secretValue(v Value) starlark.Value {
	return object("value", starlark.StringDict{"id": starlark.String(v.ID), "value": starlark.String(v.Value)})
}

func seatValue(a *Attempt) starlark.Value {
	d := outsideOf("")
	d["id"] = starlark.String(a.Seat.c.Territory)
	d["attempt"] = starlark.MakeUint64(a.Number)
	d["guest"] = guestValue("")
	more := methods(map[string]method{
		"machine": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var name string
			if err := starlark.UnpackArgs("machine", args, kw, "name", &name); err != nil {
				return nil, err
			}
			if _, err := r.a.Seat.machine(name); err != nil {
				return nil, err
			}
			d := outsideOf(name)
			d["name"], d["guest"] = starlark.String(name), guestValue(name)
			return object("machine", d), nil
		},
		"value": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var name string
			if err := starlark.UnpackArgs("value", args, kw, "name", &name); err != nil {
				return nil, err
			}
			return secretValue(r.a.Seat.c.Secret.Seat(r.a.Seat.c.Territory, name)), nil
		},
		"fresh": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var name string
			if err := starlark.UnpackArgs("fresh", args, kw, "name", &name); err != nil {
				return nil, err
			}
			return secretValue(r.a.Seat.c.Secret.Fresh(r.a.Seat.c.Territory, r.a.Milestone, r.a.Number, name)), nil
		},
		"previous": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var name string
			if err := starlark.UnpackArgs("previous", args, kw, "milestone", &name); err != nil {
				return nil, err
			}
			raw, ok := r.a.Previous[name]
			if !ok {
				return starlark.None, nil
			}
			return fromJSON(raw)
		},
	})
	for k, v := range more {
		d[k] = v
	}
	for k, v := range methods(map[string]method{"watch": watchMethod, "canary": canaryMethod}) {
		d[k] = v
	}
	return object("seat", d)
}

// outsideOf are the probes that a machine has, "" being the seat's first.
func outsideOf(machine string) starlark.StringDict {
	return methods(map[string]method{
		"http": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var verb, path string
			var body starlark.Value
			timeout, port, on := seconds(2*time.Second), 0, machine
			if err := starlark.UnpackArgs("http", args, kw, "method", &verb, "path", &path, "body?", &body,
				"timeout?", &timeout, "port??", &port, "machine??", &on); err != nil {
				return nil, err
			}
			b, err := bodyOf(body)
			if err != nil {
				return nil, err
			}
			rep, err := r.a.HTTP(r.ctx, Request{Machine: on, Port: port, Method: verb, Path: path, Body: b, Timeout: time.Duration(timeout)})
			if err != nil {
				return nil, err
			}
			return replyValue(rep), nil
		},
		"get_all": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var paths *starlark.List
			timeout, port, on := seconds(2*time.Second), 0, machine
			if err := starlark.UnpackArgs("get_all", args, kw, "paths", &paths, "timeout?", &timeout, "port??", &port, "machine??", &on); err != nil {
				return nil, err
			}
			if paths.Len() == 0 {
				return starlark.NewList(nil), nil
			}
			qs := make([]Request, paths.Len())
			for i := range qs {
				path, ok := starlark.AsString(paths.Index(i))
				if !ok {
					return nil, fmt.Errorf("get_all: paths[%d] is a %s, not text", i, paths.Index(i).Type())
				}
				qs[i] = Request{Machine: on, Port: port, Method: "GET", Path: path, Timeout: time.Duration(timeout)}
			}
			reps, err := r.a.HTTPs(r.ctx, qs)
			if err != nil {
				return nil, err
			}
			return replyValues(reps), nil
		},
		"http_all": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			return httpAll(r, args, kw, machine)
		},
		"set_clock": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var ahead int
			on := machine
			if err := starlark.UnpackArgs("set_clock", args, kw, "ahead", &ahead, "machine??", &on); err != nil {
				return nil, err
			}
			return starlark.None, r.a.SetClock(r.ctx, on, time.Duration(ahead)*time.Second)
		},
		"port": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var port int
			var postgres bool
			on := machine
			if err := starlark.UnpackArgs("port", args, kw, "n", &port, "machine??", &on, "postgres?", &postgres); err != nil {
				return nil, err
			}
			state, err := r.a.Port(r.ctx, on, port, postgres)
			return starlark.String(state), err
		},
		"power": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			on := machine
			if err := starlark.UnpackArgs("power", args, kw, "machine??", &on); err != nil {
				return nil, err
			}
			p, err := r.a.Power(r.ctx, on)
			return starlark.String(p), err
		},
		"console_contains": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var what string
			on := machine
			if err := starlark.UnpackArgs("console_contains", args, kw, "text", &what, "machine??", &on); err != nil {
				return nil, err
			}
			found, err := r.a.ConsoleContains(r.ctx, on, what)
			return starlark.Bool(found), err
		},
	})
}

func bodyOf(v starlark.Value) ([]byte, error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case starlark.String:
		return []byte(v), nil
	case starlark.Bytes:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("body is a %s, not text", v.Type())
}

func guestValue(machine string) starlark.Value {
	return object("guest", methods(guestMethods(machine)))
}

func guestMethods(machine string) map[string]method {
	// with unpacks the one path or name that most verbs take.
	with := func(verb, arg string, f func(r *running, g Guest, s string) (starlark.Value, error)) method {
		return func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var s string
			if err := starlark.UnpackArgs(verb, args, kw, arg, &s); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			return f(r, g, s)
		}
	}
	return map[string]method{
		"read": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var path string
			limit := maxBody
			if err := starlark.UnpackArgs("read", args, kw, "path", &path, "limit?", &limit); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			b, ok, err := g.Read(r.ctx, path, limit)
			if err != nil || !ok {
				return starlark.None, err
			}
			return starlark.String(b), nil
		},
		"exists": with("exists", "path", func(r *running, g Guest, s string) (starlark.Value, error) {
			ok, err := g.Exists(r.ctx, s)
			return starlark.Bool(ok), err
		}),
		"remove": with("remove", "path", func(r *running, g Guest, s string) (starlark.Value, error) {
			return starlark.None, g.Remove(r.ctx, s)
		}),
		"unit": with("unit", "name", func(r *running, g Guest, s string) (starlark.Value, error) {
			u, err := g.Unit(r.ctx, s)
			return object("unit", starlark.StringDict{
				"load": starlark.String(u.LoadState), "active": starlark.String(u.ActiveState), "sub": starlark.String(u.SubState),
				"file": starlark.String(u.UnitFileState), "pid": starlark.MakeInt(u.MainPID), "restarts": starlark.MakeInt(u.Restarts),
			}), err
		}),
		"write": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var path, data string
			mode := 0o644
			if err := starlark.UnpackArgs("write", args, kw, "path", &path, "text", &data, "mode?", &mode); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			return starlark.None, g.Write(r.ctx, path, []byte(data), fs.FileMode(mode)&0o7777)
		},
		"systemctl": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var action, unit string
			if err := starlark.UnpackArgs("systemctl", args, kw, "action", &action, "unit?", &unit); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			res, err := g.Systemctl(r.ctx, action, unit)
			return runValue(res.Exit, res.Stdout, res.Stderr), err
		},
		"listeners": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs("listeners", args, kw); err != nil {
				return nil, err
			}
			if r.a.Seat.replay != nil {
				return nil, &Insufficient{"of listeners only the ports were recorded", false, false}
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			ls, err := g.Listeners(r.ctx)
			out := make([]starlark.Value, 0, len(ls))
			for _, l := range ls {
				out = append(out, object("listener", starlark.StringDict{"ip": starlark.String(l.IP), "port": starlark.MakeInt(l.Port),
					"process": starlark.String(l.Process), "pid": starlark.MakeInt(l.PID)}))
			}
			return starlark.NewList(out), err
		},
		"listening": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var port int
			if err := starlark.UnpackArgs("listening", args, kw, "port", &port); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			ls, err := g.Listeners(r.ctx)
			for _, l := range ls {
				if l.Port == port {
					return starlark.True, err
				}
			}
			return starlark.False, err
		},
		"http": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var verb, url string
			var body starlark.Value
			timeout := seconds(2 * time.Second)
			if err := starlark.UnpackArgs("http", args, kw, "method", &verb, "url", &url, "body?", &body, "timeout?", &timeout); err != nil {
				return nil, err
			}
			b, err := bodyOf(body)
			if err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			rep, err := g.HTTP(r.ctx, verb, url, b, time.Duration(timeout))
			return replyValue(rep), err
		},
		"run": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var argv *starlark.List
			var stdin string
			timeout := seconds(10 * time.Second)
			if err := starlark.UnpackArgs("run", args, kw, "argv", &argv, "stdin?", &stdin, "timeout?", &timeout); err != nil {
				return nil, err
			}
			words := make([]string, argv.Len())
			for i := range words {
				s, ok := starlark.AsString(argv.Index(i))
				if !ok {
					return nil, fmt.Errorf("run: argv[%d] is a %s, not text", i, argv.Index(i).Type())
				}
				words[i] = s
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			res, err := g.Run(r.ctx, words, []byte(stdin), time.Duration(timeout))
			return runValue(res.Exit, res.Stdout, res.Stderr), err
		},
		"sync": func(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs("sync", args, kw); err != nil {
				return nil, err
			}
			g, err := r.a.Guest(machine)
			if err != nil {
				return nil, err
			}
			return starlark.None, g.Sync(r.ctx)
		},
	}
}

func runValue(exit int, stdout, stderr []byte) starlark.Value {
	return object("result", starlark.StringDict{
		"exit": starlark.MakeInt(exit), "stdout": starlark.String(stdout), "stderr": starlark.String(stderr),
	})
}

// toJSON writes evidence: keys sorted, strings sanitised, bounded.
func toJSON(v starlark.Value) (json.RawMessage, error) {
	n := 0
	x, err := plain(v, 0, &n)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(x)
	if err == nil && len(b) > maxEvidence {
		err = fmt.Errorf("larger than %d KiB", maxEvidence>>10)
	}
	return b, err
}

func plain(v starlark.Value, depth int, n *int) (any, error) {
	if *n++; *n > 10_000 || depth > 16 {
		return nil, fmt.Errorf("too large or too deep")
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		return json.Number(v.String()), nil
	case starlark.Float:
		return float64(v), nil
	case starlark.String:
		s := string(v)
		if len(s) > maxBody || !utf8.ValidString(s) {
			s = strings.ToValidUTF8(s[:min(len(s), maxBody)], "\uFFFD")
		}
		return text.Block(s), nil
	case *starlark.Dict:
		m := make(map[string]any, v.Len())
		for _, kv := range v.Items() {
			k, ok := starlark.AsString(kv[0])
			if !ok {
				return nil, fmt.Errorf("key %s is not text", kv[0].Type())
			}
			x, err := plain(kv[1], depth+1, n)
			if err != nil {
				return nil, err
			}
			m[text.Line(k)] = x
		}
		return m, nil
	case *starlarkstruct.Struct:
		m := map[string]any{}
		for _, k := range v.AttrNames() {
			a, err := v.Attr(k)
			if err != nil {
				return nil, err
			}
			x, err := plain(a, depth+1, n)
			if err != nil {
				return nil, err
			}
			m[k] = x
		}
		return m, nil
	case starlark.Iterable:
		out := []any{}
		it := v.Iterate()
		defer it.Done()
		var e starlark.Value
		for it.Next(&e) {
			x, err := plain(e, depth+1, n)
			if err != nil {
				return nil, err
			}
			out = append(out, x)
		}
		return out, nil
	}
	return nil, fmt.Errorf("a %s is no evidence", v.Type())
}

func fromJSON(raw json.RawMessage) (starlark.Value, error) {
	t := new(starlark.Thread)
	return starlark.Call(t, starjson.Module.Members["decode"], starlark.Tuple{starlark.String(raw)}, nil)
}
