package world

import (
	"slices"

	"refbox/engine/event"
)

// applyOurs are the kinds that the reference does not have.
func (w *World) applyOurs(i int, e event.Event) {
	switch b := e.Body.(type) {
	case event.HeatPrepared:
		w.Prepared = &b
		for n := range b.Seats {
			if s := w.seat(b.Seats[n].Territory); s != nil {
				s.Prepared = &b.Seats[n]
			}
		}
	case event.AgentActionStarted:
		if s := w.seat(b.Territory); s != nil {
			s.actionStarted(i, e, b)
		}
	case event.AgentActionFinished:
		if s := w.seat(b.Territory); s != nil {
			s.actionFinished(i, e, b)
		}
	case event.AttackStarted:
		if s := w.seat(b.Territory); s != nil {
			n := s.Attacks.push(Attack{Milestone: b.Milestone, Attack: clip(b.Attack, maxDetail), StartMS: e.ElapsedMS, Start: i, End: -1})
			s.attacking = remember(s.attacking, n)
		}
	case event.AttackFinished:
		if s := w.seat(b.Territory); s != nil {
			s.attackFinished(i, e, b)
		}
	case event.FaultInjected, event.FaultConfirmed, event.FaultCleared, event.FaultFailed:
		w.faulted(i, e)
	case event.CanarySample:
		if s := w.seat(b.Territory); s != nil {
			s.sampled(e, b)
		}
	case event.CanaryResult:
		if s := w.seat(b.Territory); s != nil {
			s.CanaryResult = &CanaryResult{e.ElapsedMS, i, b}
		}
	case event.LimitReached:
		if a := w.agent(b.Agent); a != nil && a.Territory != "" {
			if s := w.seat(a.Territory); s != nil {
				s.Limits.push(Limit{e.ElapsedMS, i, b.Limit, clip(b.Detail, maxDetail)})
			}
		}
	case event.SeatUnavailable:
		if s := w.seat(b.Territory); s != nil {
			s.Unavailable = &Loss{e.ElapsedMS, i, b.Source, clip(b.Detail, maxDetail)}
		}
	case event.HeatPaused:
		p := Pause{SinceMS: e.ElapsedMS, Index: i, Author: b.Author, Reason: b.Reason}
		w.Pause = &p
		w.Pauses.push(p)
	case event.HeatResumed:
		if w.Pause != nil {
			w.Pauses.edit(w.Pauses.Len() - 1).Resumed = &Resumption{i, b.Author, b.Reason, b.PausedMS}
		}
		w.Pause = nil
		w.PausedMS = add(w.PausedMS, b.PausedMS)
	case event.ConsoleAttached:
		if s := w.seat(b.Territory); s != nil {
			s.Touches.push(Touch{Machine: b.Machine, Author: b.Author, FromMS: e.ElapsedMS})
			s.attached++
		}
	case event.ConsoleDetached:
		if s := w.seat(b.Territory); s != nil {
			s.detach(e, b)
		}
	case event.RefereeRuling:
		w.ruled(Ruling{e.ElapsedMS, i, b})
	case event.OperatorNote:
		w.Notes.push(Note{e.ElapsedMS, i, b.Author, clip(b.Text, maxDetail)})
	case event.DecoyUsed:
		if s := w.seat(b.Territory); s != nil {
			s.Decoys.push(DecoyUse{e.ElapsedMS, i, b.Decoy, clip(b.Detail, maxDetail)})
		}
	case event.StateSaved:
		if s := w.seat(b.Territory); s != nil {
			s.States.push(State{e.ElapsedMS, i, e.Sequence, b.Milestone, b.State})
		}
	case event.HeatBranched:
		w.Branched = &b
	case event.MilestoneInherited:
		if _, m := w.milestone(b.Territory, b.Milestone); m != nil && !m.Passed {
			m.Passed, m.Inherited, m.Evidence = true, true, b.Evidence
			m.PassedMS, m.PassedIndex = e.ElapsedMS, i
			m.NotBefore, m.HeldAt = at(e), at(e)
		}
	case event.HostileOutput:
		if s := w.seat(b.Territory); s != nil {
			s.Hostile++
		}
	}
}

