package register

import "fmt"

// promotion ends a rule of stores that have one.
func (v *storeView) promotion(r *report) *Promotion {
	if v.s.Promotion == nil {
		r.no("%s has no promotion", v.s.Name)
	}
	return v.s.Promotion
}

func promotionIsAutomatic(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	p := v.promotion(r)
	if p == nil {
		return
	}
	n, want := len(v.m.ours), v.m.out.Policy.QuorumMinDomains
	r.see("promotion.trigger", p.Trigger)
	r.seeAt("policy.quorumMinDomains", want)
	r.seeAt("estate.nodes", fmt.Sprintf("%d compute domain(s)", n))
	switch {
	case p.Trigger != Automatic:
		r.no("a human promotes %s", p.From)
	case n >= want:
		r.no("the estate has %d compute domains, enough for a majority", n)
	default:
		r.fire("%s promotes %s on its own, but this estate has %d compute domain(s) and a majority needs %d.", v.s.Name, p.From, n, want)
	}
}

func concurrentWriters(v *storeView, r *report) {
	for i := range v.cells[1] {
		c := &v.cells[1][i]
		sc := &v.m.out.Scenarios[i]
		r.scenario = &sc.ID
		if r.trace != nil { // there are many scenarios: make nothing for nobody
			r.seeAt(fmt.Sprintf("matrix: current, %s, %s: concurrentWriters", v.s.ID, sc.ID), c.ConcurrentWriters)
		}
		if c.ConcurrentWriters > 1 {
			r.fire("\"%s\" leaves %d sides of %s writable at once.", sc.Name, c.ConcurrentWriters, v.s.Name)
		} else if r.trace != nil {
			r.no("\"%s\" leaves %d side(s) writable", sc.Name, c.ConcurrentWriters)
		}
	}
	r.scenario = nil
}

func promotionWithoutFencing(v *storeView, r *report) {
	p := v.promotion(r)
	if p == nil {
		return
	}
	r.see("promotion.fencing", p.Fencing)
	if !blank(p.Fencing) {
		r.no("the promotion says how the old primary is fenced")
		return
	}
	old := v.s.Primary.Node
	if v.s.Primary.Held() {
		old = v.s.Primary.Vendor
	}
	r.fire("Nothing says how %s is kept from writing before %s is promoted.", old, p.From)
}

func promotionSourceNotRunning(v *storeView, r *report) {
	p := v.promotion(r)
	if p == nil {
		return
	}
	c := v.copy(p.From)
	r.see("promotion.from", p.From)
	r.see("copies: "+c.ID+": status", c.Status)
	if c.Running() {
		r.no("%s is running", c.ID)
		return
	}
	r.fire("%s would promote %s, which is not running.", v.s.Name, p.From)
}

func promotionExceedsRTO(v *storeView, r *report) {
	p := v.promotion(r)
	if p == nil {
		return
	}
	if v.s.Objectives == nil {
		r.no("%s has no objectives", v.s.Name)
		return
	}
	r.see("promotion.minutes", p.Minutes)
	r.see("objectives.rtoMinutes", v.s.Objectives.RTOMinutes)
	want := v.s.Objectives.RTOMinutes
	if p.Minutes > want {
		r.fire("Promoting %s takes %s; the objective is %s.", p.From, span(&p.Minutes), span(&want))
		return
	}
	d := lastPassed(p.Drills)
	switch {
	case d == nil:
		r.no("promoting %s takes %s, within the objective of %s", p.From, span(&p.Minutes), span(&want))
	case *d.MeasuredMinutes > want:
		r.see("promotion.drills: measuredMinutes", *d.MeasuredMinutes)
		r.fire("Promoting %s took %s on %s; the objective is %s.", p.From, span(d.MeasuredMinutes), d.Date, span(&want))
	default:
		r.see("promotion.drills: measuredMinutes", *d.MeasuredMinutes)
		r.no("promoting %s took %s on %s, within the objective of %s", p.From, span(d.MeasuredMinutes), d.Date, span(&want))
	}
}

func promotionSlower(v *storeView, r *report) {
	p := v.promotion(r)
	if p == nil {
		return
	}
	d := lastPassed(p.Drills)
	r.see("promotion.minutes", p.Minutes)
	if d == nil {
		r.no("no promotion drill of %s has passed", v.s.Name)
		return
	}
	r.see("promotion.drills: measuredMinutes", *d.MeasuredMinutes)
	if *d.MeasuredMinutes <= p.Minutes {
		r.no("promoting %s took %s on %s, within the %s declared", p.From, span(d.MeasuredMinutes), d.Date, span(&p.Minutes))
		return
	}
	r.fire("Promoting %s took %s on %s; %s are declared.", p.From, span(d.MeasuredMinutes), d.Date, span(&p.Minutes))
}

