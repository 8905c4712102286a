package referee

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
)

// maxFiles bounds the evidence files of one milestone; a service that fails in a
// new way every time is worth no more.
const maxFiles = 100

// verdict is what an attempt came to.
type verdict struct {
	evidence json.RawMessage
	instant
	attacks  []probe.AttackResult
	disturbs bool
}

// evaluate makes one attempt at a milestone and logs what came of it. The error
// wraps probe.ErrGone, or is nil.
func (s *seat) evaluate(ctx, timed context.Context, m *Milestone) error {
	g := s.ladder[m.ID]
	g.attempts++
	idle := s.race.idle.Load()
	started := event.MilestoneEvaluationStarted{Territory: s.id, Milestone: m.ID, Attempt: g.attempts}
	var at uint64
	if s.state == stateBuilding {
		at = s.race.append(s.become(stateVerifying, "milestone verification began"), started)
	} else {
		at = s.race.append(started)
	}
	a := s.probe.Attempt(m.ID, g.attempts, s.previous())
	a.Full = s.full()
	s.account.begin(m.Timeout)
	hurt := s.hurts.watch()
	v, err := s.check(ctx, timed, m, a, at, hurt)

	e := s.evidence(m, a, at)
	e.Attacks = v.attacks
	g.ended, g.disturbs = time.Now(), v.disturbs
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errPhoto) {
		return nil // aborted: no verdict
	}
	if err == nil {
		s.pass(m, v, e)
		return nil
	}
	f := verdictOf(timed, a, err)
	source := hurt()
	if source != "" && f.Source == "player" {
		own := *f
		own.Source = source
		f = &own
	}
	if ms, _ := a.Refusal(); ms > 0 {
		g.refused = max(g.refused, ms)
	} else if f.Category != probe.Transport {
		g.refused = max(g.refused, at)
	}
	if f.Source == "player" && s.state != stateDurable {
		s.account.charge(g.refused)
	}
	if idle && f.Category != probe.Transport && source == "" {
		g.vain++
	}
	g.lost = f.Final && source == "" // not by what a referee's fault does
	s.fail(m, f, e, timed.Err() == nil && !f.Final)
	if errors.Is(err, probe.ErrGone) {
		return err
	}
	return nil
}

// verdictOf makes a failure of an attempt's error.
func verdictOf(timed context.Context, a *probe.Attempt, err error) *probe.Failure {
	var f *probe.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, probe.ErrGone):
		return &probe.Failure{Category: probe.Transport, Source: "controller", Reason: err.Error()}
	case timed.Err() != nil:
		return &probe.Failure{Category: probe.Timeout, Source: "controller", Reason: "cut off: " + context.Cause(timed).Error()}
	case errors.Is(err, context.DeadlineExceeded):
		reason := "out of time"
		if _, why := a.Refusal(); why != "" {
			reason += "; last: " + why
		}
		return &probe.Failure{Category: probe.Timeout, Source: probe.Timeout.Charged(), Reason: reason}
	}
	return &probe.Failure{Category: probe.Broken, Source: probe.Broken.Charged(), Reason: err.Error()}
}

