package analysis

// Milestone is one rung of a seat's ladder, on the heat's clock.
type Milestone struct {
	ID       string
	Points   int
	PassedMS *int64 // nil: not passed
}

// Spend is what a seat had spent altogether by a time on the heat's clock.
type Spend struct {
	AtMS     int64
	MicroUSD int64
}

// Contender is one seat of a comparison.
type Contender struct {
	Seat     string
	Analysis Analysis
	// OffsetMS is the heat's time at which the actions' clock read zero; nil
	// when nobody knows. Times that need it are then unknown.
	OffsetMS   *int64
	Milestones []Milestone // in the order of the ladder
	// Spending grows; empty: unknown. TotalMicroUSD is the seat's whole cost.
	Spending      []Spend
	TotalMicroUSD *int64
}

// Fought is how one seat fought. Times are on the heat's clock; nil is unknown
// or did not happen.
type Fought struct {
	Seat                       string       `json:"seat"`
	Actions                    int          `json:"actions"`
	FirstActionMS              *int64       `json:"first_action_ms"`
	FirstChangeMS              *int64       `json:"first_change_ms"`
	LastChangeMS               *int64       `json:"last_change_ms"` // its start
	DiscoveriesBeforeChange    int          `json:"discoveries_before_first_change"`
	Changes                    int          `json:"changes"` // actions that changed something
	Errors                     int          `json:"errors"`
	ValidationsAfterLastChange int          `json:"validations_after_last_change"`
	Points                     int          `json:"points"`
	Milestones                 []FoughtOver `json:"milestones"`
	MicroUSDPerMilestone       *int64       `json:"cost_microusd_per_milestone"` // whole cost over milestones passed
	TotalMicroUSD              *int64       `json:"cost_microusd"`
	ByKind                     map[Kind]int `json:"by_kind"`
}

// FoughtOver is a milestone as one seat reached it.
type FoughtOver struct {
	ID                 string `json:"id"`
	PassedMS           *int64 `json:"passed_ms"`
	AfterFirstChangeMS *int64 `json:"after_first_change_ms"` // negative: before it
	// SpentMicroUSD is what the seat had spent when the milestone passed, by the
	// last report not later than that; StepMicroUSD that less what it had spent
	// at its milestone before.
	SpentMicroUSD *int64 `json:"spent_microusd"`
	StepMicroUSD  *int64 `json:"step_microusd"`
	First         bool   `json:"first"` // no seat passed it earlier; ties are all first
}

// Compare states how the seats of one heat fought, in the order given. It is a
// pure statement of facts: it ranks nobody.
func Compare(seats []Contender) []Fought {
	best := map[string]int64{}
	for _, c := range seats {
		for _, m := range c.Milestones {
			if t, ok := best[m.ID]; m.PassedMS != nil && (!ok || *m.PassedMS < t) {
				best[m.ID] = *m.PassedMS
			}
		}
	}
	out := make([]Fought, 0, len(seats))
	for _, c := range seats {
		out = append(out, c.fought(best))
	}
	return out
}

func (c Contender) fought(best map[string]int64) Fought {
	f := Fought{Seat: c.Seat, Actions: c.Analysis.Metrics.ToolCalls, Errors: c.Analysis.Metrics.ToolErrors, TotalMicroUSD: c.TotalMicroUSD,
		ByKind: map[Kind]int{}, Milestones: []FoughtOver{}}
	var firstAction, firstChange, lastChange *int64
	for i := range c.Analysis.Steps {
		s := &c.Analysis.Steps[i]
		f.ByKind[s.Kind]++
		firstAction = earlier(firstAction, s.StartedMS)
		if s.Changed {
			f.Changes++
			firstChange = earlier(firstChange, s.StartedMS)
			if lastChange == nil || s.StartedMS > *lastChange {
				lastChange = ptr(s.StartedMS)
			}
		}
	}
	for i := range c.Analysis.Steps {
		s := &c.Analysis.Steps[i]
		if s.Kind == Discovery && (firstChange == nil || s.StartedMS < *firstChange) {
			f.DiscoveriesBeforeChange++
		}
		if s.Kind == Validation && lastChange != nil && s.StartedMS > *lastChange {
			f.ValidationsAfterLastChange++
		}
	}
	f.FirstActionMS, f.FirstChangeMS, f.LastChangeMS = c.onHeat(firstAction), c.onHeat(firstChange), c.onHeat(lastChange)

	passed := int64(0)
	for _, m := range c.Milestones {
		o := FoughtOver{ID: m.ID, PassedMS: m.PassedMS}
		if m.PassedMS != nil {
			passed++
			f.Points += m.Points
			o.First = *m.PassedMS == best[m.ID]
			o.SpentMicroUSD = c.spentBy(*m.PassedMS)
			if f.FirstChangeMS != nil {
				o.AfterFirstChangeMS = ptr(*m.PassedMS - *f.FirstChangeMS)
			}
		}
		f.Milestones = append(f.Milestones, o)
	}
	for i := range f.Milestones {
		o := &f.Milestones[i]
		if o.SpentMicroUSD == nil {
			continue
		}
		before := int64(0) // the seat's latest milestone before this one, in time
		for k, other := range f.Milestones {
			if other.SpentMicroUSD != nil && (*other.PassedMS < *o.PassedMS || *other.PassedMS == *o.PassedMS && k < i) {
				before = max(before, *other.SpentMicroUSD)
			}
		}
		o.StepMicroUSD = ptr(*o.SpentMicroUSD - before)
	}
	if c.TotalMicroUSD != nil && passed > 0 {
		f.MicroUSDPerMilestone = ptr(*c.TotalMicroUSD / passed)
	}
	return f
}

func earlier(t *int64, other int64) *int64 {
	if t == nil || other < *t {
		return ptr(other)
	}
	return t
}

func (c Contender) onHeat(t *int64) *int64 {
	if t == nil || c.OffsetMS == nil {
		return nil
	}
	return ptr(*t + *c.OffsetMS)
}

// spentBy is the last report not later than t, or nil before the first.
func (c Contender) spentBy(t int64) *int64 {
	var out *int64
	for _, s := range c.Spending {
		if s.AtMS <= t {
			out = ptr(s.MicroUSD)
		}
	}
	return out
}
