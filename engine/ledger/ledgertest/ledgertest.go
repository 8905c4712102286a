// Package ledgertest writes recordings of heats that never ran, for tests of what
// is concluded from recordings.
package ledgertest

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
)

// Story is a heat with one seat and one fault. The zero Story is a sound heat in
// which a process is killed, seen so from outside, and service returns after 4 s.
type Story struct {
	Arena     string           // "lab"
	Exercises []arena.Exercise // by default one: whole, real, of host-loss by power-cut
	Driver    string           // "qemu"
	Image     string
	Started   time.Time

	Fault, Target, Author string
	Receipt               string // JSON
	NoFault               bool
	Unconfirmed           bool
	Again                 bool // the fault comes a second time

	BeforeS uint64 // seconds of service before the fault
	OutMS   uint64 // how long writes are refused
	AfterS  uint64 // seconds of service after it
	Sick    bool   // writes are refused just before the fault

	Lost, LossMS, Unread, Phantoms uint64
	NoResult                       bool
	Miscount                       bool

	Brief    string
	Pause    bool
	Entered  bool     // the player does something in the machine before the fault
	Beaten   bool     // an attack is not withstood after the fault
	Pass     []string // milestones that pass once service is back
	Fail     []string // milestones that fail for good after the fault
	Late     []string // milestones of which an attempt fails after the fault, and another may pass
	First    []string // milestones that pass before the fault
	Unsealed bool
}

// Exercise is the declaration that a Story has by default.
func Exercise() arena.Exercise {
	return arena.Exercise{Scenario: "host-loss", Fault: "power-cut", Coverage: arena.WholeDomain, Machinery: arena.RealMachinery}
}

const interval = 500

