package register

import (
	"fmt"
)

// durable ends a rule that only durable stores have.
func (v *storeView) durable(r *report) bool {
	r.see("durability", v.s.Durability)
	if v.s.Durability != Durable {
		r.no("%s is %s, not durable", v.s.Name, v.s.Durability)
	}
	return v.s.Durability == Durable
}

func rpoNotMet(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	rpo, want := v.s.Today.RPOMinutes, v.s.Objectives.RPOMinutes
	r.see("today.rpoMinutes", rpo)
	r.see("objectives.rpoMinutes", want)
	switch {
	case rpo == nil:
		r.fire("%s has no running copy anything can be recovered from.%s", v.s.Name, v.planned)
	case *rpo > want:
		r.fire("%s can be recovered to %s ago; the objective is %s.%s", v.s.Name, span(rpo), span(&want), v.planned)
	default:
		r.no("%s can be recovered to %s ago, within the objective of %s", v.s.Name, span(rpo), span(&want))
	}
}

func siteRPONotMet(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	rpo, want := v.s.Today.SiteRPOMinutes, v.s.Objectives.SiteRPOMinutes
	r.see("homeDomain", v.s.HomeDomain)
	r.see("today.siteRpoMinutes", rpo)
	r.see("objectives.siteRpoMinutes", want)
	switch {
	case rpo == nil:
		r.fire("%s has no running copy outside %s, so losing the site loses everything ever written to it.%s", v.s.Name, v.s.HomeDomain, v.planned)
	case *rpo > want:
		r.fire("%s can be recovered to %s ago from outside %s; the objective is %s.%s", v.s.Name, span(rpo), v.s.HomeDomain, span(&want), v.planned)
	default:
		r.no("%s can be recovered to %s ago from outside %s, within the objective of %s", v.s.Name, span(rpo), v.s.HomeDomain, span(&want))
	}
}

func copiesBelowPolicy(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	n, want := v.s.Today.CopyCount, v.m.out.Policy.CopiesRequired
	r.see("today.copyCount", n)
	r.seeAt("policy.copiesRequired", want)
	if n < want {
		r.fire("%s exists in %d place(s) today; policy wants %d.%s", v.s.Name, n, want, v.planned)
		return
	}
	r.no("%s exists in %d places today, and policy wants %d", v.s.Name, n, want)
}

func copiesSingleDomain(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	domains := []string{v.s.HomeDomain}
	r.see("homeDomain", v.s.HomeDomain)
	for j := range v.copies {
		if c := &v.copies[j]; c.Running() {
			domains = with(domains, c.Domain)
			r.see(v.copyPath(j)+"domain", c.Domain)
		}
	}
	want := v.m.out.Policy.DomainsRequired
	r.seeAt("policy.domainsRequired", want)
	if len(domains) < want {
		r.fire("%s and every running copy of it sit in %s. That domain’s correlated risks are this data’s risks.%s", v.s.Name, list(domains), v.planned)
		return
	}
	r.no("%s and its running copies are in %d domains, and policy wants %d", v.s.Name, len(domains), want)
}

func (v *storeView) copyPath(j int) string { return fmt.Sprintf("copies[%d].", j) }

func noOffsiteCopy(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	r.seeAt("policy.offsiteRequired", v.m.out.Policy.OffsiteRequired)
	r.see("today.hasOffsite", v.s.Today.HasOffsite)
	switch {
	case !v.m.out.Policy.OffsiteRequired:
		r.no("policy does not want an off-site copy")
	case v.s.Today.HasOffsite:
		r.no("%s has a running copy in a domain that hosts none of our compute", v.s.Name)
	default:
		r.fire("%s has no running copy in a domain that hosts none of our compute.%s", v.s.Name, v.planned)
	}
}

func recoveryDependsOnUplink(v *storeView, r *report) {
	var paths, closing []string
	for j := range v.copies {
		c := &v.copies[j]
		if !c.OffDomain {
			continue
		}
		if c.Running() {
			paths = with(paths, c.Path)
		} else if !c.uplink {
			closing = append(closing, c.ID)
		}
		r.see(v.copyPath(j)+"status", c.Status)
		r.see(v.copyPath(j)+"path", c.Path)
	}
	r.see("uplinkExposure.offsite", v.s.UplinkExposure.Offsite)
	switch {
	case len(paths) == 0:
		r.no("no copy of %s runs outside %s", v.s.Name, v.s.HomeDomain)
	case !v.s.UplinkExposure.Offsite:
		r.no("a running copy of %s leaves %s without the home uplink", v.s.Name, v.s.HomeDomain)
	default:
		tail := ""
		if len(closing) > 0 {
			tail = " " + list(closing) + " would close this once running."
		}
		r.fire("Every running copy of %s that leaves %s is fed over the home uplink (%s). While that uplink is down the primary keeps accepting writes and none of them are protected off-site — and nothing looks broken.%s",
			v.s.Name, v.s.HomeDomain, list(paths), tail)
	}
}

func writesDependOnUplink(v *storeView, r *report) {
	fired := false
	for i := range v.s.Writers {
		w := &v.s.Writers[i]
		at := fmt.Sprintf("writers[%d].", i)
		r.see(at+"mode", w.Mode)
		if w.Path != nil {
			r.see(at+"path", *w.Path)
		}
		if !v.exposed(w) {
			continue
		}
		fired = true
		how := "writes directly to"
		if w.Mode == Proxied {
			how = "writes through a proxy to"
		}
		r.fire("%s on %s %s %s over \"%s\", which crosses the home uplink. While that is down, %s cannot write at all.", w.ID, w.Node, how, v.s.Name, *w.Path, w.Node)
	}
	if !fired {
		r.no("no writer of %s crosses the home uplink from another domain without a queue", v.s.Name)
	}
}

