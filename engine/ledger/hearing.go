package ledger

import (
	"encoding/json"

	"refbox/engine/arena"
	"refbox/engine/canary"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// hearing is what a heat's log says that bears on evidence.
type hearing struct {
	driver   string
	end      uint64 // when the heat was over, or where its log stops
	interval uint64 // between two writes of the referee's client, in ms
	head     string // what tells this heat from others
	order    []string
	seats    map[string]*seat
	pauses   [][2]uint64
}

// seat is one seat's part of it.
type seat struct {
	id, agent string
	faults    []fault
	samples   []sample
	result    *event.CanaryResult
	passed    []mark // milestones, as they were passed
	failed    []mark // as they failed by their contract
	revoked   []mark
	beaten    []uint64 // instants of attacks that were not withstood
	entered   *uint64  // when somebody was first seen to do something in the machines
	broken    *mark    // the first thing that the referee saw broken
}

// mark is a milestone's verdict.
type mark struct {
	milestone, record, detail string
	ms                        uint64
	told                      json.RawMessage // by the verifier that let it pass
	final                     bool            // it failed for good: no later attempt can pass
}

// sample is a run of writes that ended in one way, from the first one's sending to
// when it was told.
type sample struct {
	since, upto, writes uint64
	acknowledged        bool
	sum                 event.CanarySample
}

// fault is one fault, from its injection on.
type fault struct {
	kind, target, author string
	params               json.RawMessage
	injected, confirmed  uint64
	ended                *uint64 // cleared, or gone without an effect
	witness              string  // "" until somebody saw it
	saw, forgeable       string
	record               string // of what was seen
}

// bounds of what is kept of a hostile log.
const (
	maxFaults  = 10_000
	maxSamples = 1 << 20
	maxMarks   = 100_000
	maxTold    = 4 << 10 // of one verifier's words
)

// listen reads a recording's log once.
func listen(rec *recording.Recording) (*hearing, error) {
	h := &hearing{seats: map[string]*seat{}}
	if m := rec.Manifest(); m != nil && m.Canary != nil {
		h.interval = m.Canary.IntervalMS
	}
	var first string
	over, paused := false, (*uint64)(nil)
	err := rec.Events(0, rec.Len(), func(i int, e event.Event) bool {
		if i == 0 {
			first = e.Prev
		}
		if !over {
			h.end = e.ElapsedMS
		}
		switch b := e.Body.(type) {
		case event.HeatPrepared:
			h.driver = b.Driver
			for _, s := range b.Seats {
				h.seat(s.Territory).agent = s.Agent
			}
		case event.TerritoryRegistered:
			h.seat(b.Territory).agent = b.Agent
		case event.MatchFinished:
			over = true
		case event.HeatPaused:
			at := e.ElapsedMS
			paused = &at
		case event.HeatResumed:
			if paused != nil {
				h.pauses = append(h.pauses, [2]uint64{*paused, b.PausedMS})
				paused = nil
			}
		default:
			h.ofSeat(e)
		}
		return true
	})
	h.head = first
	return h, err
}

func (h *hearing) seat(id string) *seat {
	s := h.seats[id]
	if s == nil {
		s = &seat{id: id}
		h.seats[id] = s
		h.order = append(h.order, id)
	}
	return s
}

func keep[T any](list []T, x T, most int) []T {
	if len(list) < most {
		list = append(list, x)
	}
	return list
}

func (h *hearing) ofSeat(e event.Event) {
	at := e.ElapsedMS
	switch b := e.Body.(type) {
	case event.FaultInjected:
		s := h.seat(b.Territory)
		s.faults = keep(s.faults, fault{kind: b.Fault, target: b.Target, author: b.Author, params: b.Params, injected: at, confirmed: at}, maxFaults)
	case event.FaultConfirmed:
		if f := h.seat(b.Territory).latest(b.Fault, b.Target); f != nil {
			f.confirmed = at
			var r struct {
				Confirmed *bool  `json:"confirmed"`
				Witness   string `json:"witness"`
				Saw       string `json:"saw"`
				Forgeable string `json:"forgeable"`
			}
			if json.Unmarshal(b.Receipt, &r) == nil && (r.Confirmed == nil || *r.Confirmed) {
				f.witness, f.saw, f.forgeable = text.Line(r.Witness), text.Line(r.Saw), text.Line(r.Forgeable)
			}
		}
	case event.FaultCleared:
		if f := h.seat(b.Territory).latest(b.Fault, b.Target); f != nil {
			f.ended = &at
		}
	case event.FaultFailed:
		if f := h.seat(b.Territory).latest(b.Fault, b.Target); f != nil && b.Stage != "clear" {
			f.ended, f.witness = &at, ""
		}
	case event.CanarySample:
		s := h.seat(b.Territory)
		x := sample{since: at, upto: at, writes: max(b.Writes, 1), acknowledged: b.Outcome == string(canary.Acknowledged), sum: b}
		if b.SinceMS != nil {
			x.since = min(*b.SinceMS, at)
		}
		s.samples = keep(s.samples, x, maxSamples)
	case event.CanaryResult:
		h.seat(b.Territory).result = &b
	case event.MilestonePassed:
		s := h.seat(b.Territory)
		s.passed = keep(s.passed, mark{b.Milestone, b.Record, "", at, b.Evidence, false}, maxMarks)
	case event.MilestoneFailed:
		if b.Category == "contract" {
			s := h.seat(b.Territory)
			m := mark{b.Milestone, b.Record, b.Detail, at, nil, !b.Retryable}
			s.failed = keep(s.failed, m, maxMarks)
			if s.broken == nil {
				s.broken = &m
			}
		}
	case event.MilestoneRevoked:
		s := h.seat(b.Territory)
		s.revoked = keep(s.revoked, mark{b.Milestone, b.Record, b.Reason, at, nil, false}, maxMarks)
	case event.AgentActionStarted:
		h.seat(b.Territory).enter(at)
	case event.ConsoleAttached:
		h.seat(b.Territory).enter(at)
	case event.AttackFinished:
		if !b.Held {
			s := h.seat(b.Territory)
			s.beaten = keep(s.beaten, at, maxMarks)
		}
	}
}

// enter notes that somebody did something in the seat's machines, or could.
func (s *seat) enter(at uint64) {
	if s.entered == nil {
		s.entered = &at
	}
}

// told is what the verifier told that passed a milestone between two instants.
func (s *seat) told(milestone *string, from, to uint64) (out json.RawMessage) {
	for _, m := range s.passed {
		if milestone != nil && m.milestone == *milestone && m.ms >= from && m.ms <= to && len(m.told) <= maxTold {
			out = m.told
		}
	}
	return out
}

// latest is the fault of that name that has not ended.
func (s *seat) latest(kind, target string) *fault {
	for i := len(s.faults) - 1; i >= 0; i-- {
		if f := &s.faults[i]; f.kind == kind && f.target == target && f.ended == nil {
			return f
		}
	}
	return nil
}

// matching are the seat's faults that an arena's declaration means. What is broken
// from the start is confirmed by the first thing that the referee saw broken.
func (s *seat) matching(x arena.Exercise) []fault {
	if x.Fault == arena.StartsBroken {
		f := fault{kind: x.Fault, target: s.id, author: "arena"}
		if b := s.broken; b != nil {
			f.confirmed, f.witness, f.saw, f.record = b.ms, "the referee's probe of "+b.milestone, b.detail, b.record
		}
		return []fault{f}
	}
	var out []fault
	for _, f := range s.faults {
		if f.kind == x.Fault && (x.Target == nil || *x.Target == f.target) {
			out = append(out, f)
		}
	}
	return out
}

// after is the next fault at the seat.
func (s *seat) after(f fault) *fault {
	for i := range s.faults {
		if s.faults[i].injected > f.injected {
			return &s.faults[i]
		}
	}
	return nil
}

// writesIn is how many writes of a sample can be told to have been sent between
// two instants: the least that they can be, at one in an interval.
func (x sample) writesIn(from, to, interval uint64) uint64 {
	n := x.writes
	take := func(ms uint64) { n -= min(n, ms/max(interval, 1)+1) }
	if x.upto < from || x.since > to {
		return 0
	}
	if x.since < from {
		take(from - x.since)
	}
	if x.upto > to {
		take(x.upto - to)
	}
	return n
}

func (s *seat) acknowledged(from, to, interval uint64) (n uint64) {
	for _, x := range s.samples {
		if x.acknowledged {
			n += x.writesIn(from, to, interval)
		}
	}
	return n
}

// counts are the client's, for one fault.
func (s *seat) counts(interval uint64, f fault, end uint64) Probe {
	var p Probe
	if r := s.result; r != nil {
		p = Probe{Writes: r.Writes, Acknowledged: r.Acknowledged, Failed: r.Failed, Indeterminate: r.Indeterminate,
			Lost: r.Lost, LossMS: r.LossMS, Unread: r.Unread, Phantoms: r.Phantoms}
		if n := len(s.samples); n > 0 {
			last := s.samples[n-1].sum
			p.Counted = last.Acknowledged == r.Acknowledged && last.Failed == r.Failed && last.Indeterminate == r.Indeterminate
		}
	}
	if f.injected > 0 {
		p.Before = s.acknowledged(0, f.injected-1, interval)
	}
	p.After = s.acknowledged(f.confirmed, end, interval)
	p.Shared = len(s.faults) > 1
	return p
}

// outage is the longest stretch without an acknowledged write since the fault, and
// when service was back for good: nil for both when the last stretch has no end.
func (s *seat) outage(f fault, end uint64) (gap, back *uint64) {
	var longest, from uint64
	open, any := false, false
	for _, x := range s.samples {
		if x.upto < f.injected || x.since > end {
			continue
		}
		switch {
		case !x.acknowledged:
			if !open {
				open, from = true, max(x.since, f.injected)
			}
		case open:
			open, any = false, true
			at := x.upto
			longest, back = max(longest, at-min(from, at)), &at
		case !any && back == nil && x.upto >= f.confirmed:
			at := max(x.since, f.confirmed)
			back = &at
		}
	}
	if open || back == nil {
		return nil, nil
	}
	return &longest, back
}

// healthySince is when the run of acknowledged writes began that lasted until an
// instant; that instant itself when there was none.
func (s *seat) healthySince(until uint64) uint64 {
	began := until
	for _, x := range s.samples {
		switch {
		case x.since >= until:
			return began
		case !x.acknowledged:
			began = until
		default:
			began = min(began, x.since)
		}
	}
	return began
}

// healthy says that the service was steady before a fault, and no other fault was
// on the seat.
func (s *seat) healthy(f fault) bool {
	for _, o := range s.faults {
		if o.injected < f.injected && (o.ended == nil || *o.ended > f.injected) {
			return false
		}
	}
	return f.injected-s.healthySince(f.injected) >= min(canary.SteadyFor, f.injected) && f.injected > 0
}

// holds says that a milestone was passed between two instants, and not revoked
// since.
func (s *seat) holds(milestone string, from, to uint64) bool {
	held := false
	var at uint64
	for _, m := range s.passed {
		if m.milestone == milestone && m.ms >= from && m.ms <= to {
			held, at = true, m.ms
		}
	}
	for _, m := range s.revoked {
		if m.milestone == milestone && m.ms >= at && m.ms <= to {
			held = false
		}
	}
	return held
}

// expected decides whether the service became what the arena expects; nil when the
// heat ended too early to say.
func (s *seat) expected(x arena.Exercise, f fault, back *uint64, end uint64) *bool {
	yes, no := true, false
	limit := x.WithinSeconds * 1000
	overdue := limit > 0 && end-min(f.injected, end) >= limit
	switch {
	case back == nil, x.To != nil && !s.holds(*x.To, f.confirmed, end):
		if overdue {
			return &no
		}
		return nil
	case limit > 0 && *back-min(f.injected, *back) > limit:
		return &no
	}
	return &yes
}

// histories is how many histories were written to at once; nil when nobody
// watched, or could say in time. Two are only what the verifier of a single writer
// failed for good: what mends with time, as a slow recovery, was no second history.
func (s *seat) histories(x arena.Exercise, f fault, end uint64) *int {
	one, two := 1, 2
	for _, at := range s.beaten {
		if at >= f.injected && at <= end {
			return &two
		}
	}
	if x.SingleWriter == nil {
		return nil
	}
	for _, m := range s.failed {
		if m.final && m.milestone == *x.SingleWriter && m.ms >= f.injected && m.ms <= end {
			return &two
		}
	}
	if s.holds(*x.SingleWriter, f.confirmed, end) {
		return &one
	}
	return nil
}

// records are the files of probe records that a fault's evidence rests on.
func (f fault) records(s *seat, x arena.Exercise) []string {
	var out []string
	if f.record != "" {
		out = append(out, f.record)
	}
	for _, id := range []*string{x.From, x.To, x.SingleWriter} {
		if id == nil {
			continue
		}
		for _, m := range append(append([]mark{}, s.passed...), s.failed...) {
			if m.milestone == *id && m.record != "" && len(out) < 100 {
				out = append(out, m.record)
			}
		}
	}
	return out
}

// paused is how long the heat was paused between two instants.
func (h *hearing) paused(from, to uint64) (ms uint64) {
	for _, p := range h.pauses {
		if p[0] >= from && p[0] <= to {
			ms += max(p[1], 1)
		}
	}
	return ms
}
