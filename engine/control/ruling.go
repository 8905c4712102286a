package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"refbox/vm/fault"
)

// Action is something that a referee may do to a running heat.
type Action string

// The actions.
const (
	Pause       Action = "pause"
	Resume      Action = "resume"
	Extend      Action = "extend"
	Unavailable Action = "unavailable"
	Restore     Action = "restore"
	Revoke      Action = "revoke"
	Uphold      Action = "uphold"
	AddNote     Action = "note"
	EndHeat     Action = "end"
	Void        Action = "void"
	InjectFault Action = "fault"
	ClearFault  Action = "clear"
)

// Description says what an action does and what it needs, for every screen and
// every command that offers it.
type Description struct {
	Action    Action
	Short     string // in a list
	Does      string // a sentence or two
	Seat      bool   // needs a territory
	Milestone bool   // and a milestone of it
	Time      bool   // needs a length of time
	Fault     bool   // is about a fault
}

// Actions are all actions, in the order in which they are shown.
func Actions() []Description { return slices.Clone(actions) }

var actions = []Description{
	{Action: Pause, Short: "pause all seats",
		Does: "Lets the checks under way end, then freezes every machine and stops the clock. Nobody loses or wins time."},
	{Action: Resume, Short: "resume",
		Does: "Thaws the machines and starts the clock where it stood."},
	{Action: Extend, Short: "extend the limit", Time: true,
		Does: "Puts the heat's limit off, for every seat."},
	{Action: Unavailable, Short: "rule a seat unavailable", Seat: true,
		Does: "Takes a seat out of the race: it is not checked any more and cannot win. It keeps what it reached, and may be restored."},
	{Action: Restore, Short: "restore a seat", Seat: true,
		Does: "Puts a seat back that was ruled unavailable. The clock went on for it."},
	{Action: Revoke, Short: "revoke a milestone", Seat: true, Milestone: true,
		Does: "Takes a passed milestone and its points from a seat. It is not checked again unless it is upheld."},
	{Action: Uphold, Short: "uphold a milestone", Seat: true, Milestone: true,
		Does: "Gives a revoked milestone back, as it passed: its points, its evidence and its instant."},
	{Action: InjectFault, Short: "inject a fault", Seat: true, Fault: true,
		Does: "Hurts a machine of a seat, and proves that it did. What it costs the seat is not charged to it."},
	{Action: ClearFault, Short: "clear a fault", Seat: true, Fault: true,
		Does: "Undoes a fault that is on a seat, whoever put it there, and proves that it is gone."},
	{Action: AddNote, Short: "add a note",
		Does: "Adds a line to the log. It changes nothing."},
	{Action: EndHeat, Short: "end the heat",
		Does: "Ends the heat at once, as aborted: without a winner. What was recorded stays."},
	{Action: Void, Short: "void the heat",
		Does: "Rules that the heat counts for nobody: it has no winner, whatever is decided. Ends it when it still runs."},
}

// Describe is an action's description; false for one that there is not.
func Describe(a Action) (Description, bool) {
	i := slices.IndexFunc(actions, func(d Description) bool { return d.Action == a })
	if i < 0 {
		return Description{}, false
	}
	return actions[i], true
}

// Ruling is one action with what it needs. Reason goes into the log; it is the
// text of a note.
type Ruling struct {
	Action    Action
	Territory string
	Milestone string
	By        time.Duration // of an extension; how long a fault lasts, 0 until it is cleared
	// Fault is what InjectFault injects; of ClearFault the kind alone, with Target, or
	// without one where the seat has one fault of the kind.
	Fault  Fault
	Target string
	Reason string
}

// Fault is a fault as package vm/fault has it.
type Fault = fault.Fault

// FaultKind is a kind of fault.
type FaultKind = fault.Kind

// FaultKinds are the kinds of faults, in the order in which they are offered.
func FaultKinds() []FaultKind { return fault.Kinds() }

// FaultParams are the names of a kind's parameters, as in a Fault's JSON, those that it
// needs and those that it may have.
func FaultParams(k FaultKind) (must, may []string) { return fault.ParamsOf(k) }

// MaxExtension is the most by which one ruling puts the limit off.
const MaxExtension = 24 * time.Hour

// Check says what a ruling lacks, whatever the heat is like.
func (r Ruling) Check() error {
	d, ok := Describe(r.Action)
	switch {
	case !ok:
		return fmt.Errorf("the referee's desk knows no %.40q", string(r.Action))
	case strings.TrimSpace(r.Reason) == "" && r.Action == AddNote:
		return errors.New("a note needs a text")
	case strings.TrimSpace(r.Reason) == "":
		return fmt.Errorf("%s needs a reason: it goes into the log", r.Action)
	case d.Seat && r.Territory == "":
		return fmt.Errorf("%s needs a seat", r.Action)
	case d.Milestone && r.Milestone == "":
		return fmt.Errorf("%s needs a milestone", r.Action)
	case r.Action == ClearFault && !slices.Contains(fault.Kinds(), r.Fault.Kind):
		return fmt.Errorf("fault %.40q: want one of %v", string(r.Fault.Kind), fault.Kinds())
	case r.Action == InjectFault && (r.By < 0 || r.By > MaxExtension):
		return fmt.Errorf("a fault can last for up to %v, not for %v", MaxExtension, r.By)
	case r.Action == InjectFault && r.By > 0 && !r.Fault.Kind.Lasts():
		return fmt.Errorf("a %s does not last: it has happened at once", r.Fault.Kind)
	case r.Action == InjectFault:
		return r.Fault.Check()
	case d.Time && (r.By < time.Second || r.By > MaxExtension):
		return fmt.Errorf("the limit can be put off by 1s to %v, not by %v", MaxExtension, r.By)
	}
	return nil
}

// Do does what a ruling says at a desk.
func Do(ctx context.Context, d Desk, author string, r Ruling) error {
	if err := r.Check(); err != nil {
		return err
	}
	switch r.Action {
	case AddNote:
		return d.Note(ctx, author, r.Reason)
	case EndHeat:
		return d.End(ctx, author, r.Reason)
	}
	return d.Rule(ctx, author, r)
}