func drainUnverified(v *storeView, r *report) {
	l := v.s.LocalFirst
	switch {
	case l == nil:
		r.no("%s is not a local-first store", v.s.Name)
	case l.DrainVerifiedOn == nil:
		r.see("localFirst.drainVerifiedOn", nil)
		r.fire("%s has never had a disconnect-and-drain proven end to end.", v.s.Name)
	default:
		r.see("localFirst.drainVerifiedOn", *l.DrainVerifiedOn)
		r.no("%s was drained after a disconnect on %s", v.s.Name, *l.DrainVerifiedOn)
	}
}

func neverDrilled(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	r.see("lastDrill", v.s.LastDrill)
	switch {
	case v.s.LastDrill != nil:
		r.no("%s was last restored on %s", v.s.Name, v.s.LastDrill.Date)
	case v.s.Restore == nil:
		r.fire("Nobody has ever restored %s.", v.s.Name)
	default:
		r.fire("Nobody has ever restored %s from %s.", v.s.Name, v.s.Restore.From)
	}
}

func lostInScenario(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	r.see("criticality", v.s.Criticality)
	if v.s.Criticality != FleetFatal && v.s.Criticality != EstateCritical {
		r.no("%s is %s, not critical", v.s.Name, v.s.Criticality)
		return
	}
	if v.primary < 0 {
		r.see("primary.vendor", v.s.Primary.Vendor)
		r.no("a vendor holds %s; no node of ours can take it along", v.s.Name)
		return
	}
	for i := range v.m.out.Scenarios {
		sc := &v.m.out.Scenarios[i]
		r.scenario = &sc.ID
		side := v.m.sides[i].of
		if r.trace != nil {
			r.seeAt(fmt.Sprintf("scenarios[%d].lostNodes", i), sc.LostNodes)
			r.see("primary.node", v.s.Primary.Node)
		}
		gone := side[v.primary] < 0
		survivor := v.s.Primary.Node
		for j := range v.copies {
			c := &v.copies[j]
			if !c.Running() {
				continue
			}
			if r.trace != nil {
				r.see(v.copyPath(j)+"target", v.m.targets[c.Target].Node)
			}
			if gone && (c.holder < 0 || side[c.holder] >= 0) {
				gone, survivor = false, c.ID
			}
		}
		if gone {
			r.fire("\"%s\" destroys %s, and every copy of %s that runs today is on it. The data is gone, not merely unreachable.%s", sc.Name, list(sc.LostNodes), v.s.Name, v.planned)
		} else if r.trace != nil {
			r.no("\"%s\" leaves %s", sc.Name, survivor)
		}
	}
	r.scenario = nil
}

func notMonitored(v *storeView, r *report) {
	r.see("entityId", v.s.EntityID)
	r.see("unmonitored", v.s.Unmonitored)
	const text = "%s has no inventory entity, so nothing here can tell whether it is up"
	switch {
	case v.s.EntityID != nil:
		r.no("%s is the entity %s", v.s.Name, *v.s.EntityID)
	case v.s.Unmonitored != nil && !blank(*v.s.Unmonitored):
		r.fire(text+": %s", v.s.Name, *v.s.Unmonitored)
	case v.m.profile == Full:
		r.fireAs(Gap, text+", and nobody has said why.", v.s.Name)
	default:
		r.fire(text+", and nobody has said why.", v.s.Name)
	}
}

func designNotAdopted(v *storeView, r *report) {
	if !v.durable(r) {
		return
	}
	var planned []string
	for j := range v.copies {
		if !v.copies[j].Running() {
			planned = append(planned, v.copies[j].ID)
		}
	}
	d, t, o := &v.s.Design, &v.s.Today, v.s.Objectives
	r.see("design", *d)
	r.see("today", *t)
	r.see("objectives", *o)
	r.seeAt("policy.offsiteRequired", v.m.out.Policy.OffsiteRequired)
	meets := func(rpo, site *float64, offsite bool) bool {
		return rpo != nil && *rpo <= o.RPOMinutes && site != nil && *site <= o.SiteRPOMinutes && (offsite || !v.m.out.Policy.OffsiteRequired)
	}
	switch {
	case len(planned) == 0:
		r.no("no copy of %s is planned", v.s.Name)
	case !meets(d.RPOMinutes, d.SiteRPOMinutes, d.HasOffsite):
		r.no("even with every planned copy %s would not meet its objectives", v.s.Name)
	case meets(t.RPOMinutes, t.SiteRPOMinutes, t.HasOffsite):
		r.no("%s meets its objectives today", v.s.Name)
	default:
		r.fire("%s reaches %s / site %s only once %s %s running. Today it is %s / site %s.",
			v.s.Name, span(d.RPOMinutes), span(d.SiteRPOMinutes), list(planned), isOrAre(planned), span(t.RPOMinutes), span(t.SiteRPOMinutes))
	}
}

func rollbackUntested(v *migrationView, r *report) {
	r.see("rollback.testedOn", v.Rollback.TestedOn)
	if v.Rollback.TestedOn != nil {
		r.no("the rollback was executed on %s", *v.Rollback.TestedOn)
		return
	}
	r.fire("The rollback for \"%s\" has never been executed against anything.", v.Name)
}
