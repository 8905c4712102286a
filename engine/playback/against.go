package playback

import (
	"slices"

	"refbox/engine/arena"
	"refbox/engine/world"
)

// Side is one of two heats that are compared on one clock, each from its own
// start.
type Side struct {
	World    *world.World
	Manifest *arena.Manifest // nil when there is none
}

// Lane is a seat of one heat beside a seat of the other; Against is nil when that
// has none left.
type Lane struct {
	Seat    Runner  `json:"seat"`
	Against *Runner `json:"against"`
	Splits  []Split `json:"splits"`
}

// Runner is who runs in a lane.
type Runner struct {
	Territory string `json:"territory"`
	Agent     string `json:"agent"`
	Model     string `json:"model"`
	Points    uint64 `json:"points"`
}

// Split is when each side passed a milestone for good; nil where it has not.
type Split struct {
	Milestone string  `json:"milestone"` // Durable for the seat's durable instant
	MS        *uint64 `json:"ms"`
	AgainstMS *uint64 `json:"against_ms"`
	DeltaMS   *int64  `json:"delta_ms"` // negative: earlier than the other side
}

// Durable stands for the milestone of a split that is a seat's durable instant.
const Durable = "durable"

// Compare puts the seats of two heats side by side: those that one agent plays,
// then those of one territory, what is left by their order. Milestones come in this side's order, then what
// only the other side has.
func Compare(this, other Side) []Lane {
	mine := this.World.Seats()
	rivals := make([]*world.Seat, len(mine))
	rest := slices.Clone(other.World.Seats())
	for _, match := range []func(a, b *world.Seat) bool{
		func(a, b *world.Seat) bool { return a.Agent != "" && a.Agent == b.Agent },
		func(a, b *world.Seat) bool { return a.ID == b.ID },
		func(a, b *world.Seat) bool { return true },
	} {
		for i, s := range mine {
			if rivals[i] != nil {
				continue
			}
			if k := slices.IndexFunc(rest, func(r *world.Seat) bool { return match(s, r) }); k >= 0 {
				rivals[i] = rest[k]
				rest = slices.Delete(rest, k, k+1)
			}
		}
	}
	var out []Lane
	for i, s := range mine {
		against := rivals[i]
		lane := Lane{Seat: runner(this.World, s)}
		if against != nil {
			r := runner(other.World, against)
			lane.Against = &r
		}
		lane.Splits = splits(this, s, other, against)
		out = append(out, lane)
	}
	return out
}

func runner(w *world.World, s *world.Seat) Runner {
	r := Runner{Territory: s.ID, Agent: s.Agent, Points: s.Points}
	if a := w.Agent(s.Agent); a != nil {
		r.Model = a.Model
	}
	return r
}

func splits(this Side, s *world.Seat, other Side, against *world.Seat) []Split {
	mine, order := passes(this, s)
	var theirs map[string]uint64
	if against != nil {
		var more []string
		theirs, more = passes(other, against)
		for _, id := range more {
			if !slices.Contains(order, id) {
				order = append(order, id)
			}
		}
	}
	at := func(of map[string]uint64, id string) *uint64 {
		if ms, ok := of[id]; ok {
			return &ms
		}
		return nil
	}
	out := []Split{}
	for _, id := range append(order, Durable) {
		sp := Split{Milestone: id, MS: at(mine, id), AgainstMS: at(theirs, id)}
		if id == Durable {
			sp.MS = s.DurableAtMS
			if against != nil {
				sp.AgainstMS = against.DurableAtMS
			}
		}
		if sp.MS == nil && sp.AgainstMS == nil && id == Durable {
			continue
		}
		if sp.MS != nil && sp.AgainstMS != nil {
			d := int64(*sp.MS - *sp.AgainstMS)
			sp.DeltaMS = &d
		}
		out = append(out, sp)
	}
	return out
}

// passes are when a seat passed what, and all milestones in their order.
func passes(side Side, s *world.Seat) (at map[string]uint64, order []string) {
	at = map[string]uint64{}
	for _, r := range world.Ladder(side.World, side.Manifest, s.ID) {
		order = append(order, r.ID)
		if r.State == world.RungPassed && r.Milestone != nil {
			at[r.ID] = r.Milestone.PassedMS
		}
	}
	return at, order
}
