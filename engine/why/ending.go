package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"refbox/engine/world"
)

// Ending is how a seat's player ended, from evidence rather than from what it or
// its adapter says (recordings reference, 10.10).
type Ending string

// Endings.
const (
	StillPlaying  Ending = "playing"
	NeverStarted  Ending = "never_started" // the seat, or the player, did not come to the race
	Finished      Ending = "finished"      // by itself, and its seat is durable
	NotDurable    Ending = "not_durable"   // by itself, and its seat is not
	GaveUp        Ending = "gave_up"       // it says that it failed
	SelfRebooted  Ending = "self_rebooted" // it ended with the session in which it rebooted its machine
	Disconnected  Ending = "disconnected"  // it ended with a session that broke
	HitByFault    Ending = "fault"         // it ended with a session that a fault of the referee's broke
	Killed        Ending = "killed"        // a signal, or the end of the drain
	LimitReached  Ending = "limit"
	ProviderFault Ending = "provider"
	HarnessFault  Ending = "harness"
	Cut           Ending = "cut" // the heat was over
)

// playerLimits are the limits that end a player; others end what is recorded.
var playerLimits = []string{"time", "cost", "resource_units", "turns", "tokens"}

// reboots are commands that end a machine, as a player may give them.
var reboots = regexp.MustCompile(`(^|[;&|(\s/])(reboot|poweroff|halt|shutdown|kexec|init\s+[06]|telinit\s+[06])([;&|)\s]|$)|systemctl\s+(-\S+\s+)*(reboot|poweroff|halt|soft-reboot|kexec)|sysrq-trigger`)

// broke is the session that a player's end came with: its last action on the
// wire, when that ended without an exit and nobody but the player or its machine
// is behind that.
func broke(s *world.Seat) (world.Action, bool) {
	for i := s.Actions.Len() - 1; i >= 0; i-- {
		a := s.Actions.At(i)
		if a.SelfReported {
			continue
		}
		ended := a.Done && a.Exit == nil && !strings.Contains(a.Detail, "the referee rebooted") && !strings.Contains(a.Detail, "the gateway closed") &&
			!strings.Contains(a.Detail, "refused:")
		return a, ended
	}
	return world.Action{}, false
}

// faultSettles is how long after a fault's end a session may break of it.
const faultSettles = 2000 // ms

// brokenBy is the fault of the referee's that was on a machine, or had just been, when
// a session there broke.
func brokenBy(s *world.Seat, x world.Action) (world.Fault, bool) {
	for _, f := range s.Faults.All() {
		machine, _, _ := strings.Cut(f.Target, "/")
		machine, _, _ = strings.Cut(machine, "→")
		if machine == x.Machine && f.Bit() && x.EndMS >= f.InjectedMS && (f.EndedMS == nil || x.EndMS <= *f.EndedMS+faultSettles) {
			return f, true
		}
	}
	return world.Fault{}, false
}

// acted says that the player did something on the wire.
func acted(s *world.Seat) bool {
	for i := range s.Actions.Len() {
		if !s.Actions.At(i).SelfReported {
			return true
		}
	}
	return false
}

// endingOf judges a seat's player, and adds the lines behind that.
func (e *Explanation) endingOf(w *world.World, s *world.Seat) Ending {
	a := w.Agent(s.Agent)
	switch {
	case s.Unavailable != nil && (a == nil || a.EndedMS == nil && !a.Running):
		return NeverStarted // the seat's own line says why
	case a == nil || a.Running || a.TerminalState == nil:
		return StillPlaying
	}
	for _, l := range s.Limits.All() {
		if slices.Contains(playerLimits, l.Limit) {
			return LimitReached // so does the limit's
		}
	}
	source, note := "", ""
	if a.FailureSource != nil {
		source = *a.FailureSource
	}
	if a.TerminalNote != nil {
		note = *a.TerminalNote
	}
	say := func(format string, v ...any) {
		e.addNo(*a.EndedMS, Agent, "%s", fmt.Sprintf(format, v...))
	}
	switch state := *a.TerminalState; {
	case state == "terminated":
		return Killed
	case state == "interrupted", state == "incomplete":
		return Cut
	case source == "provider":
		say("%s ended for its provider's sake, which is no failure of the player", a.ID)
		return ProviderFault
	case state == "failed":
		if x, ok := broke(s); ok {
			what, ending := "a session that broke", Disconnected
			if f, ok := brokenBy(s, x); ok {
				e.add(x.EndMS, x.End, Agent, "", "%s ended with a session that the fault %s on %s broke: action %d, %s", a.ID, f.Fault, f.Target, x.Number, brief(x.Command))
				return HitByFault
			}
			if reboots.MatchString(x.Command) {
				what, ending = "the session in which it rebooted its own machine", SelfRebooted
			}
			e.add(x.EndMS, x.End, Agent, "", "%s ended with %s: action %d, %s: %s", a.ID, what, x.Number, brief(x.Command), x.Detail)
			return ending
		}
		switch {
		case strings.Contains(note, "killed by signal"):
			return Killed
		case source == "harness" && !acted(s):
			say("%s did nothing on the wire: it never came to play", a.ID)
			return NeverStarted
		case source == "harness":
			return HarnessFault
		}
		return GaveUp
	case s.DurableAtMS == nil && !s.Conquest():
		say("%s came to its end, and %s is not durable", a.ID, s.ID)
		return NotDurable
	}
	return Finished
}
