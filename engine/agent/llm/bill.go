package llm

import (
	"math"

	"refbox/engine/agent"
)

// bill is what the conversation used. The sums are of what is known; unknown
// says that they are not all.
type bill struct {
	rounds, tools         uint64
	in, out, cached, cost uint64
	tokensUnknown         bool
	costUnknown           bool
}

// spent is the usage of one answer; nil for unknown.
type spent struct {
	in, out, cached *uint64
	cost            *uint64 // micro-dollars
}

// tell is what an endpoint says of an answer's usage.
type tell struct {
	Prompt     *uint64  `json:"prompt_tokens"`
	Completion *uint64  `json:"completion_tokens"`
	Cost       *float64 `json:"cost"` // dollars: OpenRouter's
	Details    *struct {
		Cached *uint64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// spent is the usage, priced where the endpoint does not say what it cost.
func (t *tell) spent(p *Prices) spent {
	if t == nil {
		return spent{}
	}
	s := spent{in: t.Prompt, out: t.Completion}
	if t.Details != nil {
		s.cached = t.Details.Cached
	}
	switch {
	case t.Cost != nil && *t.Cost >= 0 && *t.Cost < 1e9:
		c := uint64(math.Round(*t.Cost * 1e6))
		s.cost = &c
	case p != nil && s.in != nil && s.out != nil:
		c := p.cost(*s.in, *s.out, s.cached)
		s.cost = &c
	}
	return s
}

// cost is in micro-dollars, rounded up.
func (p Prices) cost(in, out uint64, cached *uint64) uint64 {
	sum := float64(in)*float64(p.Input) + float64(out)*float64(p.Output)
	if cached != nil && p.Cached != nil {
		n := float64(min(*cached, in))
		sum += n*float64(*p.Cached) - n*float64(p.Input)
	}
	return uint64(math.Ceil(max(0, sum) / 1e6))
}

// charge adds an answer.
func (b *bill) charge(a *answer) {
	b.rounds++
	s := a.spent
	add(&b.in, s.in, &b.tokensUnknown)
	add(&b.out, s.out, &b.tokensUnknown)
	add(&b.cost, s.cost, &b.costUnknown)
	if s.cached != nil {
		b.cached += *s.cached
	}
}

// lost is a request that was sent and has no usage: a stream that was cut.
func (b *bill) lost() { b.tokensUnknown, b.costUnknown = true, true }

func add(sum *uint64, n *uint64, unknown *bool) {
	if n == nil {
		*unknown = true
		return
	}
	*sum += *n
}

// usage is what is certain in the end: a sum that is not all is unknown.
func (b *bill) usage() agent.Usage {
	u := b.known()
	if b.tokensUnknown {
		u.InputTokens, u.OutputTokens = nil, nil
	}
	if b.costUnknown {
		u.CostMicroUSD = nil
	}
	return u
}

// soFar is the usage after an answer, whose charge is to be unknown where the
// answer's is; what was known before stays.
func (b *bill) soFar(a *answer) agent.Usage {
	u := b.known()
	if a.spent.in == nil || a.spent.out == nil {
		u.InputTokens, u.OutputTokens = nil, nil
	}
	if a.spent.cost == nil {
		u.CostMicroUSD = nil
	}
	return u
}

func (b *bill) known() agent.Usage {
	rounds, tools, in, out, cost := b.rounds, b.tools, b.in, b.out, b.cost
	return agent.Usage{Rounds: &rounds, ToolCalls: &tools, InputTokens: &in, OutputTokens: &out, CostMicroUSD: &cost, ResourceUnits: b.rounds}
}
