package arena

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"refbox/vm/fault"
)

// Fault is a fault that the referee injects into seats while they race: what package
// vm/fault does. When it is injected is one of three: AtMS; WaitMS after the milestone
// After has passed in the seat; or a moment within WindowMS that is drawn from the
// heat's secret seed, the same for every seat, counted from the start or, with After,
// from that milestone's passing.
type Fault struct {
	ID   string `json:"id"`
	Kind string `json:"kind" enum:"process-kill,service-stop,power-cut,hard-reset,clean-reboot,freeze,link-down,one-way-partition,slow-link,disk-stall,disk-write-error,disk-full,clock-jump,memory-pressure,switchover,bad-write,connection-reset"`
	// Machine is the target; none: the territory's first.
	Machine *string `json:"machine,omitempty"`

	// The parameters of package vm/fault.
	Unit        *string `json:"unit,omitempty"`
	PIDFile     *string `json:"pid_file,omitempty"`
	Procedure   *string `json:"procedure,omitempty"`
	Path        *string `json:"path,omitempty"`
	Port        uint16  `json:"port,omitempty"`
	Link        *string `json:"link,omitempty"`
	Peer        *string `json:"peer,omitempty"`
	DelayMS     uint32  `json:"delay_ms,omitempty"`
	LossPercent uint32  `json:"loss_percent,omitempty"`
	AheadMS     uint64  `json:"ahead_ms,omitempty"` // how far the clock jumps forward
	BackMS      uint64  `json:"back_ms,omitempty"`  // or back
	MiB         uint32  `json:"mib,omitempty"`

	AtMS     *uint64  `json:"at_ms,omitempty"`
	After    *string  `json:"after,omitempty"`
	WaitMS   *uint64  `json:"wait_ms,omitempty"`
	WindowMS []uint64 `json:"window_ms,omitempty" default:"[]"` // from and to

	// ForMS is how long it lasts once it was confirmed; a kind that does not last has
	// none.
	ForMS uint64 `json:"for_ms,omitempty"`
	// Seats are those that get it: all, or one that is drawn from the secret seed.
	Seats string `json:"seats" default:"all" enum:"all,one"`
	// Proves are milestones that are evaluated only once the fault was confirmed in the
	// seat: where it does not bite they are void.
	Proves []string `json:"proves,omitempty" default:"[]"`
	Reason *string  `json:"reason,omitempty"` // for the log
}

// Faults for all seats and for one.
const (
	AllSeats = "all"
	OneSeat  = "one"
)

// Spec is the fault as it is injected into a territory, whose machines are in order.
func (f Fault) Spec(machines []string) fault.Fault {
	s := fault.Fault{Kind: fault.Kind(f.Kind), Port: int(f.Port), DelayMS: int(f.DelayMS), LossPercent: int(f.LossPercent), MiB: int(f.MiB),
		JumpMS: int64(min(f.AheadMS, 1<<60)) - int64(min(f.BackMS, 1<<60))}
	for to, from := range map[*string]*string{&s.Machine: f.Machine, &s.Unit: f.Unit, &s.Link: f.Link, &s.Peer: f.Peer,
		&s.PIDFile: f.PIDFile, &s.Procedure: f.Procedure, &s.Path: f.Path} {
		if from != nil {
			*to = *from
		}
	}
	if f.Machine == nil && len(machines) > 0 {
		s.Machine = machines[0]
	}
	return s
}

// Draw draws a number in [from, to] that follows from a secret and the names.
type Draw func(from, to uint64, names ...string) uint64

// Moment is when a fault is due, in ms from the start, or from the passing of After.
func (f Fault) Moment(draw Draw) uint64 {
	switch {
	case len(f.WindowMS) == 2:
		return draw(f.WindowMS[0], f.WindowMS[1], "fault", f.ID, "moment")
	case f.AtMS != nil:
		return *f.AtMS
	case f.WaitMS != nil:
		return *f.WaitMS
	}
	return 0
}

// Hit are the territories that get a fault.
func (m *Manifest) Hit(f Fault, draw Draw) []string {
	var all []string
	for _, t := range m.Territories {
		all = append(all, t.ID)
	}
	if f.Seats != OneSeat || len(all) == 0 {
		return all
	}
	i := draw(0, uint64(len(all)-1), "fault", f.ID, "seat")
	return all[i : i+1]
}

