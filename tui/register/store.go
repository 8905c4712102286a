package register

import (
	"fmt"
	"strings"

	"refbox/engine/register"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

const none = "–"

// storeLines tell all of one store: its recovery points beside each other,
// copies, runbooks, drills, migrations. Each line knows which rules look at it.
func storeLines(r *reading, store, width int) []line {
	doc := r.now.Document()
	g := page{width: width}
	if store < 0 || store >= len(doc.Stores) {
		g.row(seg{"no store is chosen", dim})
		return g.lines
	}
	s := &doc.Stores[store]
	g.ask = []register.Code{"store-not-monitored"}
	g.say("", 0, title, "%s", s.Name)
	g.say("", 0, dim, "%s", s.Purpose)
	about := []string{string(s.Criticality), string(s.Durability), string(s.WriteModel)}
	if s.Engine != "" {
		about = append(about, s.Engine)
	}
	if s.Proposed {
		about = append(about, "only proposed")
	}
	g.say("is", 11, plain, "%s", strings.Join(about, ", "))
	where := s.Primary.Node
	if s.Primary.Held() {
		where = strings.TrimSpace(s.Primary.Vendor + " " + s.Primary.Region)
	}
	g.say("primary", 11, plain, "%s in %s", where, s.HomeDomain)
	switch {
	case s.EntityID != nil:
		g.say("watched as", 11, plain, "%s: %s", *s.EntityID, deref(s.Status))
	default:
		g.say("unwatched", 11, canvas.Fg(canvas.Warn), "%s", orNone(deref(s.Unmonitored)))
	}
	if len(s.HostsLeaseFor) > 0 {
		g.say("holds the lease of", 20, plain, "%s", strings.Join(s.HostsLeaseFor, ", "))
	}
	g.points(r, s)
	g.copies(r, s)
	g.writersOf(r, s)
	g.promotion(r, s)
	g.restore(r, s)
	g.rehearsals(s)
	g.otherPlans(r, s)
	g.migrations(r, s)
	return g.lines
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// points are the recovery points: as declared, as the design would give, as
// today gives, as measured.
func (p *page) points(r *reading, s *register.Store) {
	doc := r.now.Document()
	p.ask = []register.Code{"design-not-adopted"}
	p.heading("recovery points")
	label, last, head := 13, 0, ""
	if len(s.Rehearsals) > 0 { // they prove nothing, so they stand apart
		label, last, head = 9, 9, "rehearsed"
	}
	w := max(9, min(14, (p.width-label-last)/4))
	cell := func(s string) string { return text.Pad(text.Truncate(s, w-1, text.Ellipsis), w) }
	p.row(seg{strings.Repeat(" ", label), dim}, seg{cell("declared") + cell("design") + cell("today") + cell("measured") + head, dim})
	o := s.Objectives
	var was *register.Protection
	if r.changes != nil {
		for i := range r.changes.Points {
			if x := &r.changes.Points[i]; x.StoreID == s.ID {
				was = x.Before
			}
		}
	}
	type value struct {
		text string
		sign view.Sign // no shape: nothing to hold it against
	}
	put := func(name string, ask []register.Code, declared string, design, today, measured value, before string) {
		p.ask = ask
		segs := []seg{{text.Pad(name, label), plain}, {cell(declared), plain}}
		for i, v := range []value{design, today, measured} {
			st, shown := plain, v.text
			if v.sign.Shape != 0 {
				st, shown = v.sign.Style, string(v.sign.Shape)+" "+v.text
			}
			if v.text == none {
				st = dim
			}
			switch {
			case i < 2:
				shown = cell(shown)
			case before != "": // nothing of it is measured, so there is room
				shown, st = "was "+before, loud
			}
			segs = append(segs, seg{shown, st})
		}
		p.row(segs...)
	}
	against := func(minutes *float64, objective *float64) value {
		v := value{text: register.Span(minutes)}
		if objective != nil {
			v.sign = meets(minutes != nil && *minutes <= *objective)
		}
		return v
	}
	var rpo, site, rto *float64
	declared := func(m *float64) string {
		if m == nil {
			return none
		}
		return register.Span(m)
	}
	if o != nil {
		rpo, site, rto = &o.RPOMinutes, &o.SiteRPOMinutes, &o.RTOMinutes
	}
	changedPoint := func(b *float64, now *float64) string {
		if was == nil || register.Span(b) == register.Span(now) {
			return ""
		}
		return register.Span(b)
	}
	nothing := value{text: none}
	var before register.Protection
	if was != nil {
		before = *was
	}
	put("recovery", []register.Code{"rpo-not-met", "design-not-adopted"}, declared(rpo), against(s.Design.RPOMinutes, rpo), against(s.Today.RPOMinutes, rpo), nothing, changedPoint(before.RPOMinutes, s.Today.RPOMinutes))
	put("site", []register.Code{"site-rpo-not-met", "design-not-adopted"}, declared(site), against(s.Design.SiteRPOMinutes, site), against(s.Today.SiteRPOMinutes, site), nothing, changedPoint(before.SiteRPOMinutes, s.Today.SiteRPOMinutes))

	has := func(ok bool) value {
		v := value{text: yesNo(ok)}
		if doc.Policy.OffsiteRequired && s.Durability == register.Durable {
			v.sign = meets(ok)
		}
		return v
	}
	design := has(s.Design.HasOffsite)
	if s.Design.OffsiteRPOMinutes != nil {
		design.text = register.Span(s.Design.OffsiteRPOMinutes)
	}
	offsiteWas := ""
	if was != nil && was.HasOffsite != s.Today.HasOffsite {
		offsiteWas = yesNo(was.HasOffsite)
	}
	wanted := none
	if s.Durability == register.Durable {
		wanted = yesNo(doc.Policy.OffsiteRequired)
	}
	put("off-site", []register.Code{"no-offsite-copy", "recovery-depends-on-home-uplink"}, wanted, design, has(s.Today.HasOffsite), nothing, offsiteWas)

	places := func(n int) value {
		v := value{text: fmt.Sprint(n)}
		if s.Durability == register.Durable {
			v.sign = meets(n >= doc.Policy.CopiesRequired)
		}
		return v
	}
	count, copiesWas := none, ""
	if s.Durability == register.Durable {
		count = fmt.Sprint(doc.Policy.CopiesRequired)
	}
	if was != nil && was.CopyCount != s.Today.CopyCount {
		copiesWas = fmt.Sprint(was.CopyCount)
	}
	put("places", []register.Code{"copies-below-policy", "copies-single-domain"}, count, places(s.Design.CopyCount), places(s.Today.CopyCount), nothing, copiesWas)

	took := nothing
	if d := s.LastDrill; d != nil && d.MeasuredMinutes != nil {
		took = against(d.MeasuredMinutes, rto)
		if d.Outcome != register.Pass {
			took.text += " (" + string(d.Outcome) + ")"
		}
	}
	put("time", []register.Code{"restore-exceeds-rto", "promotion-exceeds-rto"}, declared(rto), nothing, nothing, took, "")
	if n := len(s.Rehearsals); n > 0 {
		shown := none
		if m := s.Rehearsals[n-1].MeasuredMinutes; m != nil {
			shown = register.Span(m)
		}
		row := &p.lines[len(p.lines)-1]
		last := &row.segs[len(row.segs)-1]
		last.text = cell(last.text)
		row.segs = append(row.segs, seg{shown, dim})
	}
	p.exposure(s)
}

func (p *page) exposure(s *register.Store) {
	p.ask = []register.Code{"recovery-depends-on-home-uplink", "writes-depend-on-home-uplink"}
	u := s.UplinkExposure
	if u.Offsite {
		say := "every copy outside the home domain is fed over it"
		if u.OffsiteIndependentPlanned {
			say += "; a planned one is not"
		}
		p.say("✗ uplink", 13, alarm, "%s", say)
	}
	if u.Writes {
		p.say("✗ uplink", 13, alarm, "a writer on another site writes across it")
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (p *page) copies(r *reading, s *register.Store) {
	doc := r.now.Document()
	p.ask = []register.Code{"copies-below-policy", "copies-single-domain", "no-offsite-copy", "copy-leaves-unencrypted"}
	p.heading(fmt.Sprintf("copies (%d, and the primary)", len(s.Copies)))
	if len(s.Copies) == 0 {
		p.row(seg{"none", dim})
	}
	uplink := map[string]bool{}
	for i := range doc.Paths {
		uplink[doc.Paths[i].ID] = doc.Paths[i].DependsOnUplink
	}
	asBase := map[string]bool{}
	if r.changes != nil {
		for i := range r.base.Document().Stores {
			if b := &r.base.Document().Stores[i]; b.ID == s.ID {
				for j := range b.Copies {
					asBase[b.Copies[j].ID] = b.Copies[j].Running()
				}
			}
		}
	}
	for i := range s.Copies {
		c := &s.Copies[i]
		m := statusSign(c.Running())
		segs := []seg{{string(m.Shape) + " ", m.Style}, {text.Pad(c.ID, 22) + " ", plain.With(canvas.Bold)}, {m.Word, m.Style}}
		if on, ok := asBase[c.ID]; ok && on != c.Running() {
			segs = append(segs, seg{" (assumed)", loud})
		}
		segs = append(segs, seg{", " + string(c.Kind) + ", behind by " + register.Span(&c.ExposureMinutes), plain})
		p.row(segs...)
		where := "in the home domain"
		switch {
		case c.OffDomain && r.offsite(c.Domain):
			where = "off-site"
		case c.OffDomain:
			where = "another domain"
		}
		p.say("", 2, plain, "%s → %s in %s, %s", c.Node, c.Target, c.Domain, where)
		path := c.Path
		if uplink[c.Path] {
			path += ", which needs the uplink"
		}
		extra := ""
		if !c.Encrypted {
			extra = ", not encrypted"
		}
		if c.Serves == register.ServesReads {
			extra += ", serves reads"
		}
		p.say("", 2, dim, "over %s%s", path, extra)
		if c.VerifiedBy != "" {
			p.say("", 2, dim, "verified by: %s", c.VerifiedBy)
		}
	}
}

// offsite says whether a domain hosts none of our compute.
func (r *reading) offsite(domain string) bool {
	for _, n := range r.now.Estate().Nodes {
		if n.Value.Compute && n.Value.Domain == domain {
			return false
		}
	}
	return true
}

func (p *page) writersOf(r *reading, s *register.Store) {
	p.ask = []register.Code{"writes-depend-on-home-uplink"}
	if len(s.Writers) == 0 {
		return
	}
	p.heading("writers")
	for i := range s.Writers {
		w := &s.Writers[i]
		how := string(w.Mode)
		if w.Path != nil {
			how += " over " + *w.Path
		}
		if w.Via != nil {
			how += " via " + *w.Via
		}
		p.say(w.ID, min(24, p.width/2), plain, "on %s, %s", w.Node, how)
		if w.Note != nil {
			p.say("", 2, dim, "%s", *w.Note)
		}
	}
}
