// Package review re-referees a recorded heat: it derives each verdict anew from
// the probe records that were kept behind it, and compares what follows with what
// was ruled.
//
// It hides the search for verifiers, the replay of records (engine/probe) and the
// order in which the referee asks. It promises: nothing is written; a verdict that
// the records do not settle is never called one that follows, nor one that does
// not, and it is said what is missing; the same recording and verifiers give the
// same report.
//
// What rests on a person's ruling is listed as that. What rests on the clock (an
// attempt that was cut off, an instant) follows when the records end where the
// attempt did.
package review

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Status is what came of re-deriving a verdict.
type Status string

// Statuses.
const (
	Follows      Status = "follows"
	Differs      Status = "differs"      // something else follows
	Insufficient Status = "insufficient" // the records don't settle it
	Ruled        Status = "ruled"        // a person decided
)

// Verdict is one verdict of the log, and what follows from its records.
type Verdict struct {
	Event     int    `json:"event"` // its number in the log, from 0
	MS        uint64 `json:"elapsed_ms"`
	Territory string `json:"territory,omitempty"`
	Kind      string `json:"kind"` // milestone, attack, revocation, fault, durable, outcome
	Milestone string `json:"milestone,omitempty"`
	Attack    string `json:"attack,omitempty"`
	Attempt   uint64 `json:"attempt,omitempty"`
	Record    string `json:"record,omitempty"`
	// Repeats counts equal failures after this one, which point to its records.
	Repeats int      `json:"repeats,omitempty"`
	Status  Status   `json:"status"`
	Ruled   Finding  `json:"ruled"`
	Derived *Finding `json:"derived,omitempty"` // nil where nothing could be derived
	Why     string   `json:"why,omitempty"`     // of a status other than follows
	// Lack is what keeps a verdict from being settled, in the same words for all that lack
	// the same; Why says it of this one.
	Lack string `json:"lack,omitempty"`
	// SameVerifier: the file that ruled is the one that was run.
	SameVerifier bool `json:"same_verifier"`
}

