package recording

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"refbox/engine/event"
	"refbox/engine/world"
)

// What an agent's harness tells of its own run, in the reference's form
// (recordings.md 6.5), is read for two questions: is it of this heat at all
// (10.1), and when did it happen on the heat's clock (6.5). Both are answered by
// the usage that the log charged, which harness and controller both saw.

// told is one transcript.
type told struct {
	agent, territory string
	file             string
	sha              string
	torn             error // it is damaged, or cannot be read at all: then the rest is zero
	tornAt           int64
	odd              bool   // a document, but none that tells usage: nothing can be said of it
	total            tokens // of all rounds
	partial          bool   // total may lack some of them
	rounds           []round
	calls            []call
	lastsMS          uint64 // total_duration_ms
	verdict          verdict
}

// tokens are input and output as they were counted up to some point.
type tokens struct{ in, out uint64 }

func (t tokens) sum() uint64 { return t.in + t.out }

// round is a model's answer: when it was there, and what was used by then.
type round struct {
	endMS uint64
	used  tokens
}

// call is a tool call on the transcript's own clock.
type call struct {
	id, name        string
	input           []byte // while it is read
	command         string // clipped
	output          string // clipped; a string as it is, other values as JSON
	bytes           uint64 // of the whole output
	failed          bool
	startMS, tookMS uint64
}

// verdict says whether a transcript is of the heat that it lies with.
type verdict int

const (
	unverified verdict = iota // nothing speaks for or against it
	own
	foreign
)

// checkpoint is what the log had charged an agent at some instant.
type checkpoint struct {
	ms    uint64
	used  tokens
	fresh bool // read while the heat's clock went on; in the drain it stands
}

// within says that everything a live copy tells is in the final file too.
func (t *told) within(final *told) bool {
	if final.torn != nil || final.odd || len(t.calls) > len(final.calls) || len(t.calls) == 0 {
		return false
	}
	type key struct{ id, name string }
	has := map[key]bool{}
	for _, c := range final.calls {
		has[key{c.id, c.name}] = true
	}
	for _, c := range t.calls {
		if !has[key{c.id, c.name}] {
			return false
		}
	}
	return true
}

// judge says whether a transcript is of the heat: its usage is what the log
// charged at the end or at some checkpoint, or it is the beginning of the final
// file. final is nil for the final file itself.
func (t *told) judge(charged []checkpoint, final *told) verdict {
	switch {
	case t.odd || t.total.sum() == 0:
		return unverified
	case final != nil && t.within(final):
		return final.verdict
	case len(charged) == 0 || charged[len(charged)-1].used.sum() == 0:
		if final != nil && final.torn == nil && !final.odd && final.verdict != foreign {
			return foreign
		}
		return unverified
	case t.total == charged[len(charged)-1].used, len(t.meets(charged)) > 0:
		return own
	case t.partial:
		return unverified
	}
	return foreign
}

// meeting is a checkpoint that charged exactly what was used after a round.
type meeting struct {
	checkpoint
	endMS uint64 // of the round
}

func (t *told) meets(charged []checkpoint) []meeting {
	ends := map[tokens]uint64{}
	for _, r := range t.rounds {
		if _, ok := ends[r.used]; !ok && r.used.sum() > 0 {
			ends[r.used] = r.endMS
		}
	}
	var out []meeting
	for _, c := range charged {
		if ms, ok := ends[c.used]; ok {
			out = append(out, meeting{c, ms})
		}
	}
	return out
}

// testimony is all that transcripts tell of a heat.
type testimony struct {
	charged map[string][]checkpoint
	ended   map[string]uint64 // agents that ended while the clock went on
	files   []told            // by agent, the final file first
}

// listen reads the transcripts of all agents, and the usage charged in the log.
// What it found is kept while the log does not grow.
func (r *Recording) listen(ctx context.Context) (*testimony, error) {
	n := r.Len()
	r.mu.Lock()
	kept := r.testimony
	if kept != nil && r.testimonyAt == n && !r.live {
		r.mu.Unlock()
		return kept, nil
	}
	r.mu.Unlock()
	w := r.World(n)
	x := &testimony{charged: map[string][]checkpoint{}, ended: map[string]uint64{}}
	var found []told
	for _, a := range w.Agents() {
		for _, name := range []string{"transcript.json", "transcript.live.json"} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if t, ok := r.hear(w, a, name); ok {
				found = append(found, t)
			}
		}
	}
	if len(found) > 0 {
		if err := x.charge(ctx, r, n); err != nil {
			return nil, err
		}
	}
	for i := range found {
		t := &found[i]
		var final *told
		if i > 0 && found[i-1].agent == t.agent {
			final = &found[i-1]
		}
		t.verdict = t.judge(x.charged[t.agent], final)
	}
	x.files = found
	r.mu.Lock()
	r.testimony, r.testimonyAt = x, n
	r.mu.Unlock()
	return x, nil
}