// check performs the operation, verifies, attacks, and looks again.
func (s *seat) check(ctx, timed context.Context, m *Milestone, a *probe.Attempt, started uint64, hurt func() string) (v verdict, err error) {
	defer func() { v.disturbs = err != nil && (a.Disrupted() || len(v.attacks) > 0) }()
	g := s.ladder[m.ID]
	v.notBefore = max(g.refused, g.eligible)
	if m.Operation == HostReboot {
		if err = within(timed, m.Timeout, func(ctx context.Context) error { return m.Verifier.Before(ctx, a) }); err != nil {
			return v, err
		}
		var rebooted bool
		if rebooted, err = s.reboot(timed, m, a, &v); !rebooted {
			return v, err
		}
		// Until the new boot nothing could be durable.
		v.notBefore = max(v.notBefore, s.race.clock())
	}
	if err == nil {
		err = within(timed, m.Timeout, func(ctx context.Context) (err error) {
			v.evidence, err = m.Verifier.Verify(ctx, a)
			return err
		})
	}
	if err == nil {
		v.at = s.race.clock()
		if ms, _ := a.Refusal(); ms > 0 {
			v.notBefore = max(v.notBefore, ms)
		}
		v.notBefore = min(v.notBefore, v.at)
	}
	if (a.Disrupted() || m.Operation == HostReboot) && ctx.Err() == nil && s.state != stateDurable {
		s.account.work(s.race.clock()) // looking again may attack again
		broken := s.recheck(timed, m.ID, hurt)
		s.account.rest(s.race.clock())
		switch source := hurt(); {
		case broken == "" || err != nil:
		case source != "":
			err = &probe.Failure{Category: probe.Transport, Source: source, Reason: Hurt + broken}
		default:
			err = &probe.Failure{Category: probe.Contract, Source: "player", Reason: broken}
		}
	}
	if err != nil {
		return v, err
	}
	// What follows is not charged, so it may outlast the deadline.
	for i, words := range m.Verifier.Attacks() {
		err = s.strike(ctx, m, a.Number, &v, words,
			func(a *probe.Attempt) error {
				return within(ctx, m.Timeout, func(ctx context.Context) error { return m.Verifier.Attack(ctx, a, i) })
			}, func(a *probe.Attempt) error {
				return within(ctx, m.Timeout, func(ctx context.Context) error { return m.Verifier.Undo(ctx, a, i) })
			})
		if err != nil {
			return v, err
		}
	}
	if len(v.attacks) > 0 {
		s.account.work(s.race.clock())
		err = within(ctx, m.Timeout, func(ctx context.Context) error { return m.Verifier.Holds(ctx, a) })
		s.account.rest(s.race.clock())
	}
	return v, err
}

// lateUndo bounds undoing an attack whose reboot went wrong: the guest may not be
// there to be asked.
const lateUndo = 5 * time.Second

// reboot reboots the seat's machines, as an attack if the verifier makes one of
// it, and tells whether they came back.
func (s *seat) reboot(timed context.Context, m *Milestone, a *probe.Attempt, v *verdict) (rebooted bool, err error) {
	boot := m.Verifier.Boot()
	if boot == nil {
		s.account.work(s.race.clock())
		err = within(s.uncut, m.Timeout, func(ctx context.Context) (err error) {
			rebooted, err = a.Reboot(ctx, nil)
			return err
		})
		s.account.rest(s.race.clock())
		return rebooted, err
	}
	err = s.strike(timed, m, a.Number, v, boot.Words,
		func(a *probe.Attempt) error {
			err := within(s.uncut, m.Timeout, func(ctx context.Context) (err error) {
				rebooted, err = a.Reboot(ctx, boot)
				return err
			})
			if err != nil {
				return err
			}
			return within(timed, m.Timeout, func(ctx context.Context) error { return boot.Run(ctx, a) })
		}, func(a *probe.Attempt) error {
			d := m.Timeout
			if !rebooted {
				d = time.Duration(float64(lateUndo) * max(1, s.race.rules.Slow))
			}
			return within(timed, d, func(ctx context.Context) error { return boot.Undo(ctx, a) })
		})
	return rebooted, err
}

// within bounds f by d. A context that ends for another reason shows in parent.
func within(parent context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(parent, d)
	defer cancel()
	return f(ctx)
}

// Hurt begins the reason of a check that could not be ended: what it restarted was
// looked at again while a fault was on the seat, and a milestone did not hold. That
// revokes nothing.
const Hurt = "a fault was on the seat: "