// Finding is what a verdict says.
type Finding struct {
	Verdict  string          `json:"verdict"` // passed, failed, withstood, revoked, holds, durable, a winner
	Category string          `json:"category,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// Report is the review of one heat.
type Report struct {
	Arena        string    `json:"arena"`
	Verifiers    string    `json:"verifiers"` // where they are from
	Follow       int       `json:"follow"`
	Differ       int       `json:"differ"`
	Insufficient int       `json:"insufficient"`
	Ruled        int       `json:"ruled"`
	Verdicts     []Verdict `json:"verdicts"`
}

// Holds says that no verdict was found that does not follow.
func (r Report) Holds() bool { return r.Differ == 0 }

// Heat reviews a recording that was read to its end. Pkg has the verifiers; nil
// when there are none at hand, for the reason that missing gives. Newer says that
// they may be others than those that ruled.
func Heat(ctx context.Context, rec *recording.Recording, pkg *arena.Package, newer bool, missing string) (Report, error) {
	x := &reviewer{ctx: ctx, rec: rec, pkg: pkg, newer: newer, missing: missing, manifest: rec.Manifest(), w: world.New(),
		slow: 1, verifiers: map[string]verifier{}, byRecord: map[string]int{}, begun: map[string]begun{}}
	if m := rec.Match(); m != nil {
		if m.End != nil {
			if seed, err := hex.DecodeString(m.End.Seed); err == nil && len(seed) == len(probe.Secret{}) {
				s := probe.Secret(seed)
				x.secret = &s
			}
		}
		if f, err := strconv.ParseFloat(m.Machines["timeout_factor"], 64); err == nil {
			x.slow = f
		}
	}
	err := rec.Events(0, rec.Len(), func(i int, e event.Event) bool {
		x.event(i, e)
		world.Apply(x.w, e)
		x.last = e.Body
		return ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	r := Report{Arena: x.arenaID(), Verdicts: x.out}
	if r.Verdicts == nil {
		r.Verdicts = []Verdict{}
	}
	switch {
	case pkg == nil:
		r.Verifiers = missing
	case newer:
		r.Verifiers = "the given package"
	default:
		r.Verifiers = "the bundled package"
	}
	for _, v := range r.Verdicts {
		switch v.Status {
		case Follows:
			r.Follow++
		case Differs:
			r.Differ++
		case Insufficient:
			r.Insufficient++
		case Ruled:
			r.Ruled++
		}
	}
	return r, err
}

type reviewer struct {
	ctx       context.Context
	rec       *recording.Recording
	pkg       *arena.Package
	newer     bool
	missing   string
	manifest  *arena.Manifest
	secret    *probe.Secret
	slow      float64
	verifiers map[string]verifier // by milestone

	w        *world.World // before the event
	last     event.Body   // the event before
	begun    map[string]begun
	byRecord map[string]int // in out
	out      []Verdict
}

// begun is an attempt under way.
type begun struct {
	previous map[string]json.RawMessage
	revoked  string // what its restart or reboot was found to have broken
}

type verifier struct {
	probe.Verifier
	err error
}

func (x *reviewer) arenaID() string {
	if x.manifest == nil {
		return ""
	}
	return x.manifest.Arena.ID
}

// milestone is a milestone's rules and its verifier.
func (x *reviewer) milestone(id string) (*arena.Milestone, probe.Verifier, error) {
	m := x.manifest
	if x.pkg != nil {
		m = x.pkg.Manifest
	}
	if m == nil || m.Build == nil {
		return nil, nil, errors.New("the recording has no manifest")
	}
	i := slices.IndexFunc(m.Build.Milestones, func(s arena.Milestone) bool { return s.ID == id })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no milestone %q any more", id)
	}
	if x.pkg == nil {
		return nil, nil, errors.New(x.missing)
	}
	v, ok := x.verifiers[id]
	if !ok {
		v.Verifier, v.err = probe.Load(x.pkg.FS, x.pkg.Verifier(id))
		x.verifiers[id] = v
	}
	return &m.Build.Milestones[i], v.Verifier, v.err
}

// event reviews what one event rules.
func (x *reviewer) event(i int, e event.Event) {
	switch b := e.Body.(type) {
	case event.MilestoneEvaluationStarted:
		x.begun[b.Territory] = begun{previous: x.passed(b.Territory)}
	case event.MilestonePassed:
		v := Verdict{Territory: b.Territory, Kind: "milestone", Milestone: b.Milestone, Attempt: b.Attempt, Record: b.Record,
			Ruled: Finding{Verdict: "passed", Evidence: b.Evidence}}
		if r, ok := x.last.(event.RefereeRuling); ok && r.Ruling == event.RulingUpheld && r.Territory == b.Territory && r.Milestone == b.Milestone {
			v.Status, v.Why = Ruled, "upheld by "+r.Author+": "+r.Reason
			x.add(i, e, v)
			return
		}
		x.add(i, e, x.review(v, b.RecordSHA, x.main))
	case event.MilestoneFailed:
		v := Verdict{Territory: b.Territory, Kind: "milestone", Milestone: b.Milestone, Attempt: b.Attempt, Record: b.Record,
			Ruled: Finding{Verdict: "failed", Category: b.Category, Reason: b.Detail}}
		if at, ok := x.byRecord[b.Record]; ok && b.Record != "" && x.out[at].Ruled.Category == b.Category && x.out[at].Ruled.Reason == b.Detail {
			x.out[at].Repeats++
			return
		}
		x.add(i, e, x.review(v, b.RecordSHA, x.main))
	case event.MilestoneRevoked:
		v := Verdict{Territory: b.Territory, Kind: "revocation", Milestone: b.Milestone, Record: b.Record,
			Ruled: Finding{Verdict: "revoked", Reason: b.Reason}}
		if r, ok := x.last.(event.RefereeRuling); ok && r.Ruling == event.RulingRevoked && r.Territory == b.Territory && r.Milestone == b.Milestone {
			v.Status, v.Why = Ruled, "revoked by "+r.Author+": "+r.Reason
			x.add(i, e, v)
			return
		}
		if s := x.begun[b.Territory]; s.revoked == "" {
			s.revoked = b.Milestone + " no longer holds: " + b.Reason
			x.begun[b.Territory] = s
		}
		x.add(i, e, x.review(v, b.RecordSHA, x.recheck))
	case event.AttackFinished:
		v := Verdict{Territory: b.Territory, Kind: "attack", Milestone: b.Milestone, Attack: b.Attack, Record: b.Record,
			Ruled: Finding{Verdict: "withstood", Reason: b.Detail}}
		if !b.Held || !b.Undone {
			v.Ruled.Verdict = "failed"
		}
		x.add(i, e, x.review(v, b.RecordSHA, x.attack))
	case event.DurableDeploymentCompleted:
		x.durable(i, e, b)
	case event.FaultInjected:
		if b.Schedule != "" {
			x.scheduled(i, e, b)
		}
	case event.MatchFinished:
		x.outcome(i, e, b)
	}
}

func (x *reviewer) add(i int, e event.Event, v Verdict) {
	v.Event, v.MS = i, e.ElapsedMS
	if v.Record != "" {
		if _, ok := x.byRecord[v.Record]; !ok {
			x.byRecord[v.Record] = len(x.out)
		}
	}
	x.out = append(x.out, v)
}

// passed is what verifiers may know of the seat's milestones.
func (x *reviewer) passed(territory string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if s := x.w.Seat(territory); s != nil {
		for _, m := range s.Milestones {
			if m.Passed {
				out[m.ID] = m.Evidence
			}
		}
	}
	return out
}

// evidence reads the records behind a verdict.
func (x *reviewer) evidence(record, sha string) (probe.Evidence, error) {
	var e probe.Evidence
	if record == "" {
		return e, errors.New("the log names no probe records")
	}
	data, err := x.rec.File(record)
	if err != nil {
		return e, fmt.Errorf("its probe records cannot be read: %w", err)
	}
	if sum := sha256.Sum256(data); sha != "" && hex.EncodeToString(sum[:]) != sha {
		return e, errAltered
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("its probe records are no evidence: %w", err)
	}
	return e, nil
}

var errAltered = errors.New("its probe records are not those that the log has the digest of")

// review derives one verdict anew with derive, and compares.
func (x *reviewer) review(v Verdict, sha string, derive func(v Verdict, e probe.Evidence) (Finding, error)) Verdict {
	unsettled := func(err error) Verdict {
		v.Status, v.Why = Insufficient, text.Line(err.Error())
		v.Lack = v.Why
		if lacks := (*probe.Insufficient)(nil); errors.As(err, &lacks) && lacks.Partly {
			v.Lack = "an answer that the verifier read is not in the records whole: they hold the first KiB of each"
		}
		return v
	}
	e, err := x.evidence(v.Record, sha)
	switch {
	case errors.Is(err, errAltered):
		v.Status, v.Why = Differs, err.Error()
		return v
	case err != nil:
		return unsettled(err)
	case x.secret == nil:
		return unsettled(errors.New("the heat's secret seed was not recorded"))
	case e.Dropped > 0:
		return unsettled(fmt.Errorf("the attempt's records are not whole: %s not kept", text.Count(e.Dropped, "record")))
	}
	if kept := keptBy(e); kept.Verdict != v.Ruled.Verdict || v.Kind == "milestone" && kept.Category != v.Ruled.Category || kept.Reason != v.Ruled.Reason && v.Ruled.Reason != "" {
		v.Status, v.Why, v.Derived = Differs, "the log says otherwise than its evidence", &kept
		return v
	}
	_, file, err := x.milestone(v.Milestone)
	if err != nil {
		return unsettled(err)
	}
	v.SameVerifier = file.SHA256() == e.VerifierSHA256
	if !v.SameVerifier && !x.newer {
		return unsettled(fmt.Errorf("%s has changed since it ruled: it was %.12s then and is %.12s now; --arena with a package of that time runs the old one", e.Verifier, e.VerifierSHA256, file.SHA256()))
	}
	got, err := derive(v, e)
	var lacks *probe.Insufficient
	if errors.As(err, &lacks) {
		return unsettled(lacks)
	}
	if err != nil {
		return unsettled(err)
	}
	v.Derived = &got
	if v.Ruled.Category == string(probe.Timeout) && got.Category == v.Ruled.Category {
		got.Reason = v.Ruled.Reason // it is about the clock
	}
	if got.Verdict == v.Ruled.Verdict && (v.Kind != "milestone" || got.Category == v.Ruled.Category) && got.Reason == v.Ruled.Reason &&
		(v.Ruled.Verdict != "passed" || same(got.Evidence, v.Ruled.Evidence)) {
		v.Status = Follows
		return v
	}
	v.Status, v.Why = Differs, "from its records something else follows"
	return v
}

// keptBy is the verdict that an evidence file carries.
func keptBy(e probe.Evidence) Finding {
	return Finding{Verdict: e.Verdict, Category: string(e.Category), Reason: e.Reason, Evidence: e.Evidence}
}

// same compares JSON by what it means.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// replay makes the records of an evidence file answer.
func (x *reviewer) replay(e probe.Evidence) *probe.Replay {
	c := probe.ReplayConfig{Territory: e.Territory, Secret: *x.secret, Slow: x.slow, Records: e.Records, GaveUp: e.Verdict == "failed" || e.Verdict == "revoked"}
	if s := x.w.Seat(e.Territory); s != nil && s.Prepared != nil {
		c.Machines = s.Prepared.Machines
	}
	if x.manifest != nil {
		for _, t := range x.manifest.Territories {
			if t.ID == e.Territory {
				c.ServicePort = int(t.Service.Port)
			}
		}
	}
	return probe.NewReplay(c)
}

// previous is what the attempt under way knew of earlier milestones.
func (x *reviewer) previous(territory string) map[string]json.RawMessage {
	return maps.Clone(x.begun[territory].previous)
}
