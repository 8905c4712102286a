package probe

import (
	"context"

	"go.starlark.net/starlark"
)

// Canary is what the referee's client of a seat has measured: how its writes ended, how
// many of the acknowledged ones read back wrong or not at all (Lost), of how many nothing
// is known (Unread), and for how long none was acknowledged. Down: the last one was not.
type Canary struct {
	Writes, Acknowledged, Failed, Indeterminate uint64
	Lost, Unread                                uint64
	Outages, OutageMS, LongestMS                uint64
	Down                                        bool
}

const canaryForgeable = "nothing: the values are secret, and the client outside the guest"

// canaryFields are the names of a Canary's numbers, in records and for verifiers.
func canaryFields(c *Canary) map[string]*uint64 {
	return map[string]*uint64{"writes": &c.Writes, "acknowledged": &c.Acknowledged, "failed": &c.Failed, "indeterminate": &c.Indeterminate,
		"lost": &c.Lost, "unread": &c.Unread, "outages": &c.Outages, "outage_ms": &c.OutageMS, "longest_ms": &c.LongestMS}
}

// canaryMethod is seat.canary.
func canaryMethod(r *running, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs("canary", args, kw); err != nil {
		return nil, err
	}
	c, err := r.a.Canary(r.ctx)
	if err != nil {
		return nil, err
	}
	d := starlark.StringDict{"down": starlark.Bool(c.Down)}
	for name, n := range canaryFields(&c) {
		d[name] = starlark.MakeUint64(*n)
	}
	return object("canary", d), nil
}

// Canary is what the referee's client has measured.
func (a *Attempt) Canary(ctx context.Context) (Canary, error) {
	var c Canary
	m := a.Seat.c.Machines[0]
	rec := Record{Call: "canary", Outside: true, Forgeable: canaryForgeable}
	err := a.call(ctx, rec, m, func(ctx context.Context) (map[string]any, error) {
		if p := a.Seat.replay; p != nil {
			recorded, err := p.take("canary", m.Name(), nil)
			for name, n := range canaryFields(&c) {
				*n = uint64(number(recorded, name))
			}
			c.Down, _ = recorded.Response["down"].(bool)
			return recorded.Response, err
		}
		if a.Seat.canary == nil {
			return nil, failure(Broken, "canary: the arena declares none")
		}
		var err error
		c, err = a.Seat.canary(ctx)
		res := map[string]any{"down": c.Down}
		for name, n := range canaryFields(&c) {
			res[name] = *n
		}
		return res, err
	})
	return c, err
}