// recheck looks again at every milestone that had passed, but one, and revokes
// those that no longer hold, unless a fault was on the seat. It says what it found, ""
// for nothing.
func (s *seat) recheck(ctx context.Context, but string, hurt func() string) string {
	found := ""
	for i := range s.race.rules.Milestones {
		m := &s.race.rules.Milestones[i]
		p := s.passed[m.ID]
		if p == nil || m.ID == but {
			continue
		}
		g := s.ladder[m.ID]
		// The attempt that passed, so that what is derived for it is the same.
		a := s.probe.Attempt(m.ID, g.attempts, s.previous())
		started := s.race.clock()
		err := within(ctx, m.Timeout, func(ctx context.Context) error { return m.Verifier.Holds(ctx, a) })
		if err == nil || ctx.Err() != nil {
			continue
		}
		f := verdictOf(ctx, a, err)
		if f.Category != probe.Contract && f.Category != probe.Timeout {
			continue // nobody is charged for what could not be seen
		}
		if hurt() != "" {
			if found == "" {
				found = m.ID + " did not hold: " + f.Reason
			}
			continue
		}
		e := s.evidence(m, a, started)
		e.Verdict, e.Category, e.Source, e.Reason = "revoked", f.Category, f.Source, f.Reason
		path, sha := s.keep(g, m.ID+"-revoked", g.attempts, e)
		g.revoked, g.lost = p, f.Final
		if s.race.idle.Load() {
			g.vain++
		}
		delete(s.passed, m.ID)
		g.eligible, g.refused = 0, max(g.refused, started)
		s.race.append(event.MilestoneRevoked{Territory: s.id, Milestone: m.ID, Reason: f.Reason, Record: path, RecordSHA: sha})
		if found == "" {
			found = m.ID + " no longer holds: " + f.Reason
		}
	}
	return found
}

// strike runs one of the milestone's attacks and undoes it. It has records of its
// own.
func (s *seat) strike(ctx context.Context, m *Milestone, number uint64, v *verdict, words string, run, undo func(*probe.Attempt) error) error {
	a := s.probe.Attempt(m.ID, number, s.previous())
	started := s.race.append(event.AttackStarted{Territory: s.id, Milestone: m.ID, Attack: words})
	s.account.work(started)
	lost := run(a)
	left := undo(a)
	ended := s.race.clock()
	s.account.rest(ended)
	var f *probe.Failure
	if ctx.Err() != nil && !(errors.As(lost, &f) && f.Source == "player") {
		// The machines end with the heat, and what was left with them. An attack
		// that was cut off was neither withstood nor lost, so it has no end in the
		// log.
		f = verdictOf(ctx, a, ctx.Err())
		f.Reason = "attack: " + words + ": " + f.Reason
		return f
	}
	res := probe.AttackResult{Attack: words, Held: lost == nil, Detail: "withstood", StartedMS: started, TookMS: ended - started, Undone: left == nil}
	switch {
	case lost != nil:
		f = verdictOf(ctx, a, lost)
		res.Detail = f.Reason
	case left != nil:
		f = verdictOf(ctx, a, left)
		res.Detail = "withstood, but what it left could not be removed: " + f.Reason
	}
	e := s.evidence(m, a, started)
	e.Verdict, e.Reason = "withstood", res.Detail
	if f != nil {
		e.Verdict, e.Category, e.Source = "failed", f.Category, f.Source
	}
	path, sha := s.keep(s.ladder[m.ID], fmt.Sprintf("%s-%d-attack", m.ID, number), uint64(len(v.attacks)+1), e)
	res.Record = path
	v.attacks = append(v.attacks, res)
	s.race.append(event.AttackFinished{Territory: s.id, Milestone: m.ID, Attack: words, Held: res.Held, Detail: res.Detail,
		TookMS: res.TookMS, Undone: res.Undone, Record: path, RecordSHA: sha})
	if err := errors.Join(lost, left); errors.Is(err, probe.ErrGone) {
		return err
	}
	if f != nil {
		return &probe.Failure{Category: f.Category, Source: f.Source, Final: f.Final, Reason: "attack: " + words + ": " + res.Detail}
	}
	return nil
}

// pass records that a milestone holds, and whether the seat is durable now.
func (s *seat) pass(m *Milestone, v verdict, e probe.Evidence) {
	g := s.ladder[m.ID]
	e.Verdict, e.Evidence, e.NotBeforeMS, e.HeldMS = "passed", v.evidence, &v.notBefore, &v.at
	path, sha := s.keep(g, m.ID, g.attempts, e)
	g.revoked = nil
	points := m.Points
	if s.inherited[m.ID] {
		points = 0
	}
	s.unsaved = m.ID
	s.hold(m.ID, &pass{instant: v.instant, points: points, evidence: v.evidence, attempt: g.attempts, record: path, sha: sha})
}

