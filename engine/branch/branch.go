package branch

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/recording"
	"refbox/engine/referee"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Point is a saved state of a recorded heat from which another may start.
type Point struct {
	Origin recording.MatchBranch
	State  State
	Disks  string // of vm.Start.Saved
	Secret probe.Secret
	From   map[string]referee.Inherited // by milestone
	Passed []string                     // of them, in the order in which they passed
	Hashes map[string]string            // of the package, as match.json has them
	SHA256 string                       // of its manifest
}

// errNone is in errors that say why there is nothing to branch from.
var errNone = errors.New("nothing to branch from")

// At is the latest state of a seat among the first n events that is still in the store;
// "" is the heat's only seat. The error, if there is none, says exactly why.
func (s Store) At(rec *recording.Recording, seat string, n int) (Point, error) {
	none := func(format string, a ...any) (Point, error) {
		return Point{}, fmt.Errorf("%w: %s", errNone, fmt.Sprintf(format, a...))
	}
	m, w := rec.Match(), rec.World(n)
	if seats := w.Seats(); seat == "" && len(seats) == 1 {
		seat = seats[0].ID
	}
	who := w.Seat(seat)
	switch {
	case !m.Ours():
		return none("refbox did not record %s", rec.Name())
	case who == nil:
		var ids []string
		for _, x := range rec.World(rec.Len()).Seats() {
			ids = append(ids, x.ID)
		}
		return none("%s has no seat %q by then; its seats are %s", rec.Name(), text.Line(seat), strings.Join(ids, ", "))
	case who.Conquest():
		return none("a conquest has no milestones")
	case rec.World(rec.Len()).Seat(seat).States.Len() == 0:
		return none("no state of %s was saved in %s: states are saved by refbox run and play, of heats on this computer", seat, rec.Name())
	case who.States.Len() == 0:
		first := rec.World(rec.Len()).Seat(seat).States.At(0)
		return none("no state of %s was saved by then; the first is from %s, at %.1fs", seat, first.Milestone, float64(first.MS)/1000)
	case m.End == nil:
		return none("%s has not ended properly, so its secret values are not known", rec.Name())
	}
	seed, err := hex.DecodeString(m.End.Seed)
	var secret probe.Secret
	if err != nil || len(seed) != len(secret) {
		return none("the secret seed of %s is not in its match.json", rec.Name())
	}
	copy(secret[:], seed)
	var lost error
	for i := who.States.Len() - 1; i >= 0; i-- {
		at := who.States.At(i)
		st, disks, err := s.Find(at.State)
		if err == nil && (st.SeedSHA256 != m.SeedSHA256 || st.Territory != seat || st.Milestone != at.Milestone) {
			err = ErrGone // another heat's of the same name
		}
		if err != nil {
			if lost == nil {
				lost = err
			}
			continue
		}
		p := Point{State: st, Disks: disks, Secret: secret, Hashes: m.Hashes, SHA256: m.ManifestSHA256,
			Origin: recording.MatchBranch{Heat: rec.Name(), LogHead: m.End.LogHead, Territory: seat, Milestone: at.Milestone,
				Event: at.Sequence, AtMS: at.MS, State: at.State}}
		return p, p.inherit(rec, at.Index+1)
	}
	last, _ := who.States.Last()
	return Point{}, fmt.Errorf("%w: the state that was saved after %s is not here: %w", errNone, last.Milestone, lost)
}

// inherit takes over what the seat had reached in the first n events.
func (p *Point) inherit(rec *recording.Recording, n int) error {
	p.From = map[string]referee.Inherited{}
	tried := func(territory, milestone string, attempt uint64) {
		if territory == p.Origin.Territory {
			p.From[milestone] = referee.Inherited{Attempts: max(p.From[milestone].Attempts, attempt)}
		}
	}
	err := rec.Events(0, n, func(_ int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.MilestoneEvaluationStarted:
			tried(b.Territory, b.Milestone, b.Attempt)
		case event.MilestoneInherited:
			tried(b.Territory, b.Milestone, b.Attempt)
		}
		return true
	})
	if err != nil {
		return err
	}
	seat := rec.World(n).Seat(p.Origin.Territory)
	var passed []world.Milestone
	for _, m := range seat.Milestones {
		if m.Passed {
			p.From[m.ID] = referee.Inherited{Attempts: p.From[m.ID].Attempts, Passed: true, Evidence: m.Evidence}
			passed = append(passed, m)
		}
	}
	slices.SortStableFunc(passed, func(a, b world.Milestone) int { return a.PassedIndex - b.PassedIndex })
	for _, m := range passed {
		p.Passed = append(p.Passed, m.ID)
	}
	return nil
}

// Fits says why a package is not the one of the parent heat, by its manifest's digest and
// its parts (heat.Parts); nil when it is.
func (p Point) Fits(sha string, parts map[string]string) error {
	var changed []string
	if sha != p.SHA256 {
		changed = append(changed, "its manifest")
	}
	for _, part := range []string{"guest", "verifiers", "CONTRACT.md", "instructions", "image", "engine"} {
		if parts[part] != p.Hashes[part] {
			changed = append(changed, part)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: arena %s has changed since %s: %s", errNone, p.State.Arena, p.Origin.Heat, strings.Join(changed, ", "))
}
