// Package world is what a heat's log means: a pure fold of events into a World,
// and facts derived from one. Live view, replay, verification and reports all
// show a fold (design: section 1, decision 2).
//
// Guarantees: the same events give the same World, always; the reference's part
// of it equals the reference's own reducer (recordings reference, section 3); no
// event, however odd, stops the fold; a World stays bounded (see Limits below)
// whatever the log says; Clone is cheap, and no clone sees another's changes.
//
// Strings of a World are as the events that were folded: sanitised when those
// came from event.Decode, raw when they came from a raw event.Decoder.
package world

import (
	"encoding/json"
	"slices"
	"strings"

	"refbox/engine/event"
)

// Limits of a World. A log that names more is folded without the rest, and
// Ignored counts the events that this concerns.
const (
	MaxEntries    = 16384 // seats, agents and milestones together
	MaxMilestones = 256   // per seat
	MaxRunning    = 256   // unfinished actions or attacks per seat
)

// States of a match.
const (
	Preparing = "preparing"
	Running   = "running"
	Finished  = "finished"
	Aborted   = "aborted"
)

// World is the state of a heat after some of its events. Times are milliseconds
// on the heat's clock. Read it, don't change it.
type World struct {
	// The reference's part.
	MatchState             string
	Winner                 *string // a territory
	FinishReason           *string
	InfrastructureFailures uint64
	LastSequence           uint64 // of the last event; nothing while Events is 0
	ElapsedMS              uint64

	// Ours.
	Events     int // folded so far; the index of an event is its number in the fold, from 0
	Unknown    int // of kinds that are not known
	Ignored    int // see Limits
	FinishedMS *uint64
	DeadHeat   []string // territories that match_finished could not tell apart
	Prepared   *event.HeatPrepared
	Branched   *event.HeatBranched // the heat that this one started from a state of; nil for none
	Drain      Drain
	Pause      *Pause  // while the heat is paused
	PausedMS   uint64  // of pauses that ended
	ExtendedMS uint64  // by which referees put the limit off
	Voided     *Ruling // that the heat counts for nobody; nil for none
	Pauses     List[Pause]
	Notes      List[Note]
	Rulings    List[Ruling]
	Failures   List[Infrastructure] // of the infrastructure

	seats      []*Seat // by id
	order      []*Seat // as shown
	agents     []*Agent
	registered int
	entries    int
}

// Drain is the time after the freeze in which late artefacts are collected.
type Drain struct {
	State      string // "", "draining", "done"
	StartMS    uint64
	TimeoutMS  uint64
	Pending    uint64
	Captured   uint64
	Terminated uint64
}

// Pause is a pause of the heat. Its clock stands still meanwhile.
type Pause struct {
	SinceMS        uint64
	Index          int
	Author, Reason string
	Resumed        *Resumption // nil while it lasts, and for ever when the heat ended in it
}

// Resumption is the end of a pause.
type Resumption struct {
	Index          int
	Author, Reason string
	TookMS         uint64 // of the pause, on no clock of the heat's
}

// Note is an operator's note.
type Note struct {
	MS           uint64
	Index        int
	Author, Text string
}

// Ruling is a referee's ruling.
type Ruling struct {
	MS    uint64
	Index int
	event.RefereeRuling
}

// Infrastructure is a failure of the referee's own parts.
type Infrastructure struct {
	MS    uint64
	Index int
	event.InfrastructureFailure
}

// Seat is one territory.
type Seat struct {
	ID string

	// The reference's part.
	Registered        bool // Class and Agent are known
	Class             string
	Agent             string
	State             string // provisioning, healthy, degraded, recovering, eliminated
	Resources         uint64
	LastHealth        *Health
	EliminationSource *string
	EliminationDetail *string
	CompetitorState   string      // empty when the log never said
	Milestones        []Milestone // in the order of their first evaluation
	Points            uint64
	DurableAtMS       *uint64 // clock of the verdict

	// Ours.
	Durable      *Instant // when it became durable, as far as that is known
	AttackMS     uint64   // of the referee's attacks, reboots and faults, not charged
	FaultMS      uint64   // the part of it of faults that no other seat had
	Unavailable  *Loss
	Actions      List[Action]
	Attacks      List[Attack]
	Spans        List[Span] // folded runs of equal failures, by their beginning
	Revocations  List[Revocation]
	Faults       List[Fault]
	Touches      List[Touch] // of people at the console
	Canary       *Canary
	CanarySpans  List[CanarySpan]
	CanaryResult *CanaryResult // nil before it has read everything back
	Hostile      uint64        // outputs that would have driven the viewer's terminal
	Decoys       List[DecoyUse]
	Limits       List[Limit]
	States       List[State] // that were saved
	Prepared     *event.PreparedSeat
	ProgressMS   uint64 // last pass or revocation
	UptimeTicks  uint64 // conquest: ticks at which it was observed and healthy (recordings reference, section 4.7)
	DegradedMS   uint64 // conquest: time in degraded and recovering, up to the last change
	StateSinceMS uint64
	Steps        List[Step] // conquest: from state to state

	running   []int // unfinished actions, by index in Actions
	attacking []int
	attached  int
}