// hear reads one transcript where the reference puts it: ours are of many forms,
// and their place says whose they are.
func (r *Recording) hear(w *world.World, a *world.Agent, name string) (told, bool) {
	territory := a.Territory
	for _, s := range w.Seats() {
		if territory == "" && s.Agent == a.ID {
			territory = s.ID // the log does not say when the agent was started
		}
	}
	r.mu.Lock()
	file, err := r.artifactPath(w, territory, name)
	r.mu.Unlock()
	if err != nil {
		return told{}, false
	}
	data, err := r.source().read(file, maxTold)
	if errors.Is(err, fs.ErrNotExist) {
		return told{}, false
	}
	t := told{torn: err}
	if err == nil {
		t = readTold(data)
	}
	t.agent, t.territory, t.file = a.ID, territory, file
	return t, true
}

// charge reads what the log charged, and which agents ended while the clock went
// on.
func (x *testimony) charge(ctx context.Context, r *Recording, n int) error {
	used := map[string]tokens{}
	draining := false
	err := r.Events(0, n, func(i int, e event.Event) bool {
		ended := func(agent string) {
			if _, known := x.ended[agent]; !known && !draining {
				x.ended[agent] = e.ElapsedMS
			}
		}
		switch b := e.Body.(type) {
		case event.PostMatchDrainStarted:
			draining = true
		case event.AgentFinished:
			ended(b.Agent)
		case event.AgentInterrupted:
			ended(b.Agent)
		case event.UsageCharged:
			u := used[b.Agent]
			if b.InputTokens != nil {
				u.in += min(*b.InputTokens, maxMS)
			}
			if b.OutputTokens != nil {
				u.out += min(*b.OutputTokens, maxMS)
			}
			used[b.Agent] = u
			if list := x.charged[b.Agent]; len(list) < maxCalls {
				x.charged[b.Agent] = append(list, checkpoint{e.ElapsedMS, u, !draining})
			} else {
				list[len(list)-1] = checkpoint{e.ElapsedMS, u, !draining}
			}
		}
		return i%4096 != 0 || ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// transcripts adds what is wrong with the transcripts.
func (v *verification) transcripts(ctx context.Context) error {
	if v.match.Ours() {
		return nil // they come through the referee, and are of many forms
	}
	x, err := v.r.listen(ctx)
	if err != nil {
		return err
	}
	for _, t := range x.files {
		var charged tokens
		if list := x.charged[t.agent]; len(list) > 0 {
			charged = list[len(list)-1].used
		}
		if t.torn != nil {
			v.add(Note, "torn_transcript", t.file, 0, t.tornAt, "%s", t.damage())
		}
		switch {
		case t.verdict == foreign:
			v.add(Note, "foreign_transcript", t.file, 0, 0, "belongs to another match: it tells %d + %d tokens, the log charged %s %d + %d, and they never meet",
				t.total.in, t.total.out, t.agent, charged.in, charged.out)
			v.analysisOf(t)
		case t.verdict == unverified && !t.odd && t.total.sum() > 0 && charged.sum() == 0:
			v.add(Note, "usage_missing", t.file, 0, 0, "tells %d + %d tokens, the log charged %s none: nothing shows that it is of this match", t.total.in, t.total.out, t.agent)
		}
	}
	return nil
}

// analysisOf adds that the agent's analysis was made of a foreign transcript.
func (v *verification) analysisOf(t told) {
	data, file, err := v.r.Artifact(t.territory, "analysis.json")
	if err != nil {
		return
	}
	var a struct {
		Source string `json:"source_sha256"`
	}
	if json.Unmarshal(data, &a) == nil && a.Source == t.sha {
		v.add(Note, "foreign_analysis", file, 0, 0, "describes another match: it was made of %s", t.file)
	}
}