// Heat writes the story into dir.
func Heat(t testing.TB, dir string, s Story) {
	t.Helper()
	s.Arena, s.Driver, s.Image = cmp.Or(s.Arena, "lab"), cmp.Or(s.Driver, "qemu"), cmp.Or(s.Image, "7c3a9dc1")
	if s.Exercises == nil {
		s.Exercises = []arena.Exercise{Exercise()}
	}
	if s.Fault == "" {
		s.Fault = s.Exercises[0].Fault
	}
	s.Target, s.Author = cmp.Or(s.Target, "host"), cmp.Or(s.Author, "arena")
	s.Receipt = cmp.Or(s.Receipt, `{"step":"inject","confirmed":true,"witness":"the host's process table","saw":"the process is gone","took_ms":150}`)
	s.BeforeS, s.AfterS = cmp.Or(s.BeforeS, 20), cmp.Or(s.AfterS, 20)
	if s.OutMS == 0 {
		s.OutMS = 4000
	}
	if s.Started.IsZero() {
		s.Started = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	}
	m := &arena.Manifest{SchemaVersion: 1, Arena: arena.Arena{ID: s.Arena, DisplayName: "Lab", Mode: arena.BuildRace},
		Canary: &arena.Canary{Path: "/records/{id}", IntervalMS: interval}, Exercises: s.Exercises,
		Territories: []arena.Territory{{ID: "one"}}}
	w, err := recording.Create(dir, recording.Start{Seed: []byte(dir), Manifest: m, Match: recording.Match{
		ControllerVersion: "test", ArenaID: s.Arena, ManifestSHA256: "a0" + s.Arena, StartedAt: &s.Started,
		Machines: map[string]string{"image": s.Image, "accel": "tcg"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := &player{t: t, w: w, s: s}
	if err := w.Brief("one", cmp.Or(s.Brief, "Keep the service up.")); err != nil {
		t.Fatal(err)
	}
	p.say(0, event.HeatPrepared{Driver: s.Driver, Start: "cold", Seats: []event.PreparedSeat{{Territory: "one", Machines: []string{"host"}, Agent: "right", Adapter: "script:right"}}},
		event.MatchStateChanged{From: "preparing", To: "running"},
		event.TerritoryRegistered{Territory: "one", Class: "c", Agent: "right"})
	p.play()
	if s.Unsealed {
		return
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

type player struct {
	t   testing.TB
	w   *recording.Writer
	s   Story
	now uint64
	sum event.CanarySample
}

func (p *player) say(ms uint64, bodies ...event.Body) {
	p.t.Helper()
	for _, b := range bodies {
		if _, err := p.w.Append(ms, b); err != nil {
			p.t.Fatal(err)
		}
	}
}

// write is one write of the client, every half second.
func (p *player) write(outcome string) {
	since := p.now
	switch outcome {
	case "acknowledged":
		p.sum.Acknowledged++
	default:
		p.sum.Failed++
	}
	b := p.sum
	b.Territory, b.Outcome, b.Write, b.Writes, b.SinceMS, b.LatencyMS = "one", outcome, b.Acknowledged+b.Failed, 1, &since, 20
	p.say(p.now+20, b)
	p.now += interval
}

func (p *player) serve(until uint64) {
	for p.now < until {
		p.write("acknowledged")
	}
}

func (p *player) late(ms uint64) {
	for _, id := range p.s.Late {
		p.say(ms, event.MilestoneFailed{Territory: "one", Milestone: id, Category: "contract", Detail: "not so within 1m40s", Retryable: true, Attempt: 1})
	}
}

func (p *player) milestones(ids []string, ms uint64, failed bool) {
	for _, id := range ids {
		if failed {
			p.say(ms, event.MilestoneFailed{Territory: "one", Milestone: id, Category: "contract", Detail: "two writers", Attempt: 1})
			continue
		}
		name, sum, err := p.w.Evidence("one", id, 1, map[string]string{"milestone": id})
		if err != nil {
			p.t.Fatal(err)
		}
		p.say(ms, event.MilestonePassed{Territory: "one", Milestone: id, Points: 1, Evidence: json.RawMessage("{}"), Attempt: 1, Record: name, RecordSHA: sum})
	}
}

func (p *player) play() {
	s := p.s
	broken := slices.ContainsFunc(s.Exercises, func(x arena.Exercise) bool { return x.Fault == arena.StartsBroken })
	if broken {
		p.milestones([]string{"reads-restored"}, 900, true)
		for p.now < 5000 {
			p.write("failed")
		}
	}
	p.milestones(s.First, p.now, false)
	p.serve(s.BeforeS * 1000)
	if s.Sick {
		p.write("failed")
	}
	faults := 1
	switch {
	case s.NoFault:
		faults = 0
	case s.Again:
		faults = 2
	}
	for range faults {
		p.strike()
		p.serve(p.now + s.AfterS*1000)
	}
	end := p.now
	p.say(end, event.MatchStateChanged{From: "running", To: "finished"}, event.MatchFinished{Reason: "the schedule is over"},
		event.PostMatchDrainStarted{TimeoutMS: 1000})
	if !s.NoResult {
		r := event.CanaryResult{Territory: "one", Writes: p.sum.Acknowledged + p.sum.Failed, Acknowledged: p.sum.Acknowledged, Failed: p.sum.Failed,
			Lost: s.Lost, LossMS: s.LossMS, Unread: s.Unread, Phantoms: s.Phantoms, Outages: 1, OutageMS: s.OutMS, LongestMS: s.OutMS}
		if s.Miscount {
			r.Acknowledged, r.Writes = r.Acknowledged-1, r.Writes-1
		}
		p.say(end, r)
	}
	p.say(end, event.PostMatchDrainFinished{})
}

// strike is the fault, from its injection to the return of service.
func (p *player) strike() {
	s, at := p.s, p.now
	if s.Entered {
		p.say(at, event.AgentActionStarted{Territory: "one", Agent: "right", Action: 1, Channel: "exec", Machine: "host", Command: "ls"})
	}
	p.say(at, event.FaultInjected{Territory: "one", Fault: s.Fault, Target: s.Target, Params: json.RawMessage(`{}`), Author: s.Author, Reason: "schedule"})
	switch {
	case s.Unconfirmed:
		p.say(at+100, event.FaultFailed{Territory: "one", Fault: s.Fault, Target: s.Target, Stage: "confirm", Detail: "the witness saw nothing"})
	default:
		p.say(at+150, event.FaultConfirmed{Territory: "one", Fault: s.Fault, Target: s.Target, Receipt: json.RawMessage(s.Receipt)})
	}
	p.now = at + 200
	for p.now < at+s.OutMS {
		p.write("failed")
	}
	if s.Pause {
		p.say(p.now, event.HeatPaused{Author: "operator", Reason: "a look"}, event.HeatResumed{Author: "operator", PausedMS: 3000})
	}
	p.milestones(s.Fail, p.now, true)
	p.late(p.now)
	if s.AfterS > 1 {
		p.write("acknowledged")
		p.milestones(s.Pass, p.now, false)
	}
	if s.Beaten {
		p.say(p.now, event.AttackFinished{Territory: "one", Milestone: "fenced", Attack: "write to the old one", Held: false, Detail: "acknowledged", Undone: true})
	}
	if !s.Unconfirmed {
		p.say(p.now, event.FaultCleared{Territory: "one", Fault: s.Fault, Target: s.Target, Receipt: json.RawMessage(s.Receipt)})
	}
}