// Instant is a moment known to lie in (NotBefore, At]. Where nothing says when it
// was last refused, NotBefore is nil and At is all that is known.
type Instant struct {
	NotBefore *uint64 `json:"not_before_ms"`
	At        uint64  `json:"at_ms"`
}

// Overlaps says that two instants cannot be told apart.
func (a Instant) Overlaps(b Instant) bool { return !a.Before(b) && !b.Before(a) }

// Before says that a was certainly earlier than b.
func (a Instant) Before(b Instant) bool {
	if b.NotBefore == nil || *b.NotBefore >= b.At {
		return a.At < b.At
	}
	return a.At <= *b.NotBefore
}

// Milestone is a seat's state on one milestone.
type Milestone struct {
	ID string

	// The reference's part.
	Evaluating bool
	Passed     bool
	Points     uint64
	Evidence   json.RawMessage
	Failing    bool    // the latest result is a failure
	Failure    Failure // the latest failure, kept after a pass; valid when Failures > 0

	// Ours.
	Attempts     uint64 // evaluations that started
	Failures     uint64
	FirstMS      uint64 // first evaluation
	StartedMS    uint64 // latest evaluation
	PassedMS     uint64
	PassedIndex  int
	Record       string // path of the passing attempt's probe records, in the heat's folder
	RecordSHA    string
	NotBefore    *uint64
	HeldAt       *uint64
	FirstFailure *Failure
	Inherited    bool   // it passed in the heat that this one branched from, and earned nothing here
	Revoked      uint64 // how often

	span int // in Seat.Spans, plus one; 0 for none open
}

// Failure is one failed attempt.
type Failure struct {
	MS        uint64
	Index     int
	Attempt   uint64 // 0 when the log does not count
	Category  string
	Detail    string
	Source    string
	Record    string
	RecordSHA string
}

// Span is a run of failures of one milestone with the same category and detail.
type Span struct {
	Milestone   string
	Category    string
	Detail      string // at most 2 KiB
	Source      string
	SinceMS     uint64
	LastMS      uint64
	Count       int
	First, Last int    // indices of the failing events
	Open        bool   // no pass and no other failure came after it
	Ended       string // "passed", "changed", "revoked", "" while open
	EndMS       uint64
}

// Action is what an agent did, as seen on the wire.
type Action struct {
	Number       uint64
	Agent        string
	Channel      string
	Machine      string
	Command      string // at most 2 KiB; the event has it in full
	Session      string
	SelfReported bool
	StartMS      uint64
	Start        int // index of its first event; -1 when the log lacks it
	Done         bool
	EndMS        uint64
	End          int  // index of its last event; -1 while it runs
	Exit         *int // nil while it runs, or when the session broke
	TookMS       uint64
	Bytes        uint64
	Output       string // at most 512 bytes; the event has more
	Detail       string
}

// Attack is a referee's attack on a claim.
type Attack struct {
	Milestone string
	Attack    string
	StartMS   uint64
	Start     int // -1 when the log lacks it
	Done      bool
	EndMS     uint64
	End       int // -1 while it runs
	Held      bool
	Undone    bool
	Detail    string
	TookMS    uint64
	Record    string
	RecordSHA string
}

// Revocation is a milestone that was taken back.
type Revocation struct {
	MS        uint64
	Index     int
	Milestone string
	Reason    string
	Points    uint64 // taken off
	Record    string
	RecordSHA string
}

// Touch is a person at a seat's console.
type Touch struct {
	Machine, Author string
	FromMS          uint64
	ToMS            *uint64 // nil while attached
	InputBytes      uint64
	Input           string
}

// Loss is a seat that cannot go on.
type Loss struct {
	MS             uint64
	Index          int
	Source, Detail string
}

// DecoyUse is a planted decoy that the seat's player used.
type DecoyUse struct {
	MS            uint64
	Index         int
	Decoy, Detail string
}

// Limit is a limit that an agent reached.
type Limit struct {
	MS            uint64
	Index         int
	Limit, Detail string
}

// Agent is a competitor.
type Agent struct {
	ID string

	// The reference's part.
	Territory     string
	Model         string
	Running       bool
	Successful    *bool
	FailureSource *string
	TerminalState *string // completed, failed, interrupted, terminated, incomplete
	TerminalNote  *string
	ResourceUnits uint64
	InputTokens   uint64
	OutputTokens  uint64
	CostMicroUSD  uint64

	// Ours: charges, and how many of them said nothing about tokens or cost.
	Charges       uint64
	TokensUnknown uint64
	CostUnknown   uint64
	StartedMS     uint64
	EndedMS       *uint64
}

