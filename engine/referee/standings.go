package referee

import "refbox/engine/world"

// Outcome is how a race ended.
type Outcome struct {
	Winner   string // a territory; "" for none
	Reason   string
	DeadHeat []string   // the seats that cannot be told apart, when there are any
	Seats    []Standing // by rank
}

// Standing is one seat's result.
type Standing struct {
	world.Standing
	State string // durable, incomplete, unavailable
}

// decide makes the outcome of what the log says. The winner is the seat alone in
// front (recordings reference, section 4.5), unless it got nowhere or is out.
func decide(w *world.World, state func(territory string) string) Outcome {
	var o Outcome
	for _, s := range world.Standings(w) {
		o.Seats = append(o.Seats, Standing{Standing: s, State: state(s.Territory)})
	}
	if len(o.Seats) == 0 {
		return o
	}
	switch first := o.Seats[0]; {
	case first.DeadHeat():
		for _, s := range o.Seats {
			if s.Rank == first.Rank {
				o.DeadHeat = append(o.DeadHeat, s.Territory)
			}
		}
	case first.Points > 0 && first.State != stateUnavailable:
		o.Winner = world.Winner(world.Standings(w))
	}
	return o
}