// ruled applies a ruling: what follows from it alone. The rest is said by the
// events after it, so that it changes the world as it does without a referee.
func (w *World) ruled(r Ruling) {
	w.Rulings.push(r)
	switch r.Ruling {
	case event.RulingExtended:
		w.ExtendedMS = add(w.ExtendedMS, r.ExtendMS)
	case event.RulingVoided:
		if w.Voided == nil {
			w.Voided = &r
		}
		w.annul()
	case event.RulingRestored:
		if s := w.Seat(r.Territory); s != nil {
			s.Unavailable = nil
		}
	}
}

// annul takes the winner from a voided heat. Seats keep what they reached.
func (w *World) annul() {
	if w.Voided != nil {
		w.Winner, w.DeadHeat = nil, nil
	}
}

func (s *Seat) actionStarted(i int, e event.Event, b event.AgentActionStarted) {
	at := s.Actions.push(Action{Number: b.Action, Agent: b.Agent, Channel: b.Channel, Machine: b.Machine, Command: clip(b.Command, maxDetail),
		Session: b.Session, SelfReported: b.SelfReported, StartMS: e.ElapsedMS, Start: i, End: -1})
	s.running = remember(s.running, at)
}

// remember adds to a list of unfinished things, and forgets the oldest when there
// are more than anyone runs at once: they then never finish.
func remember(list []int, at int) []int {
	if len(list) >= MaxRunning {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, at)
}

func (s *Seat) actionFinished(i int, e event.Event, b event.AgentActionFinished) {
	at := -1
	for n, k := range s.running {
		if s.Actions.At(k).Number == b.Action {
			at = k
			s.running = slices.Delete(s.running, n, n+1)
			break
		}
	}
	if at < 0 {
		start := e.ElapsedMS - min(e.ElapsedMS, b.TookMS)
		at = s.Actions.push(Action{Number: b.Action, Agent: b.Agent, StartMS: start, Start: -1})
	}
	a := s.Actions.edit(at)
	a.Done, a.EndMS, a.End = true, e.ElapsedMS, i
	a.Exit, a.TookMS, a.Bytes = b.Exit, b.TookMS, b.Bytes
	a.Output, a.Detail = clip(b.Output, maxOutput), clip(b.Detail, maxDetail)
}

func (s *Seat) attackFinished(i int, e event.Event, b event.AttackFinished) {
	name := clip(b.Attack, maxDetail)
	at := -1
	for n, k := range s.attacking {
		if a := s.Attacks.At(k); a.Milestone == b.Milestone && a.Attack == name {
			at = k
			s.attacking = slices.Delete(s.attacking, n, n+1)
			break
		}
	}
	if at < 0 {
		start := e.ElapsedMS - min(e.ElapsedMS, b.TookMS)
		at = s.Attacks.push(Attack{Milestone: b.Milestone, Attack: name, StartMS: start, Start: -1})
	}
	a := s.Attacks.edit(at)
	a.Done, a.EndMS, a.End = true, e.ElapsedMS, i
	a.Held, a.Undone, a.Detail, a.TookMS = b.Held, b.Undone, clip(b.Detail, maxDetail), b.TookMS
	a.Record, a.RecordSHA = b.Record, b.RecordSHA
}

func (s *Seat) detach(e event.Event, b event.ConsoleDetached) {
	for n := s.Touches.Len() - 1; n >= 0 && n >= s.Touches.Len()-MaxRunning; n-- {
		if t := s.Touches.At(n); t.ToMS == nil && t.Machine == b.Machine && t.Author == b.Author {
			p := s.Touches.edit(n)
			p.ToMS, p.InputBytes, p.Input = at(e), b.Bytes, clip(b.Input, maxDetail)
			s.attached = max(0, s.attached-1)
			return
		}
	}
	s.Touches.push(Touch{Machine: b.Machine, Author: b.Author, FromMS: e.ElapsedMS, ToMS: at(e), InputBytes: b.Bytes, Input: clip(b.Input, maxDetail)})
}

// Simulated says that the heat's machines were not real ones: nothing that happened on
// them happened anywhere else. It is known once they are prepared.
func (w *World) Simulated() bool { return w.Prepared != nil && w.Prepared.Driver == "sim" }