// New is the world before the first event.
func New() *World { return &World{MatchState: Preparing} }

// Seats are the territories as they are shown: in the order of their
// registration, which is the manifest's; others after them, by id.
func (w *World) Seats() []*Seat { return w.order }

// Agents are the agents by id.
func (w *World) Agents() []*Agent { return w.agents }

// Seat returns a territory, or nil.
func (w *World) Seat(id string) *Seat {
	if i, ok := w.seatAt(id); ok {
		return w.seats[i]
	}
	return nil
}

// Agent returns an agent, or nil.
func (w *World) Agent(id string) *Agent {
	if i, ok := w.agentAt(id); ok {
		return w.agents[i]
	}
	return nil
}

// Over says whether the match has ended.
func (w *World) Over() bool { return w.MatchState == Finished || w.MatchState == Aborted }

// Milestone returns a seat's milestone, or nil when it was never evaluated.
func (s *Seat) Milestone(id string) *Milestone {
	for i := range s.Milestones {
		if s.Milestones[i].ID == id {
			return &s.Milestones[i]
		}
	}
	return nil
}

// Passed is the number of milestones passed.
func (s *Seat) Passed() int {
	n := 0
	for i := range s.Milestones {
		if s.Milestones[i].Passed {
			n++
		}
	}
	return n
}

// Span returns the milestone's open run of failures.
func (s *Seat) Span(m *Milestone) (Span, bool) {
	if m == nil || m.span == 0 {
		return Span{}, false
	}
	return s.Spans.At(m.span - 1), true
}

// RunningActions are the actions that have not finished, oldest first.
func (s *Seat) RunningActions() []Action {
	out := make([]Action, 0, len(s.running))
	for _, i := range s.running {
		out = append(out, s.Actions.At(i))
	}
	return out
}

// RunningAttacks are the attacks that have not finished, oldest first.
func (s *Seat) RunningAttacks() []Attack {
	out := make([]Attack, 0, len(s.attacking))
	for _, i := range s.attacking {
		out = append(out, s.Attacks.At(i))
	}
	return out
}

// Touched says whether a person was at the seat's console.
func (s *Seat) Touched() bool { return s.Touches.Len() > 0 }

// Attached says whether a person is at the seat's console.
func (s *Seat) Attached() bool { return s.attached > 0 }

// CostComplete says whether every charge had a cost; nil when there was none.
func (a *Agent) CostComplete() *bool {
	if a.Charges == 0 {
		return nil
	}
	complete := a.CostUnknown == 0
	return &complete
}

// Clone is a copy that shares what never changes.
func (w *World) Clone() *World {
	c := *w
	c.Pauses = w.Pauses.clone()
	c.Notes, c.Rulings, c.Failures = w.Notes.clone(), w.Rulings.clone(), w.Failures.clone()
	c.seats = make([]*Seat, len(w.seats))
	c.order = make([]*Seat, len(w.order))
	copies := make([]Seat, len(w.seats))
	for i, s := range w.seats {
		s.copyTo(&copies[i])
		c.seats[i] = &copies[i]
	}
	for i, s := range w.order {
		at, _ := c.seatAt(s.ID)
		c.order[i] = c.seats[at]
	}
	c.agents = make([]*Agent, len(w.agents))
	agents := make([]Agent, len(w.agents))
	for i, a := range w.agents {
		agents[i] = *a
		c.agents[i] = &agents[i]
	}
	return &c
}

func (s *Seat) copyTo(c *Seat) {
	*c = *s
	c.Milestones = slices.Clone(s.Milestones)
	c.Actions, c.Attacks, c.Spans = s.Actions.clone(), s.Attacks.clone(), s.Spans.clone()
	c.Revocations, c.Faults, c.Touches, c.Limits = s.Revocations.clone(), s.Faults.clone(), s.Touches.clone(), s.Limits.clone()
	c.CanarySpans, c.Steps, c.Decoys, c.States = s.CanarySpans.clone(), s.Steps.clone(), s.Decoys.clone(), s.States.clone()
	c.running, c.attacking = slices.Clone(s.running), slices.Clone(s.attacking)
}

// Weight is about how many bytes a clone takes of its own, once its original has
// gone on.
func (w *World) Weight() int { return 1024 + w.entries*320 + len(w.seats)*4096 }

func (w *World) seatAt(id string) (int, bool) {
	if len(w.seats) <= 8 {
		for i, s := range w.seats {
			if s.ID == id {
				return i, true
			}
		}
	}
	return slices.BinarySearchFunc(w.seats, id, func(s *Seat, id string) int { return strings.Compare(s.ID, id) })
}

func (w *World) agentAt(id string) (int, bool) {
	return slices.BinarySearchFunc(w.agents, id, func(a *Agent, id string) int { return strings.Compare(a.ID, id) })
}
