package analysis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/engine/world"
)

// Heat is what the agents of a recorded heat did, and how they fought.
type Heat struct {
	Seats  []Seat
	Fought []Fought // in the order of Seats
}

// Seat is one seat of a heat.
type Seat struct {
	Territory string
	Agent     string
	Model     string
	// File is what the actions are taken from, sanitised: the log, where the
	// referee's gateway saw them; a transcript, or only its analysis, where the
	// agent's harness told of them; "" when there is none of these.
	File     string
	Observed bool
	// Trouble says why there are no actions, or what is doubtful about them.
	Trouble string
	// OffsetMS is the heat's clock when the actions' is 0, give or take
	// PlusMinusMS; nil when nobody knows.
	OffsetMS    *int64
	PlusMinusMS int64
	Analysis    Analysis
}

// OfHeat analyses a recording, which it reads to its end. Of one of ours it
// judges the actions that were seen on the wire; of the reference's the
// transcripts, with the reference's own verdicts beside ours where they were
// recorded. Times of the comparison are the heat's.
func OfHeat(ctx context.Context, rec *recording.Recording) (Heat, error) {
	if err := rec.Load(ctx); err != nil {
		return Heat{}, err
	}
	told, err := rec.Activities(ctx)
	if err != nil {
		return Heat{}, err
	}
	w := rec.World(rec.Len())
	seen, spending, err := observed(rec)
	if err != nil {
		return Heat{}, err
	}
	var h Heat
	var seats []Contender
	for _, s := range w.Seats() {
		seat := Seat{Territory: s.ID, Agent: s.Agent}
		agent := w.Agent(s.Agent)
		for _, a := range w.Agents() {
			if agent == nil && a.Territory == s.ID {
				agent, seat.Agent = a, a.ID
			}
		}
		if agent != nil {
			seat.Model = agent.Model
		}
		if actions := seen[s.ID]; len(actions) > 0 || rec.Match().Ours() {
			seat.File, seat.Observed, seat.OffsetMS = "events.jsonl", true, ptr(int64(0))
			seat.Analysis = Analyse(actions)
		} else if err := seat.told(ctx, rec, told[s.ID]); err != nil {
			return Heat{}, err
		}
		seat.Analysis.Agent, seat.Analysis.Territory = seat.Agent, seat.Territory
		if seat.Analysis.Model == "" {
			seat.Analysis.Model = seat.Model
		}
		if agent != nil && agent.TerminalState != nil && seat.Analysis.Outcome == nil {
			seat.Analysis.Outcome = agent.TerminalState
		}
		c := Contender{Seat: s.ID, Analysis: seat.Analysis, OffsetMS: seat.OffsetMS, Spending: spending[seat.Agent]}
		for _, r := range world.Ladder(w, rec.Manifest(), s.ID) {
			m := Milestone{ID: r.ID, Points: int(r.Points)} //nolint:gosec // points of a manifest are small
			if r.Milestone != nil && r.Milestone.Passed {
				m.PassedMS = ptr(int64(r.Milestone.PassedMS)) //nolint:gosec // a heat's clock
			}
			c.Milestones = append(c.Milestones, m)
		}
		if agent != nil && agent.Charges > agent.CostUnknown {
			c.TotalMicroUSD = ptr(int64(agent.CostMicroUSD)) //nolint:gosec // bounded by the fold
		}
		h.Seats = append(h.Seats, seat)
		seats = append(seats, c)
	}
	h.Fought = Compare(seats)
	return h, nil
}

// observed are the actions that the gateway saw, by territory, and what each
// agent had spent when.
func observed(rec *recording.Recording) (actions map[string][]Action, spending map[string][]Spend, err error) {
	type key struct {
		territory string
		action    uint64
	}
	actions, spending = map[string][]Action{}, map[string][]Spend{}
	open := map[key]int{}
	err = rec.Events(0, rec.Len(), func(i int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.AgentActionStarted:
			a := Action{Index: int(b.Action) - 1, Tool: b.Channel, Class: transcript.Shell, Command: b.Command, //nolint:gosec // a number from 1
				StartedMS: int64(rec.MS(i)), Success: true} //nolint:gosec // a heat's clock
			if b.Channel == "sftp" || b.Channel == "forward" {
				a.Class = transcript.Other
			}
			if b.Channel == "shell" && b.Command == "" {
				break // a session; what was typed in it is announced, each for itself
			}
			open[key{b.Territory, b.Action}] = len(actions[b.Territory])
			actions[b.Territory] = append(actions[b.Territory], a)
		case event.AgentActionFinished:
			n, ok := open[key{b.Territory, b.Action}]
			if !ok {
				break
			}
			delete(open, key{b.Territory, b.Action})
			a := &actions[b.Territory][n]
			a.DurationMS, a.Output, a.Success = int64(b.TookMS), b.Output, b.Exit != nil && *b.Exit == 0 //nolint:gosec // a heat's clock
		case event.UsageCharged:
			if b.CostMicroUSD != nil {
				list := spending[b.Agent]
				before := int64(0)
				if len(list) > 0 {
					before = list[len(list)-1].MicroUSD
				}
				spending[b.Agent] = append(list, Spend{int64(rec.MS(i)), before + int64(min(*b.CostMicroUSD, 1<<50))}) //nolint:gosec // bounded
			}
		}
		return true
	})
	return actions, spending, err
}

