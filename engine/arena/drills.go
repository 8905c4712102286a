package arena

import "slices"

// Clock says between which milestones a heat's recovery time is taken: package
// drill.
type Clock struct {
	// From starts it, by its first pass. Without one the fault's confirmation does, or,
	// in an arena that starts broken, the heat's own clock.
	From *string `json:"from,omitempty"`
	// To stops it. What comes after it, as a restart that proves durability, would
	// inflate the time.
	To string `json:"to"`
}

// Procedures that a heat may follow: what of a register it can be a drill of.
const (
	Restore   = "restore"
	Promotion = "promotion"
	Drain     = "drain"
	Rollback  = "rollback"
	Rollout   = "rollout" // of which no register keeps drills
)

// drills checks what the arena says of the procedure that its heats follow, and of
// the store whose data its machines hold
// (reference/register-and-failure-model.md, part 3).
func (c *checker) drills() {
	m := c.m
	known := []string{Restore, Promotion, Drain, Rollback, Rollout}
	if m.Procedure != nil { // arguments are made before failIf looks
		c.failIf(!slices.Contains(known, *m.Procedure), "procedure", "%s is none of restore, promotion, drain, rollback, rollout", quote(*m.Procedure))
		c.failIf(m.Clock == nil, "clock", "is missing: a procedure's time is taken up to a milestone, e.g. clock = { to = \"writes-restored\" }")
	}
	c.failIf(m.Procedure == nil && m.Clock != nil, "procedure", "is missing: the clock is of one")
	if k := m.Clock; k != nil && len(m.Milestones()) == 0 {
		c.failIf(m.Arena.Mode == Conquest, "clock", "is of milestones, and a conquest has none")
	} else if k != nil {
		to, ok := m.Milestone(k.To)
		c.failIf(!ok, "clock.to", "no milestone is called %s", quote(k.To))
		// A seat that is durable has then passed it, so that a durable seat has a time.
		c.failIf(ok && !to.Required && !m.DependsOn(m.Build.CompletionMilestone)[k.To], "clock.to", "%s is not required: a seat could be durable without it, and have no time", quote(k.To))
		if k.From != nil {
			_, ok := m.Milestone(*k.From)
			c.failIf(!ok, "clock.from", "no milestone is called %s", quote(*k.From))
			c.failIf(ok && *k.From == k.To, "clock.from", "is clock.to: no time passes between them")
		}
	}
	if m.Store != nil {
		c.failIf(!registerID(*m.Store), "store", "%s is no id of a register", quote(*m.Store))
		c.failIf(m.Procedure == nil, "procedure", "is missing: what a heat drills of a store")
	}
	for _, x := range []struct {
		key string
		id  *string
	}{{"copy", m.Copy}, {"migration", m.Migration}} {
		if x.id != nil {
			c.failIf(!registerID(*x.id), x.key, "%s is no id of a register", quote(*x.id))
			c.failIf(m.Store == nil, "store", "is missing: %s is of one", x.key)
		}
	}
	rollback := m.Procedure != nil && *m.Procedure == Rollback
	c.failIf(m.Migration != nil && !rollback, "migration", "is only for procedure \"rollback\"")
	c.failIf(m.Migration == nil && m.Store != nil && rollback, "migration", "is missing: which one is rolled back")
}

// registerID says that s can be an id of a datastore register.
func registerID(s string) bool {
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && (r == '-' || r == '_' || r == '.' || r == ':' || r == '/' || r == '@'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 128
}
