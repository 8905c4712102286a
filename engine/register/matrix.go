package register

// verdict is what becomes of a store on one side, and by which rule of
// reference/register-and-failure-model.md 1.3.
type verdict struct {
	outcome Outcome
	rule    int   // index of cellRules
	copies  []int // the copies that decided it
}

// The rules of a cell; the first that holds wins.
const (
	ruleVendor = iota
	rulePrimary
	rulePromotes
	ruleReads
	ruleRebuild
	ruleRestore
	ruleNothing
)

var cellRules = [...]struct {
	outcome Outcome
	says    string
}{
	{Writable, "the vendor that holds the primary can be reached from this side"},
	{Writable, "the primary's node is on this side"},
	{Writable, "a reachable copy that serves reads promotes itself"},
	{ReadOnly, "a reachable copy serves reads"},
	{RestoreRequired, "the store is rebuildable, so nothing is lost that cannot be made again"},
	{RestoreRequired, "a reachable copy can be restored from"},
	{Lost, "nothing on this side holds the data"},
}

const noCopyReachable = "No copy of this data is reachable from this side of the break."

var noNotes = []string{}

// reach is the side that can use a copy, -1 for none: the side of the node that
// feeds it, which for a copy off-site needs the internet too.
func (m *model) reach(c *copyView, scenario int) int {
	p := m.sides[scenario].of[c.feeder]
	if p >= 0 && c.offsite && !m.out.Scenarios[scenario].Partitions[p].VendorReachable {
		return -1
	}
	return int(p)
}

// pool says whether a copy counts in a posture.
func (c *copyView) pool(p Posture) bool { return p == TargetPosture || c.Running() }

// bench is what each side can reach of one store; it is used again for every
// cell.
type bench struct {
	reads      int // copy that serves reads, -1 for none
	promotes   int // the one of them that promotes itself
	restorable []int
}

// judge decides every side of one store in one scenario.
func (v *storeView) judge(scenario int, posture Posture, sides []bench, out []verdict) {
	sc := &v.m.out.Scenarios[scenario]
	for p := range sides {
		sides[p] = bench{-1, -1, sides[p].restorable[:0]}
	}
	for j := range v.copies {
		c := &v.copies[j]
		if !c.pool(posture) {
			continue
		}
		p := v.m.reach(c, scenario)
		if p < 0 {
			continue
		}
		b := &sides[p]
		if c.Serves == ServesReads {
			source := v.s.Promotion != nil && v.s.Promotion.From == c.ID
			if b.reads < 0 || source {
				b.reads = j // the copy that a runbook promotes says how long it takes
			}
			if source && v.s.Promotion.Trigger == Automatic {
				b.promotes = j
			}
		}
		if c.Restorable {
			b.restorable = append(b.restorable, j)
		}
	}
	for p := range sides {
		b := &sides[p]
		rule, copies := ruleNothing, []int(nil)
		switch {
		case v.s.Primary.Held() && sc.Partitions[p].VendorReachable:
			rule = ruleVendor
		case v.primary >= 0 && int(v.m.sides[scenario].of[v.primary]) == p:
			rule = rulePrimary
		case b.promotes >= 0:
			rule, copies = rulePromotes, v.indices[b.promotes:b.promotes+1]
		case b.reads >= 0:
			rule, copies = ruleReads, v.indices[b.reads:b.reads+1]
		case v.s.Durability == Rebuildable:
			rule = ruleRebuild
		case len(b.restorable) > 0:
			rule, copies = ruleRestore, b.restorable
		}
		out[p] = verdict{cellRules[rule].outcome, rule, copies}
	}
}

