package referee

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/engine/event"
	"refbox/engine/world"
)

// ConquestRules are the rules of a conquest.
type ConquestRules struct {
	Duration time.Duration
	Tick     time.Duration
	PerTick  uint64 // resources of a healthy territory at each tick
	// Settles: once nobody plays any more, the end does not wait for the clock, but
	// for every territory to be healthy or eliminated, and to have been so for longer
	// than it takes to be degraded.
	Settles bool
}

// Health is what a probe of a territory's service found.
type Health struct {
	Status    *uint16 // nil when there was no response
	LatencyMS uint64
	Detail    string // the body, or what went wrong on the way
	Bad       string // what is wrong; "" when it is healthy
}

// Territory is one of those that a conquest is about.
type Territory struct {
	ID        string
	Resources uint64 // at the start
	Holding   Holding
	// Probe asks the service once, and bounds how long that takes.
	Probe func(context.Context) Health
	// Lost tells how the host failed its machine; nil while it has not.
	Lost func() error
	// Eliminated takes its machine and its player out; it may take its time.
	Eliminated func(detail string)
}

// Conquest decides who holds a territory longest (recordings reference, section 4.7).
//
//   - At each tick every territory that is left is probed, and all are at the same
//     time. One that takes longer to answer than half a tick is observed at a later
//     tick, and gains nothing at this one: it holds up nobody.
//   - What a tick found is written at once, on one reading of the clock: what was
//     observed and what follows from it, by id; then what healthy territories gain.
//   - It ends when at most one territory is left, or at the first tick after its time.
//   - Who was eliminated has not won, however long it held.
//   - A territory that its host failed is out, charged to the controller.
//   - While it is held (Hold) nothing is probed.
type Conquest struct {
	rules ConquestRules
	log   Log
	clock func() uint64
	field []*ground // by id
	live  sync.WaitGroup

	expired chan struct{}

	mu      sync.Mutex
	abort   context.CancelCauseFunc
	limit   time.Duration
	reason  string // of the end
	held    bool
	inside  int // ticks and probes under way
	idle    bool
	changed chan struct{}
}

// ground is a territory while it is fought for. What is not said to be Conquest.mu's
// is Run's, or an order's while mu is held.
type ground struct {
	Territory
	standing
	answers chan Health // takes one
	asked   bool
	since   uint64 // of the state, ms

	resources uint64 // mu's
	lost      *loss  // mu's: it is out for this
}

// NewConquest prepares a conquest; its territories have been found healthy.
func NewConquest(rules ConquestRules, territories []Territory, log Log, clock func() uint64) *Conquest {
	c := &Conquest{rules: rules, log: log, clock: clock, expired: make(chan struct{}), limit: rules.Duration, changed: make(chan struct{})}
	for _, t := range territories {
		c.field = append(c.field, &ground{Territory: t, standing: standing{state: stateHealthy}, resources: t.Resources, answers: make(chan Health, 1)})
	}
	slices.SortFunc(c.field, func(a, b *ground) int { return strings.Compare(a.ID, b.ID) })
	return c
}

// Run runs the conquest to its outcome, which is in the log when it returns. An error
// is the log's or ctx's cause; then the log has no outcome.
func (c *Conquest) Run(ctx context.Context) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.abort = cancel
	c.mu.Unlock()
	defer c.live.Wait()
	// Probes end before those who end territories are waited for.
	probing, stop := context.WithCancel(ctx)
	defer stop()
	tick := time.NewTicker(c.rules.Tick)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if c.enter() {
				c.tick(probing)
				c.leave()
			}
		}
		if reason := c.ended(); reason != "" && ctx.Err() == nil {
			return c.conclude()
		}
	}
	return Outcome{}, context.Cause(ctx)
}

