package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/referee"
	"refbox/engine/world"
)

// deriveTime bounds one verdict: a verifier that only computes is bounded in
// steps too.
const deriveTime = 30 * time.Second

// found is what an error, nil for none, makes of a verdict. An error that is no
// verdict is returned.
func found(good string, err error) (Finding, error) {
	var f *probe.Failure
	switch {
	case err == nil:
		return Finding{Verdict: good}, nil
	case errors.As(err, &f):
		return Finding{Verdict: "failed", Category: string(f.Category), Reason: f.Reason}, nil
	case errors.Is(err, probe.ErrCutOff):
		return Finding{Verdict: "failed", Category: string(probe.Timeout)}, nil
	case errors.Is(err, probe.ErrGone):
		return Finding{Verdict: "failed", Category: string(probe.Transport), Reason: err.Error()}, nil
	}
	return Finding{}, err
}

// main derives an attempt at a milestone, in the referee's order: before, the
// reboot, the verifier, what that broke, the attacks, and a last look.
func (x *reviewer) main(v Verdict, e probe.Evidence) (Finding, error) {
	ctx, cancel := context.WithTimeout(x.ctx, deriveTime)
	defer cancel()
	m, file, err := x.milestone(v.Milestone)
	if err != nil {
		return Finding{}, err
	}
	a := x.replay(e).Attempt(v.Milestone, e.Attempt, x.previous(v.Territory))
	evidence, err := x.attempt(ctx, m.Operation == referee.HostReboot, file, a, e)
	// An attempt that was cut off between two questions has no record of that.
	var lacks *probe.Insufficient
	if errors.As(err, &lacks) && e.Category == probe.Timeout && lacks.Spent {
		err = probe.ErrCutOff
	}
	if err == nil && e.Category == probe.Transport && strings.HasPrefix(e.Reason, referee.Hurt) {
		return Finding{}, &probe.Insufficient{Reason: "a fault was on the seat: what did not hold then is not in these records"}
	}
	f, err := found("passed", err)
	f.Evidence = evidence
	return f, err
}