// hold makes a milestone count, and with the last one the seat durable; because is
// what the log says before.
func (s *seat) hold(id string, p *pass, because ...event.Body) {
	s.passed[id] = p
	if g := s.ladder[id]; !g.held { // what is lost and won again by turns is no progress
		g.held = true
		s.stirred()
	}
	nb, at := p.notBefore, p.at
	bodies := append(because, event.MilestonePassed{Territory: s.id, Milestone: id, Points: p.points, Evidence: p.evidence,
		Attempt: p.attempt, Record: p.record, RecordSHA: p.sha, NotBefore: &nb, HeldAt: &at})
	if last, ok := s.complete(); ok && s.state != stateDurable {
		credit := min(s.account.credit(last.at), last.notBefore)
		s.reached.Store(true)
		s.durable = &instant{notBefore: last.notBefore - credit, at: last.at - credit}
		bodies = append(bodies, s.become(stateDurable, "completion milestone passed"),
			s.durableEvent(last.at, credit))
	}
	s.race.append(bodies...)
	if s.durable != nil && s.race.rules.StopOnFirstDurable {
		s.race.won(s.durable.at)
	}
}

// fail records a failure. A repeated one points to the first of its kind.
func (s *seat) fail(m *Milestone, f *probe.Failure, e probe.Evidence, again bool) {
	g := s.ladder[m.ID]
	detail := string(f.Category) + " " + f.Reason
	if detail != g.detail || len(e.Attacks) > 0 {
		e.Verdict, e.Category, e.Source, e.Reason = "failed", f.Category, f.Source, f.Reason
		g.record, g.sha = s.keep(g, m.ID, g.attempts, e)
		g.detail = detail
	}
	s.race.append(event.MilestoneFailed{Territory: s.id, Milestone: m.ID, Category: string(f.Category), Detail: f.Reason,
		Retryable: again, Attempt: g.attempts, Record: g.record, RecordSHA: g.sha, Source: f.Source})
}

// evidence is what an attempt leaves, up to now, without its verdict. That
// something in a seat's would have driven the terminal of whoever reads it is said
// once.
func (s *seat) evidence(m *Milestone, a *probe.Attempt, started uint64) probe.Evidence {
	if what := a.Hostile(); what != "" && !s.hostile {
		s.hostile = true
		s.race.append(event.HostileOutput{Territory: s.id, Where: "evidence", Detail: what})
	}
	e := probe.Evidence{SchemaVersion: 1, Territory: s.id, Milestone: m.ID, Attempt: a.Number, Verifier: m.File,
		VerifierSHA256: m.Verifier.SHA256(), StartedMS: started, FinishedMS: s.race.clock()}
	e.Records, e.Dropped = a.Records()
	return e
}

// keep stores evidence; no path when there is too much of it.
func (s *seat) keep(g *rung, name string, n uint64, e probe.Evidence) (path, sha string) {
	if g.files++; g.files > maxFiles && e.Verdict == "failed" {
		return "", ""
	}
	path, sha, err := s.race.log.Evidence(s.id, name, n, e)
	if err != nil {
		s.race.abort(fmt.Errorf("keep the evidence: %w", err))
	}
	return path, sha
}

// full is the reference's view of the seat's milestones, for executables.
func (s *seat) full() json.RawMessage {
	type view struct {
		Evaluating bool            `json:"evaluating"`
		Passed     bool            `json:"passed"`
		Points     uint64          `json:"points"`
		Evidence   json.RawMessage `json:"evidence"`
		Category   *string         `json:"failure_category"`
		Detail     *string         `json:"failure_detail"`
	}
	all := map[string]view{}
	for id, p := range s.passed {
		all[id] = view{Passed: true, Points: p.points, Evidence: p.evidence}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
