package register

import (
	"fmt"
	"strings"

	"refbox/engine/register"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

const label = 12

func (p *page) labelled(name, value string) {
	if value != "" {
		p.say(name, label, plain, "%s", value)
	}
}

func (p *page) promotion(r *reading, s *register.Store) {
	m := s.Promotion
	if m == nil {
		return
	}
	p.ask = []register.Code{"promotion-without-fencing", "promotion-source-not-running", "promotion-exceeds-rto", "promotion-is-automatic"}
	p.heading("promotion runbook")
	p.labelled("promotes", fmt.Sprintf("%s in %s, by %s", m.From, register.Span(&m.Minutes), map[register.Trigger]string{register.Manual: "a human", register.Automatic: "itself"}[m.Trigger]))
	if strings.TrimSpace(m.Fencing) == "" {
		p.say("✗ fencing", label, alarm, "nothing says how the old primary is kept from writing")
	}
	p.labelled("fencing", m.Fencing)
	p.steps(m.Steps)
	p.labelled("verify", m.Verify)
	p.labelled("data loss", m.DataLoss)
	p.labelled("re-protect", m.Reprotect)
	p.drills(r, m.Drills)
}

func (p *page) restore(r *reading, s *register.Store) {
	p.ask = []register.Code{"restore-never-drilled", "restore-drill-stale", "restore-drill-failed", "restore-exceeds-rto", "restore-plan-missing"}
	m := s.Restore
	if m == nil {
		if s.Durability == register.Durable {
			p.heading("restore runbook")
			p.row(seg{"✗ nothing says how it is restored", alarm})
		}
		return
	}
	p.heading("restore runbook")
	p.labelled("from", m.From)
	p.steps(m.Steps)
	p.labelled("verify", m.Verify)
	p.heading("restore drills")
	if len(m.Drills) == 0 {
		p.row(seg{"✗ nobody has ever restored it", alarm})
	}
	p.drills(r, m.Drills)
}

// drills are told with their age on the day of evaluation.
func (p *page) drills(r *reading, list []register.Drill) {
	most := r.now.Document().Policy.DrillMaxAgeDays
	for i := range list {
		d := &list[i]
		m := drillSign(d.Outcome)
		age := d.Date.Days(r.now.On())
		segs := []seg{{fmt.Sprintf("%c %-8s", m.Shape, m.Word), m.Style}, {string(d.Date), plain}}
		switch {
		case age < 0:
			segs = append(segs, seg{fmt.Sprintf(", in %s", view.Plural(-age, "day")), dim})
		case age > most:
			segs = append(segs, seg{fmt.Sprintf(", ✗ %s old, policy wants %d", view.Plural(age, "day"), most), alarm})
		default:
			segs = append(segs, seg{fmt.Sprintf(", %s old", view.Plural(age, "day")), dim})
		}
		if d.MeasuredMinutes != nil {
			segs = append(segs, seg{", took " + tookText(d.MeasuredMinutes, d.MeasuredMs), plain})
		}
		p.row(segs...)
		if d.RestoredTo != "" {
			p.say("", 2, dim, "restored to %s", d.RestoredTo)
		}
		if d.Note != "" {
			p.say("", 2, dim, "%s", d.Note)
		}
	}
}

// tookText is a measured time, exact where that is kept.
func tookText(minutes *float64, ms *int64) string {
	if ms != nil {
		return fmt.Sprintf("%s (%d ms)", register.Span(minutes), *ms)
	}
	return register.Span(minutes)
}

// rehearsals stand apart from drills: they close nothing.
func (p *page) rehearsals(s *register.Store) {
	if len(s.Rehearsals) == 0 {
		return
	}
	p.ask = nil
	p.heading("rehearsals, which close nothing")
	for i := range s.Rehearsals {
		x := &s.Rehearsals[i]
		m := drillSign(x.Outcome)
		segs := []seg{{"◇ ", dim}, {fmt.Sprintf("%c %-8s", m.Shape, m.Word), m.Style}, {string(x.Date) + ", " + string(x.Procedure), plain}}
		if x.MeasuredMinutes != nil {
			segs = append(segs, seg{", took " + tookText(x.MeasuredMinutes, x.MeasuredMs), plain})
		}
		p.row(segs...)
		if x.Note != "" {
			p.say("", 2, dim, "%s", x.Note)
		}
	}
}

// otherPlans are those that only some stores have.
func (p *page) otherPlans(r *reading, s *register.Store) {
	if l := s.LocalFirst; l != nil {
		p.ask = []register.Code{"local-first-drain-unverified", "drain-verification-stale"}
		p.heading("local queue")
		p.labelled("drains to", l.DrainsTo)
		if l.MaxQueueMinutes != nil {
			p.labelled("holds", register.Span(l.MaxQueueMinutes))
		}
		if l.MaxQueueBytes != nil {
			p.labelled("holds", fmt.Sprintf("%d bytes", *l.MaxQueueBytes))
		}
		p.labelled("when full", l.OnFull)
		p.labelled("conflicts", l.ConflictRule)
		switch {
		case l.DrainVerifiedOn == nil:
			p.row(seg{"✗ the drain was never proven", alarm})
		default:
			age, most := l.DrainVerifiedOn.Days(r.now.On()), r.now.Document().Policy.DrillMaxAgeDays
			m := meets(age <= most)
			p.row(seg{fmt.Sprintf("%c ", m.Shape), m.Style}, seg{fmt.Sprintf("the drain was proven on %s, %s ago", *l.DrainVerifiedOn, view.Plural(age, "day")), plain})
		}
	}
	if b := s.Rebuild; b != nil {
		p.ask = []register.Code{"rebuild-plan-missing"}
		p.heading("rebuild")
		p.labelled("from", b.From)
		p.labelled("procedure", b.Procedure)
		p.labelled("cost", b.Cost)
	}
	if v := s.Vendor; v != nil {
		p.ask = []register.Code{"vendor-exit-missing"}
		p.heading("vendor")
		p.labelled("name", v.Name)
		p.labelled("controls", v.Controls)
		p.labelled("exit", v.ExitPlan)
	}
}

func (p *page) migrations(r *reading, s *register.Store) {
	list := r.now.Document().Migrations
	for i := range list {
		m := &list[i]
		if m.Store != s.ID {
			continue
		}
		p.ask = []register.Code{"migration-rollback-untested", "migration-gate-missing", "migration-gate-not-running", "migration-gate-stale",
			"migration-not-drained", "migration-not-replica-safe", "migration-rollback-exceeds-rpo", "migration-rollback-source-not-running"}
		p.heading("migration " + m.ID)
		p.say("", 0, plain, "%s", m.Name)
		back := "reversible"
		if !m.Reversible {
			back = "not reversible"
		}
		about := []string{string(m.Style), back}
		if !m.ReplicaSafe {
			about = append(about, "not safe for replicas")
		}
		if m.DrainedFirst {
			about = append(about, "queues drained first")
		}
		p.labelled("is", strings.Join(about, ", "))
		p.labelled("applied by", deref(m.AppliedBy))
		p.labelled("gated by", deref(m.BackupGate))
		p.steps(m.Steps)
		p.labelled("verify", m.Verify)
		how := string(m.Rollback.Method)
		if m.Rollback.From != nil {
			how += " from " + *m.Rollback.From
		}
		p.labelled("rollback", fmt.Sprintf("%s, loses up to %s", how, register.Span(&m.Rollback.MaxDataLossMinutes)))
		p.steps(m.Rollback.Steps)
		if m.Rollback.TestedOn == nil {
			p.row(seg{"✗ the rollback was never executed", alarm})
		} else {
			p.row(seg{"✓ ", canvas.Fg(canvas.Ok)}, seg{"the rollback was executed on " + string(*m.Rollback.TestedOn), plain})
		}
		if m.Note != "" {
			p.say("", 0, dim, "%s", m.Note)
		}
	}
}