// Rests are the ids of the faults that a milestone rests on.
func (m *Manifest) Rests(milestone string) (ids []string) {
	for _, f := range m.Faults {
		if slices.Contains(f.Proves, milestone) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// faults checks the schedule.
func (c *checker) faults() {
	m := c.m
	c.failIf(len(m.Faults) > 64, "faults", "must be at most 64")
	c.failIf(len(m.Faults) > 0 && m.Build == nil, "faults", "are for a build race: a conquest has no referee's faults")
	seen := map[string]bool{}
	for i, f := range m.Faults {
		at := fmt.Sprintf("faults[%d]", i)
		c.id(at+".id", f.ID, seen)
		c.moment(at, f)
		kind := fault.Kind(f.Kind)
		c.failIf(f.ForMS > 0 && !kind.Lasts(), at+".for_ms", "a %s does not last: it has happened at once", kind)
		c.failIf(f.ForMS > m.Rules.DurationSeconds*1000 && m.Rules.DurationSeconds <= maxDurationSeconds, at+".for_ms", "is longer than the heat")
		c.failIf(f.AheadMS > 0 && f.BackMS > 0, at+".back_ms", "the clock jumps ahead or back, not both")
		c.proved(at, f)
		reported := map[string]bool{}
		for _, t := range m.Territories {
			for _, p := range c.target(f, t) {
				if line := p[0] + p[1]; !reported[line] {
					reported[line] = true
					c.fail(at+p[0], "%s", p[1])
				}
			}
		}
	}
}

// moment checks when a fault is due.
func (c *checker) moment(at string, f Fault) {
	limit := min(c.m.Rules.DurationSeconds, maxDurationSeconds) * 1000
	late := func(path string, ms uint64) {
		c.failIf(ms >= limit && limit > 0, at+path, "the heat is over by then: it takes %d ms", limit)
	}
	switch {
	case f.AtMS != nil && (f.After != nil || f.WaitMS != nil || len(f.WindowMS) > 0):
		c.fail(at+".at_ms", "a time of its own excludes after, wait_ms and window_ms")
	case f.AtMS == nil && f.After == nil && len(f.WindowMS) == 0:
		c.fail(at, "when? give at_ms, or after = \"a milestone\" and perhaps wait_ms, or window_ms = [from, to]")
	case f.WaitMS != nil && f.After == nil:
		c.fail(at+".wait_ms", "counts from a milestone's passing: after = \"a milestone\" is missing")
	case f.WaitMS != nil && len(f.WindowMS) > 0:
		c.fail(at+".wait_ms", "is drawn where there is a window_ms: give one of them")
	}
	for path, ms := range map[string]*uint64{".at_ms": f.AtMS, ".wait_ms": f.WaitMS} {
		if ms != nil {
			late(path, *ms)
		}
	}
	if n := len(f.WindowMS); n > 0 {
		c.failIf(n != 2 || f.WindowMS[0] >= f.WindowMS[n-1], at+".window_ms", "must be [from, to], in ms, from being the less")
		late(".window_ms", f.WindowMS[n-1])
	}
	if f.After != nil {
		_, ok := c.m.Milestone(*f.After)
		c.failIf(!ok, at+".after", "no milestone is called %s", quote(*f.After))
	}
}

// proved checks the milestones that rest on a fault.
func (c *checker) proved(at string, f Fault) {
	c.failIf(len(f.Proves) > 0 && f.Seats == OneSeat, at+".proves", "the other seats never get the fault, so they could not pass it: seats must be \"all\"")
	below := map[string]bool{}
	if f.After != nil {
		below = c.m.DependsOn(*f.After)
		below[*f.After] = true
	}
	for j, id := range f.Proves {
		_, ok := c.m.Milestone(id)
		c.failIf(!ok, at+".proves", "no milestone is called %s", quote(id))
		c.failIf(slices.Contains(f.Proves[:j], id), at+".proves", "names %s twice", quote(id))
		if ok && below[id] {
			c.fail(at+".proves", "%s is passed before the fault comes: it comes after %s", quote(id), quote(*f.After))
		}
	}
}

// target checks a fault against one territory: pairs of a key and what is wrong.
func (c *checker) target(f Fault, t Territory) (wrong [][2]string) {
	machines, err := c.m.machines(t)
	if err != nil {
		return nil // said already
	}
	var names []string
	for _, mc := range machines {
		names = append(names, mc.Name)
	}
	say := func(key, format string, args ...any) {
		wrong = append(wrong, [2]string{key, fmt.Sprintf(format, args...)})
	}
	s := f.Spec(names)
	var bad *fault.Param
	switch err := s.Check(); {
	case errors.As(err, &bad):
		key := "." + bad.Name
		if bad.Name == "jump_ms" {
			key = ".ahead_ms"
			if f.BackMS > 0 {
				key = ".back_ms"
			}
		}
		if bad.Want == "" {
			say(key, "a %s has none", f.Kind)
		} else {
			say(key, "want %s", bad.Want)
		}
	case err != nil:
		say(".kind", "%v", err)
	}
	i := slices.Index(names, s.Machine)
	if i < 0 {
		say(".machine", "territory %s has no machine %s: it has %s", t.ID, quote(s.Machine), strings.Join(names, ", "))
		return wrong
	}
	if f.Port != 0 {
		known := func(i int) bool {
			return i == 0 && f.Port == t.Service.Port || slices.Contains(machines[i].Forwards, f.Port) || c.m.Guest != nil && slices.Contains(c.m.Guest.Forwards, f.Port)
		}
		asked := 0
		for i := range machines {
			if known(i) {
				asked++
			}
		}
		switch {
		case f.Path != nil && asked < 2:
			say(".port", "%d is forwarded from %d machines of territory %s: the witness asks two or more", f.Port, asked, t.ID)
		case f.Path == nil && !known(i):
			say(".port", "%d is not forwarded from machine %s of territory %s", f.Port, s.Machine, t.ID)
		}
	}
	if mem := machines[i].Resources.MemoryMiB; uint64(f.MiB) >= mem {
		say(".mib", "machine %s of territory %s has %d MiB", s.Machine, t.ID, mem)
	}
	if f.Link != nil {
		l := slices.IndexFunc(t.Links, func(l PrivateLink) bool { return l.Name == *f.Link })
		if l < 0 {
			say(".link", "territory %s has no link %s", t.ID, quote(*f.Link))
			return wrong
		}
		for key, end := range map[string]string{".machine": s.Machine, ".peer": s.Peer} {
			if end != "" && !slices.Contains(t.Links[l].Ends, end) {
				say(key, "%s is no end of link %s in territory %s", quote(end), quote(*f.Link), t.ID)
			}
		}
	}
	return wrong
}
