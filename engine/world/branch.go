package world

// State is the seat's machines as they were kept at an instant.
type State struct {
	MS        uint64
	Index     int
	Sequence  uint64
	Milestone string // that passed last
	State     string // its name in the cache
}

// BranchedFrom says in words from where the heat started; "" for one of its own.
func (w *World) BranchedFrom() string {
	if w.Branched == nil {
		return ""
	}
	return "branched from " + w.Branched.Heat + " at " + w.Branched.Milestone
}