// told fills in what the seat's transcript tells, or what is left of it.
func (s *Seat) told(ctx context.Context, rec *recording.Recording, act *recording.Activity) error {
	// The reference's own verdicts, by the id and the number of the call.
	verdicts, err := s.verdicts(rec)
	if err != nil {
		return err
	}
	if act != nil && act.Trouble == "" {
		done, err := s.transcript(ctx, rec, act)
		if err != nil {
			return err
		}
		if done {
			if act.Placed {
				s.OffsetMS, s.PlusMinusMS = ptr(int64(act.OffsetMS)), int64(act.PlusMinusMS) //nolint:gosec // a heat's clock
			}
			if act.Unproved {
				s.Trouble = "nothing shows that the transcript is of this heat"
			}
			if verdicts != nil {
				verdicts.into(&s.Analysis)
			}
			return nil
		}
	}
	if act != nil && act.Trouble != "" {
		s.Trouble = act.Trouble
		s.File = act.File
	}
	if verdicts != nil && (act == nil || act.Trouble == "") {
		s.Analysis = Analyse(verdicts.Actions)
		s.Analysis.SourceSHA256, s.Analysis.Model, s.Analysis.Outcome = verdicts.SourceSHA256, verdicts.Model, verdicts.Outcome
		s.Trouble = "only the analysis of the transcript was recorded: commands are cut"
		return nil
	}
	if s.Trouble == "" {
		s.Trouble = "no transcript was recorded"
	}
	return nil
}

func (s *Seat) transcript(ctx context.Context, rec *recording.Recording, act *recording.Activity) (bool, error) {
	blob, file, err := rec.OpenTold(act)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sum := sha256.New()
	if info, err := blob.Stat(); err == nil {
		if _, err := io.Copy(sum, io.NewSectionReader(blob, 0, info.Size())); err != nil {
			return false, errors.Join(fmt.Errorf("%s: %w", act.File, err), blob.Close())
		}
	}
	t, err := transcript.OpenBlob(file, blob)
	if err != nil {
		s.Trouble = err.Error()
		return false, nil
	}
	defer t.Close()
	a, err := Of(ctx, t)
	if err != nil {
		return false, fmt.Errorf("%s: %w", act.File, err)
	}
	a.SourceSHA256 = hex.EncodeToString(sum.Sum(nil))
	s.Analysis, s.File = a, act.File
	return true, nil
}

func (s *Seat) verdicts(rec *recording.Recording) (*Reference, error) {
	b, file, err := rec.Artifact(s.Territory, "analysis.json")
	if err != nil {
		return nil, nil //nolint:nilerr // there is none, or one that cannot be read: ours stands alone
	}
	ref, err := ReadReference(b)
	if err != nil {
		return nil, nil //nolint:nilerr // the same
	}
	s.File = text.Line(file)
	return &ref, nil
}

// into notes the reference's verdicts beside ours.
func (r *Reference) into(a *Analysis) {
	byID := map[string]Kind{}
	byIndex := map[int]*Action{}
	for i := range r.Actions {
		x := &r.Actions[i]
		if x.ID != "" {
			byID[x.ID] = x.ReferenceKind
		}
		byIndex[x.Index] = x
	}
	for i := range a.Steps {
		s := &a.Steps[i]
		if k, ok := byID[s.ID]; ok && s.ID != "" {
			s.ReferenceKind = k
		} else if x := byIndex[s.Index]; x != nil && x.ID == "" && x.StartedMS == s.StartedMS {
			s.ReferenceKind = x.ReferenceKind
		}
	}
}