func (x *reviewer) attempt(ctx context.Context, reboots bool, file probe.Verifier, a *probe.Attempt, e probe.Evidence) (json.RawMessage, error) {
	attacks := len(e.Attacks)
	if reboots {
		if err := file.Before(ctx, a); err != nil {
			return nil, err
		}
		var err error
		if boot := file.Boot(); boot != nil {
			err = x.struck(e, boot.Words)
		} else {
			_, err = a.Reboot(ctx, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	evidence, err := file.Verify(ctx, a)
	if broken := x.begun[e.Territory].revoked; err == nil && broken != "" {
		err = &probe.Failure{Category: probe.Contract, Source: "player", Reason: broken}
	}
	if err != nil {
		return nil, err
	}
	for _, words := range file.Attacks() {
		if err := x.struck(e, words); err != nil {
			return nil, err
		}
	}
	if attacks > 0 {
		err = file.Holds(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	return evidence, nil
}

// struck is what came of one of the attempt's attacks, which has a verdict of its
// own.
func (x *reviewer) struck(e probe.Evidence, words string) error {
	i := slices.IndexFunc(e.Attacks, func(r probe.AttackResult) bool { return r.Attack == words })
	switch {
	case i < 0 && e.Category == probe.Timeout:
		return probe.ErrCutOff
	case i < 0:
		return &probe.Insufficient{Reason: fmt.Sprintf("the attack %q was not made", words)}
	}
	r := e.Attacks[i]
	if r.Held && r.Undone {
		return nil
	}
	own, err := x.evidence(r.Record, "")
	if err != nil {
		return err
	}
	if own.Category == "" {
		return &probe.Insufficient{Reason: "the attack's own records say that it was withstood"}
	}
	return &probe.Failure{Category: own.Category, Source: own.Source, Reason: "attack: " + words + ": " + r.Detail}
}

// attack derives whether an attack was withstood.
func (x *reviewer) attack(v Verdict, e probe.Evidence) (Finding, error) {
	ctx, cancel := context.WithTimeout(x.ctx, deriveTime)
	defer cancel()
	_, file, err := x.milestone(v.Milestone)
	if err != nil {
		return Finding{}, err
	}
	a := x.replay(e).Attempt(v.Milestone, e.Attempt, x.previous(v.Territory))
	var run, undo func() error
	boot := file.Boot()
	switch i := slices.Index(file.Attacks(), v.Attack); {
	case boot != nil && boot.Words == v.Attack:
		run = func() error {
			if _, err := a.Reboot(ctx, boot); err != nil {
				return err
			}
			return boot.Run(ctx, a)
		}
		undo = func() error { return boot.Undo(ctx, a) }
	case i >= 0:
		run = func() error { return file.Attack(ctx, a, i) }
		undo = func() error { return file.Undo(ctx, a, i) }
	default:
		return Finding{}, &probe.Insufficient{Reason: "the verifier has no such attack any more"}
	}
	f, err := found("withstood", run())
	if err != nil || f.Verdict == "failed" {
		return f, err
	}
	f, err = found("withstood", undo())
	if f.Verdict == "failed" {
		f.Reason = "withstood, but what it left could not be removed: " + f.Reason
	} else {
		f.Reason = "withstood"
	}
	return f, err
}

// recheck derives whether a milestone that had passed still held.
func (x *reviewer) recheck(v Verdict, e probe.Evidence) (Finding, error) {
	ctx, cancel := context.WithTimeout(x.ctx, deriveTime)
	defer cancel()
	_, file, err := x.milestone(v.Milestone)
	if err != nil {
		return Finding{}, err
	}
	// The seat's evidence as it stood then, with that of this milestone.
	a := x.replay(e).Attempt(v.Milestone, e.Attempt, x.passed(v.Territory))
	f, err := found("holds", file.Holds(ctx, a))
	if f.Verdict == "failed" {
		f.Verdict = "revoked"
		if e.Category == probe.Timeout && f.Category == string(probe.Timeout) {
			f.Reason = v.Ruled.Reason
		}
	}
	return f, err
}

// durable derives that a seat was durable, and since when, from its passes.
func (x *reviewer) durable(i int, e event.Event, b event.DurableDeploymentCompleted) {
	v := Verdict{Territory: b.Territory, Kind: "durable", SameVerifier: true, Ruled: Finding{Verdict: "durable"}}
	if b.DurableAt != nil && b.NotBefore != nil {
		v.Ruled.Reason = instant(*b.NotBefore, *b.DurableAt)
	}
	defer func() { x.add(i, e, v) }()
	s := x.w.Seat(b.Territory)
	if x.manifest == nil || x.manifest.Build == nil || s == nil || v.Ruled.Reason == "" {
		v.Status, v.Why = Insufficient, "the log has no instants, or no manifest"
		return
	}
	got := Finding{Verdict: "durable"}
	var at, notBefore uint64
	for _, m := range x.manifest.Build.Milestones {
		if !m.Required && m.ID != x.manifest.Build.CompletionMilestone {
			continue
		}
		p := s.Milestone(m.ID)
		switch {
		case p == nil || !p.Passed:
			got = Finding{Verdict: "not durable", Reason: m.ID + " has not passed"}
		case p.HeldAt == nil || p.NotBefore == nil:
			v.Status, v.Why = Insufficient, m.ID+" has no instant"
			return
		case *p.HeldAt >= at:
			at, notBefore = *p.HeldAt, *p.NotBefore
		}
		if got.Verdict != "durable" {
			break
		}
	}
	if got.Verdict == "durable" {
		credit := min(b.AttackMS, notBefore)
		got.Reason = instant(notBefore-credit, at-credit)
	}
	v.compare(got)
}

// outcome derives who won from where the seats stood.
func (x *reviewer) outcome(i int, e event.Event, b event.MatchFinished) {
	v := Verdict{Kind: "outcome", SameVerifier: true, Ruled: Finding{Verdict: "no winner", Reason: b.Reason}}
	if b.Winner != nil {
		v.Ruled.Verdict = "won by " + *b.Winner
	} else if len(b.DeadHeat) > 0 {
		v.Ruled.Verdict = fmt.Sprintf("dead heat of %v", b.DeadHeat)
	}
	defer func() { x.add(i, e, v) }()
	if x.w.MatchState == world.Aborted {
		v.Status, v.Why = Ruled, "the heat was aborted: "+b.Reason
		return
	}
	got := Finding{Verdict: "no winner", Reason: b.Reason}
	if all := world.Standings(x.w); len(all) > 0 {
		first := all[0]
		s := x.w.Seat(first.Territory)
		switch {
		case first.DeadHeat():
			tied := append([]string{first.Territory}, first.Tied...)
			slices.Sort(tied)
			got.Verdict = fmt.Sprintf("dead heat of %v", tied)
		case world.Winner(all) == "" || s.CompetitorState == "unavailable":
		case first.Points > 0 || s.CompetitorState == "": // a conquest has no points
			got.Verdict = "won by " + first.Territory
		}
	}
	v.compare(got)
}

// compare settles a verdict that is derived from the log alone.
func (v *Verdict) compare(got Finding) {
	v.Derived, v.Status = &got, Follows
	if got.Verdict != v.Ruled.Verdict || got.Reason != v.Ruled.Reason {
		v.Status, v.Why = Differs, "from the log something else follows"
	}
}

func instant(notBefore, at uint64) string {
	return fmt.Sprintf("between %d ms and %d ms", notBefore, at)
}