// tick probes, and writes what that and the clock say.
func (c *Conquest) tick(ctx context.Context) {
	for _, g := range c.field {
		if g.state == stateEliminated || g.asked {
			continue
		}
		g.asked = true
		c.mu.Lock()
		c.inside++
		c.mu.Unlock()
		c.live.Go(func() {
			defer c.leave()
			g.answers <- g.Probe(ctx)
		})
	}
	found := c.gather(ctx)
	if ctx.Err() != nil {
		return // what was cut off says nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	var bodies []event.Body
	gone := map[*ground]string{}
	for _, g := range c.field {
		if g.state == stateEliminated {
			continue
		}
		h, seen := found[g]
		if seen {
			bodies = append(bodies, event.HealthObserved{Territory: g.ID, Healthy: h.Bad == "", Status: h.Status, LatencyMS: h.LatencyMS, Detail: h.Detail})
		}
		if err := g.Lost(); err != nil && g.lost == nil {
			g.lost = &loss{"controller", err.Error()}
		}
		var next standing
		var step *shift
		switch {
		case g.lost != nil:
			bodies = append(bodies, event.SeatUnavailable{Territory: g.ID, Source: g.lost.source, Detail: g.lost.detail})
			next, step = g.step(stateEliminated, g.lost.detail)
		case seen:
			next, step = g.observed(g.Holding, h.Bad, now)
		default:
			next, step = g.expired(g.Holding, now)
		}
		g.standing = next
		if step == nil {
			continue
		}
		g.since = now
		bodies = append(bodies, event.TerritoryStateChanged{Territory: g.ID, From: step.from, To: step.to, Reason: step.reason})
		if step.to == stateEliminated {
			source := "player"
			if g.lost != nil {
				source = g.lost.source
			}
			bodies = append(bodies, event.TerritoryEliminated{Territory: g.ID, Source: source, Detail: step.reason})
			gone[g] = step.reason
		}
	}
	for _, g := range c.field {
		if _, seen := found[g]; seen && g.state == stateHealthy && c.rules.PerTick > 0 {
			g.resources += c.rules.PerTick
			bodies = append(bodies, event.ResourcesChanged{Territory: g.ID, Delta: int64(c.rules.PerTick), Remaining: g.resources, Reason: "healthy tick"})
		}
	}
	c.append(bodies...)
	for g, why := range gone {
		c.live.Go(func() { g.Eliminated(why) })
	}
	c.judge(now)
}

// gather waits for what was asked, for at most half a tick.
func (c *Conquest) gather(ctx context.Context) map[*ground]Health {
	found := map[*ground]Health{}
	patience := time.NewTimer(c.rules.Tick / 2)
	defer patience.Stop()
	late := false
	for _, g := range c.field {
		if !g.asked {
			continue
		}
		if !late {
			select {
			case h := <-g.answers:
				found[g], g.asked = h, false
				continue
			case <-patience.C:
				late = true
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case h := <-g.answers:
			found[g], g.asked = h, false
		default:
		}
	}
	return found
}

// judge decides whether it is over; mu is held.
func (c *Conquest) judge(now uint64) {
	left, calm := 0, true
	for _, g := range c.field {
		if g.state == stateEliminated {
			continue
		}
		left++
		// Twice: a probe that is under way was asked before.
		quiet := g.since + 2*uint64(g.Holding.Failures)*uint64(c.rules.Tick.Milliseconds())
		// Nothing is known of who has not answered yet: it may hang.
		calm = calm && !g.asked && g.state == stateHealthy && g.bad == 0 && now >= quiet
	}
	switch {
	case left <= 1:
		c.finish("last territory standing")
	case time.Duration(now)*time.Millisecond >= c.limit:
		c.finish("match timer expired")
	case c.rules.Settles && c.idle && calm:
		c.finish("no player is left, and nothing changes any more")
	}
}

// finish ends it; the first reason stands, and mu is held.
func (c *Conquest) finish(reason string) {
	if c.reason == "" {
		c.reason = reason
		close(c.expired)
		c.poke()
	}
}

func (c *Conquest) ended() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// append writes to the log; when that fails, it is over.
func (c *Conquest) append(bodies ...event.Body) {
	if len(bodies) == 0 {
		return
	}
	if _, err := c.log.Append(bodies...); err != nil && c.abort != nil {
		c.abort(fmt.Errorf("write the log: %w", err))
	}
}

// conclude logs the end.
func (c *Conquest) conclude() (Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := Outcome{Reason: c.reason}
	w := c.log.World()
	standings := world.Standings(w)
	for _, s := range standings {
		o.Seats = append(o.Seats, Standing{Standing: s, State: w.Seat(s.Territory).State})
	}
	end := event.MatchFinished{Reason: o.Reason}
	if first := world.Winner(standings); first != "" && w.Seat(first).State != stateEliminated {
		o.Winner = first
		end.Winner = &o.Winner
	}
	if _, err := c.log.Append(event.MatchStateChanged{From: "running", To: "finished"}, end); err != nil {
		return o, fmt.Errorf("write the log: %w", err)
	}
	return o, nil
}

// Charge takes what a player used off its territory's resources, as far as there are
// any, unless the conquest is over.
func (c *Conquest) Charge(territory string, units uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.ground(territory)
	if g == nil || units == 0 || c.reason != "" {
		return
	}
	units = min(units, g.resources)
	g.resources -= units
	c.append(event.ResourcesChanged{Territory: g.ID, Delta: -int64(units), Remaining: g.resources, Reason: "agent inference"})
}

func (c *Conquest) ground(territory string) *ground {
	i := slices.IndexFunc(c.field, func(g *ground) bool { return g.ID == territory })
	if i < 0 {
		return nil
	}
	return c.field[i]
}

// Nudge does nothing: a conquest is looked at by its ticks.
func (c *Conquest) Nudge(string) {}

// PlayersEnded says that nobody plays any more: ConquestRules.Settles.
func (c *Conquest) PlayersEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = true
}

// Expired is closed when it is over.
func (c *Conquest) Expired() <-chan struct{} { return c.expired }

// Unavailable takes a territory out at the next tick, charged to source.
func (c *Conquest) Unavailable(territory, source, detail string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.ground(territory); g != nil && g.lost == nil {
		g.lost = &loss{source, detail}
	}
}

// Hold lets nothing be probed, and returns once nothing is. After an error the conquest
// goes on.
func (c *Conquest) Hold(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
	for c.reason == "" && c.inside > 0 {
		changed := c.changed
		c.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		c.mu.Lock()
		if err != nil {
			c.held = false
			return err
		}
	}
	if c.reason != "" {
		c.held = false
		return ErrOver
	}
	return nil
}

// Release lets a held conquest go on.
func (c *Conquest) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
}

func (c *Conquest) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held || c.reason != "" {
		return false
	}
	c.inside++
	return true
}

func (c *Conquest) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
	c.poke()
}

// poke wakes who waits for something to change; mu is held.
func (c *Conquest) poke() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Extend puts the limit off.
func (c *Conquest) Extend(by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason != "" {
		return ErrOver
	}
	c.limit += by
	return nil
}

// Order does what was ruled about a territory: it can only be taken out, which is
// final.
func (c *Conquest) Order(_ context.Context, territory string, o Order) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.ground(territory)
	switch {
	case c.reason != "":
		return ErrOver
	case g == nil:
		return fmt.Errorf("%s did not come to the start: it cannot be ruled about", territory)
	case o.Do != Bench:
		return errors.New("in a conquest a territory can only be ruled unavailable: it has no milestones, and what is out is switched off")
	case g.lost != nil || g.state == stateEliminated:
		return fmt.Errorf("%s is out already", territory)
	}
	detail := "ruled by " + o.Author + ": " + o.Reason
	g.lost = &loss{"controller", detail}
	c.append(event.RefereeRuling{Territory: g.ID, Ruling: event.RulingUnavailable, Author: o.Author, Reason: o.Reason})
	return nil
}