// told are a verdict's minutes and notes. Cells of one store share the notes
// that a single copy gives.
func (v *storeView) told(d verdict) (*float64, []string) {
	switch d.rule {
	case rulePromotes:
		return &v.s.Promotion.Minutes, v.copies[d.copies[0]].note(d.rule)
	case ruleReads:
		c := &v.copies[d.copies[0]]
		if p := v.s.Promotion; p != nil && p.From == c.ID {
			return &p.Minutes, c.note(d.rule)
		}
		return nil, c.note(d.rule)
	case ruleRebuild:
		return nil, []string{v.s.Rebuild.Procedure}
	case ruleRestore:
		if len(d.copies) == 1 {
			return v.restoring(), v.copies[d.copies[0]].note(d.rule)
		}
		ids := make([]string, len(d.copies))
		for i, j := range d.copies {
			ids[i] = v.copies[j].ID
		}
		return v.restoring(), []string{"Only restorable copies are reachable (" + list(ids) + "); recovery here means restoring one."}
	case ruleNothing:
		return nil, []string{noCopyReachable}
	}
	return nil, noNotes
}

// restoring is how long a restore takes: as measured, else as promised.
func (v *storeView) restoring() *float64 {
	if last := v.s.LastDrill; last != nil && last.Outcome == Pass {
		return last.MeasuredMinutes
	}
	if v.s.Objectives != nil {
		return &v.s.Objectives.RTOMinutes
	}
	return nil
}

// note is what a copy alone has a cell say; a copy is decided by one rule
// nearly always, so the last is kept.
func (c *copyView) note(rule int) []string {
	if c.noted == nil || c.notedBy != rule {
		text := ""
		switch rule {
		case rulePromotes:
			text = c.ID + " promotes itself here."
		case ruleReads:
			text = c.ID + " keeps serving reads here; writes resume once a human promotes it."
		default:
			text = "Only " + c.ID + " is reachable; recovery here means restoring it."
		}
		c.noted, c.notedBy = []string{text}, rule
	}
	return c.noted
}

// matrix derives the cells of both postures, and what scenarios and stores sum
// up of them.
func (m *model) matrix() {
	scenarios := len(m.out.Scenarios)
	most, all := 0, 0
	for i := range m.out.Scenarios {
		n := len(m.out.Scenarios[i].Partitions)
		most = max(most, n)
		all += n
	}
	m.out.Matrix = make([]Cell, 0, 2*len(m.stores)*scenarios)
	slab := make([]Side, 2*len(m.stores)*all)
	benches, verdicts := make([]bench, most), make([]verdict, most)
	for k, posture := range []Posture{TargetPosture, CurrentPosture} {
		for i := range m.stores {
			v := &m.stores[i]
			worst := Writable
			from := len(m.out.Matrix)
			for sc := range m.out.Scenarios {
				n := len(m.out.Scenarios[sc].Partitions)
				v.judge(sc, posture, benches[:n], verdicts[:n])
				m.out.Matrix = append(m.out.Matrix, v.cell(sc, posture, verdicts[:n], slab[:n:n]))
				slab = slab[n:]
				c := &m.out.Matrix[len(m.out.Matrix)-1]
				m.count(sc, c)
				if c.Outcome.Worse(worst) {
					worst = c.Outcome
				}
			}
			v.cells[k] = m.out.Matrix[from:]
			if posture == TargetPosture {
				v.s.Worst = worst
			} else {
				v.s.WorstToday = worst
			}
		}
	}
}

// cell puts the sides together: the operator's is what counts.
func (v *storeView) cell(scenario int, posture Posture, verdicts []verdict, sides []Side) Cell {
	sc := &v.m.out.Scenarios[scenario]
	writers := 0
	for p := range sides {
		sides[p] = Side{sc.Partitions[p].ID, sc.Partitions[p].Operator, verdicts[p].outcome, verdicts[p].outcome == Writable}
		if sides[p].Writable {
			writers++
		}
	}
	if v.s.Primary.Held() {
		writers = 0 // the vendor sees to it that there is one
	}
	mine := verdicts[v.m.sides[scenario].operator]
	minutes, notes := v.told(mine)
	return Cell{posture, v.s.ID, sc.ID, mine.outcome, minutes, notes, writers, sides}
}

func (m *model) count(scenario int, c *Cell) {
	s := &m.out.Scenarios[scenario]
	if c.Posture == CurrentPosture {
		if c.Outcome.Survives() {
			s.SurvivingToday++
		}
		return
	}
	if c.Outcome.Survives() {
		s.Surviving++
	}
	if c.Outcome == Lost {
		s.Lost++
	}
}
