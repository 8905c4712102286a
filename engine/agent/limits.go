package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Reached is a limit of the seat's budget that was reached: the cause with which
// Run ends the player's context.
type Reached struct {
	Limit  string // time, cost, resource_units, turns, tokens
	Detail string
}

func (r *Reached) Error() string { return r.Detail }

// ErrFrozen is the cause with which a heat ends its players' contexts when it is
// over: they have the drain's time to leave their artefacts.
var ErrFrozen = errors.New("the heat is over")

// CutStatus is the status of a player that ctx ended.
func CutStatus(ctx context.Context) Status {
	var limit *Reached
	switch {
	case outOfTime(ctx):
		return TimedOut
	case errors.As(context.Cause(ctx), &limit):
		return BudgetExceeded
	case ctx.Err() != nil:
		return Interrupted
	}
	return HarnessError
}

// outOfTime tells whether ctx ended because the time of the seat, or the player, did.
func outOfTime(ctx context.Context) bool {
	var limit *Reached
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(context.Cause(ctx), &limit) && limit.Limit == "time"
}

// exceeded is the first limit that u is over; nil for none. What is unknown
// exceeds nothing.
func (b Budget) exceeded(u Usage) *Reached {
	over := func(limit, what string, used, most uint64) *Reached {
		return &Reached{limit, fmt.Sprintf("used %d of %d %s", used, most, what)}
	}
	tokens := known(u.InputTokens) + known(u.OutputTokens)
	switch {
	case b.ResourceUnits > 0 && u.ResourceUnits > b.ResourceUnits:
		return over("resource_units", "resource units", u.ResourceUnits, b.ResourceUnits)
	case b.MaxCostMicroUSD != nil && known(u.CostMicroUSD) > *b.MaxCostMicroUSD:
		return over("cost", "micro-dollars", *u.CostMicroUSD, *b.MaxCostMicroUSD)
	case b.Turns > 0 && known(u.Rounds) > b.Turns:
		return over("turns", "turns", *u.Rounds, b.Turns)
	case b.Tokens > 0 && tokens > b.Tokens:
		return over("tokens", "tokens", tokens, b.Tokens)
	}
	return nil
}

func known(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

// Most is the field-wise larger of two readings of a cumulative usage; a number
// is not unlearned (recordings reference, section 6.3).
func (u Usage) Most(v Usage) Usage {
	most := func(a, b *uint64) *uint64 {
		if a == nil || b != nil && *b > *a {
			return b
		}
		return a
	}
	return Usage{
		Rounds: most(u.Rounds, v.Rounds), ToolCalls: most(u.ToolCalls, v.ToolCalls),
		InputTokens: most(u.InputTokens, v.InputTokens), OutputTokens: most(u.OutputTokens, v.OutputTokens),
		CostMicroUSD: most(u.CostMicroUSD, v.CostMicroUSD), ResourceUnits: max(u.ResourceUnits, v.ResourceUnits),
	}
}

// meter passes a player's usage on, and ends the player when it goes over the
// budget.
type meter struct {
	Report
	budget Budget
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	reached *Reached
}

func (m *meter) Usage(u Usage) {
	m.Report.Usage(u)
	over := m.budget.exceeded(u)
	if over == nil {
		return
	}
	m.mu.Lock()
	first := m.reached == nil
	if first {
		m.reached = over
	}
	m.mu.Unlock()
	if first {
		m.cancel(over)
	}
}

// limit is what ended the player, or what its last usage is over; nil for
// nothing.
func (m *meter) limit(ctx context.Context, last Usage) *Reached {
	m.mu.Lock()
	defer m.mu.Unlock()
	var cut *Reached
	switch {
	case m.reached != nil:
		return m.reached
	case errors.As(context.Cause(ctx), &cut):
		return cut
	}
	return m.budget.exceeded(last)
}