func promotionDrillFailed(v *storeView, r *report) {
	p := v.promotion(r)
	if p == nil {
		return
	}
	d := lastOf(p.Drills)
	r.see("promotion.drills", len(p.Drills))
	switch {
	case d == nil:
		r.no("nobody has ever drilled the promotion of %s", v.s.Name)
	case d.Outcome == Pass:
		r.no("the last promotion drill, on %s, passed", d.Date)
	default:
		r.fire("The last promotion drill of %s, on %s, ended in %s.", v.s.Name, d.Date, d.Outcome)
	}
}

// drilled ends a rule of stores that were drilled.
func (v *storeView) drilled(r *report) *Drill {
	r.see("lastDrill", v.s.LastDrill)
	if v.s.LastDrill == nil {
		r.no("%s was never restored", v.s.Name)
	}
	return v.s.LastDrill
}

func drillStale(v *storeView, r *report) {
	d := v.drilled(r)
	if d == nil {
		return
	}
	age, most := d.Date.Days(v.m.on), v.m.out.Policy.DrillMaxAgeDays
	r.seeAt("policy.drillMaxAgeDays", most)
	r.seeAt("evaluatedOn", v.m.on)
	switch {
	case d.Outcome != Pass:
		r.no("the last restore, on %s, ended in %s", d.Date, d.Outcome)
	case age <= most:
		r.no("%s was restored %d days ago, and policy wants %d", v.s.Name, age, most)
	default:
		r.fire("%s was last restored on %s, %d days ago; policy wants %d.", v.s.Name, d.Date, age, most)
	}
}

func drillFailed(v *storeView, r *report) {
	d := v.drilled(r)
	if d == nil {
		return
	}
	if d.Outcome == Pass {
		r.no("the last restore, on %s, passed", d.Date)
		return
	}
	r.fire("The last restore of %s, on %s, ended in %s.", v.s.Name, d.Date, d.Outcome)
}

func restoreExceedsRTO(v *storeView, r *report) {
	d := v.drilled(r)
	if d == nil {
		return
	}
	if v.s.Objectives == nil || d.Outcome != Pass {
		r.no("there is no passed restore to hold against an objective")
		return
	}
	want := v.s.Objectives.RTOMinutes
	r.see("objectives.rtoMinutes", want)
	if *d.MeasuredMinutes <= want {
		r.no("the last restore took %s, within the objective of %s", span(d.MeasuredMinutes), span(&want))
		return
	}
	r.fire("The last restore of %s took %s; the objective is %s.", v.s.Name, span(d.MeasuredMinutes), span(&want))
}

func restorePlanMissing(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	r.see("restore", v.s.Restore)
	if v.s.Restore != nil && len(v.s.Restore.Steps) > 0 {
		r.no("the restore has %d steps", len(v.s.Restore.Steps))
		return
	}
	r.fire("Nothing says how %s is restored.", v.s.Name)
}

func rebuildPlanMissing(v *storeView, r *report) {
	r.see("rebuild", v.s.Rebuild)
	switch {
	case v.s.Rebuild == nil:
		r.no("%s is not rebuildable", v.s.Name)
	case !blank(v.s.Rebuild.Procedure):
		r.no("the rebuild has a procedure")
	default:
		r.fire("Nothing says how %s is rebuilt.", v.s.Name)
	}
}

func vendorExitMissing(v *storeView, r *report) {
	r.see("vendor", v.s.Vendor)
	switch {
	case v.s.Vendor == nil:
		r.no("no vendor holds %s", v.s.Name)
	case !blank(v.s.Vendor.ExitPlan):
		r.no("the vendor block has an exit plan")
	default:
		r.fire("Nothing says how %s leaves its vendor.", v.s.Name)
	}
}

func drainStale(v *storeView, r *report) {
	l := v.s.LocalFirst
	if l == nil || l.DrainVerifiedOn == nil {
		r.no("%s has no proven drain that could age", v.s.Name)
		return
	}
	age, most := l.DrainVerifiedOn.Days(v.m.on), v.m.out.Policy.DrillMaxAgeDays
	r.see("localFirst.drainVerifiedOn", *l.DrainVerifiedOn)
	r.seeAt("policy.drillMaxAgeDays", most)
	r.seeAt("evaluatedOn", v.m.on)
	if age <= most {
		r.no("%s was drained %d days ago, and policy wants %d", v.s.Name, age, most)
		return
	}
	r.fire("%s last drained after a disconnect on %s, %d days ago; policy wants %d.", v.s.Name, *l.DrainVerifiedOn, age, most)
}

func copyLeavesUnencrypted(v *storeView, r *report) {
	fired := false
	for j := range v.copies {
		c := &v.copies[j]
		r.see(v.copyPath(j)+"encrypted", c.Encrypted)
		if c.Running() && c.OffDomain && !c.Encrypted {
			fired = true
			r.fire("%s leaves %s for %s unencrypted.", c.ID, v.s.HomeDomain, c.Domain)
		}
	}
	if !fired {
		r.no("every running copy outside %s is encrypted", v.s.HomeDomain)
	}
}

