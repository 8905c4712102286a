package heat

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"refbox/engine/canary"
	"refbox/engine/event"
	"refbox/engine/probe"
)

const (
	canaryWait = 2 * time.Second // for an answer; a slower one is indeterminate
	readWait   = 8 * time.Second // see canaryPatience
)

// canaryPatience is how long a seat may answer nothing while it is read back, in the heat
// and at its end.
func (h *Heat) canaryPatience() time.Duration { return time.Duration(float64(readWait) * h.slow) }

// canaries are the referee's clients, one per seat, on its own: what one waits for
// delays no other.
type canaries struct {
	seats  []*seat
	cancel context.CancelFunc
	live   sync.WaitGroup
}

// newCanaries makes the clients of an arena that declares one.
func (h *Heat) newCanaries() (*canaries, error) {
	cs := &canaries{cancel: func() {}}
	d := h.cfg.Package.Manifest.Canary
	if d == nil {
		return cs, nil
	}
	for _, s := range h.seats {
		if s.failed != nil {
			continue
		}
		addr, err := s.cluster.Machines()[0].Addr(int(s.arena.Territory.Service.Port))
		if err != nil {
			return cs, fmt.Errorf("the canary of %s: %w", s.id(), err)
		}
		series := "canary"
		if b := h.cfg.Branch; b != nil {
			series += " of " + b.Origin.State // the parent's records are on the disks
		}
		cfg := canary.Config{Addr: addr, Path: d.Path, Every: d.Interval(), Wait: canaryWait, Clock: h.clock,
			Record: func(n uint64) canary.Record {
				return canary.Record(h.secret.Derive(series, s.id(), strconv.FormatUint(n, 10)))
			},
			Say: func(samples ...canary.Sample) {
				for _, x := range samples {
					h.say(event.CanarySample{Territory: s.id(), Write: x.Write, Outcome: string(x.Outcome), LatencyMS: x.LatencyMS,
						Acknowledged: x.Acknowledged, Failed: x.Failed, Indeterminate: x.Indeterminate, Writes: x.Writes, SinceMS: &x.SinceMS})
				}
			}}
		if d.Known != nil {
			known := canary.Record(h.secret.Seat(s.id(), *d.Known))
			cfg.Known = &known
		}
		s.canary = canary.New(cfg)
		s.probe.Measures(s.canaryNow)
		cs.seats = append(cs.seats, s)
	}
	return cs, nil
}

// canaryNow is what the seat's client has measured up to now.
func (s *seat) canaryNow(ctx context.Context) (probe.Canary, error) {
	m, down := s.canary.Look(ctx, s.heat.canaryPatience())
	return probe.Canary{Writes: m.Writes, Acknowledged: m.Acknowledged, Failed: m.Failed, Indeterminate: m.Indeterminate,
		Lost: m.Lost, Unread: m.Unread, Outages: uint64(len(m.Outages)), OutageMS: m.OutageMS, LongestMS: m.LongestMS, Down: down}, ctx.Err()
}

// start lets them write until ctx ends, or stop.
func (cs *canaries) start(ctx context.Context) {
	ctx, cs.cancel = context.WithCancel(ctx)
	for _, s := range cs.seats {
		cs.live.Go(func() { s.canary.Run(ctx) })
	}
}

// stop ends them, and waits for what is under way.
func (cs *canaries) stop() {
	cs.cancel()
	cs.live.Wait()
}

// each holds or releases all of them.
func (cs *canaries) each(do func(*canary.Client)) {
	var all sync.WaitGroup
	for _, s := range cs.seats {
		all.Go(func() { do(s.canary) })
	}
	all.Wait()
}

// readBack ends them and logs what each measured, in at most limit.
func (h *Heat) readBack(ctx context.Context, limit time.Duration) {
	h.canaries.stop()
	h.faults.Load().end(ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range h.canaries.seats {
		all.Go(func() {
			h.say(canaryResult(s.id(), s.canary.ReadBack(ctx, h.canaryPatience())))
		})
	}
	all.Wait()
}

func canaryResult(territory string, m canary.Measure) event.CanaryResult {
	r := event.CanaryResult{Territory: territory, Writes: m.Writes, Acknowledged: m.Acknowledged, Failed: m.Failed, Indeterminate: m.Indeterminate,
		Lost: m.Lost, Unread: m.Unread, Phantoms: m.Phantoms, LossMS: m.LossMS,
		Outages: uint64(len(m.Outages)), OutageMS: m.OutageMS, LongestMS: m.LongestMS}
	if o, ok := m.First(); ok {
		r.OutageFromMS, r.FirstReadMS, r.FirstAckMS, r.SteadyMS = &o.FromMS, o.ReadMS, o.AckMS, o.SteadyMS
	}
	return r
}