func gateMissing(v *migrationView, r *report) {
	r.see("style", v.Style)
	r.see("backupGate", v.BackupGate)
	switch {
	case v.Style != Destructive:
		r.no("the migration is %s, not destructive", v.Style)
	case v.BackupGate != nil:
		r.no("%s must exist first", *v.BackupGate)
	default:
		r.fire("\"%s\" destroys data and names no backup that must exist first.", v.Name)
	}
}

// gate ends a rule of migrations that have one.
func (v *migrationView) gate(r *report) *copyView {
	r.see("backupGate", v.BackupGate)
	if v.BackupGate == nil {
		r.no("the migration has no backup gate")
		return nil
	}
	c := v.store.copy(*v.BackupGate)
	r.see("backupGate: status", c.Status)
	return c
}

func gateNotRunning(v *migrationView, r *report) {
	c := v.gate(r)
	switch {
	case c == nil:
	case !c.Running():
		r.fire("\"%s\" relies on %s, which is not running.", v.Name, c.ID)
	case !c.Restorable:
		r.fire("\"%s\" relies on %s, which cannot be restored from.", v.Name, c.ID)
	default:
		r.no("%s is running and can be restored from", c.ID)
	}
}

func gateStale(v *migrationView, r *report) {
	c := v.gate(r)
	if c == nil {
		return
	}
	age, known := v.m.ages[c.ID]
	r.see("backupGate: exposureMinutes", c.ExposureMinutes)
	switch {
	case !c.Running():
		r.no("%s is not running", c.ID)
	case !known:
		r.no("how old the newest copy of %s is, is not known", c.ID)
	case age <= c.ExposureMinutes:
		r.seeAt("estate.copyAgeMinutes."+c.ID, age)
		r.no("the newest copy of %s is %s old, under %s", c.ID, span(&age), span(&c.ExposureMinutes))
	default:
		r.seeAt("estate.copyAgeMinutes."+c.ID, age)
		r.fire("\"%s\" relies on %s, whose newest copy is %s old; it should be under %s.", v.Name, c.ID, span(&age), span(&c.ExposureMinutes))
	}
}

func notDrained(v *migrationView, r *report) {
	queues := v.m.queues[v.Store]
	r.see("style", v.Style)
	r.see("drainedFirst", v.DrainedFirst)
	switch {
	case v.Style != Destructive:
		r.no("the migration is %s, not destructive", v.Style)
	case len(queues) == 0:
		r.no("no local-first store drains into %s", v.store.s.Name)
	case v.DrainedFirst:
		r.no("%s is drained first", list(queues))
	default:
		r.fire("\"%s\" does not drain %s first.", v.Name, list(queues))
	}
}

func notReplicaSafe(v *migrationView, r *report) {
	r.see("replicaSafe", v.ReplicaSafe)
	if v.ReplicaSafe {
		r.no("the migration is safe for replicas")
		return
	}
	for j := range v.store.copies {
		if c := &v.store.copies[j]; c.Running() && c.Kind == StreamingReplica {
			r.fire("\"%s\" is not safe for the running replica of %s.", v.Name, v.store.s.Name)
			return
		}
	}
	r.no("%s has no running replica", v.store.s.Name)
}

func rollbackExceedsRPO(v *migrationView, r *report) {
	loss := v.Rollback.MaxDataLossMinutes
	r.see("rollback.maxDataLossMinutes", loss)
	o := v.store.s.Objectives
	if o == nil {
		r.no("%s has no objectives", v.store.s.Name)
		return
	}
	r.seeAt(v.store.path()+"objectives.rpoMinutes", o.RPOMinutes)
	if loss <= o.RPOMinutes {
		r.no("the rollback loses up to %s, within the objective of %s", span(&loss), span(&o.RPOMinutes))
		return
	}
	r.fire("The rollback for \"%s\" loses up to %s; the objective is %s.", v.Name, span(&loss), span(&o.RPOMinutes))
}

func rollbackSourceNotRunning(v *migrationView, r *report) {
	r.see("rollback.from", v.Rollback.From)
	if v.Rollback.From == nil {
		r.no("the rollback restores from no copy")
		return
	}
	c := v.store.copy(*v.Rollback.From)
	r.see("rollback.from: status", c.Status)
	if c.Running() {
		r.no("%s is running", c.ID)
		return
	}
	r.fire("The rollback for \"%s\" restores from %s, which is not running.", v.Name, c.ID)
}

func acceptanceExpired(v *acceptanceView, r *report) {
	r.see("reviewOn", v.ReviewOn)
	r.seeAt("evaluatedOn", v.m.on)
	switch {
	case !v.used:
		r.no("the acceptance of %s matches nothing", v.Code)
	case !v.expired():
		r.no("the acceptance of %s is due for review on %s", v.Code, v.ReviewOn)
	default:
		r.fire("The acceptance of %s by %s was due for review on %s.", v.Code, v.AcceptedBy, v.ReviewOn)
	}
}

func acceptanceUnused(v *acceptanceView, r *report) {
	r.see("code", v.Code)
	if v.used {
		r.no("%s has the gap %s", v.store.s.Name, v.Code)
		return
	}
	r.fire("%s accepted %s, which no longer applies.", v.AcceptedBy, v.Code)
}
