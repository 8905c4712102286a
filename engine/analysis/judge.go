package analysis

import (
	"refbox/engine/transcript"
)

// Judge judges the steps of a transcript one after another, as they are read, so
// that a list can show kinds while the rest is still unread. Its verdicts are
// those of Analyse for steps that began in their order. Not safe for concurrent
// use: whoever shows the transcript owns it.
type Judge struct {
	t     *transcript.Transcript
	steps []verdict
	open  []int // judged while they had no result yet
	lanes map[int]*lane
	apart bool // each agent has a machine of its own
	// told are judgements that rest on a script written in another step: they
	// cannot be found again from the step alone.
	told map[int]Judgement
	last transcript.Head // judged last: another one there means another record
}

type verdict struct {
	kind    Kind
	before  bool
	changed bool
	outcome transcript.Outcome
}

// lane is what is known of one machine.
type lane struct {
	mem     memory
	changed bool
}

// maxTold bounds the judgements that are kept whole.
const maxTold = 20_000

// NewJudge judges nothing yet. The transcript stays the caller's.
func NewJudge(t *transcript.Transcript) *Judge {
	j := &Judge{t: t}
	j.reset()
	return j
}

func (j *Judge) reset() {
	j.steps, j.open, j.lanes, j.told, j.last = j.steps[:0], nil, map[int]*lane{}, map[int]Judgement{}, transcript.Head{}
	switch j.t.Info().Format {
	case "heat", "inspect-json", "inspect-eval": // seats and samples; elsewhere agents share a machine
		j.apart = true
	}
}

// Advance judges up to n actions more of the steps that have been read, a
// fraction of a millisecond each, and says whether none is left for now. A record
// that was replaced, and a step whose result has come since, are judged anew.
func (j *Judge) Advance(n int) (done bool) {
	if k := len(j.steps); k > 0 {
		if h := j.t.Head(k - 1); h.Offset != j.last.Offset || h.File != j.last.File || h.Kind != j.last.Kind {
			j.reset()
		}
	}
	for k, i := range j.open {
		if h := j.t.Head(i); h.Outcome != j.steps[i].outcome {
			j.rewind(i)
			j.open = j.open[:k]
			break
		}
	}
	for n > 0 && len(j.steps) < j.t.Len() {
		i := len(j.steps)
		h := j.t.Head(i)
		v := verdict{outcome: h.Outcome}
		if Acts(h) {
			n--
			v = j.judge(i, h)
		}
		j.steps, j.last = append(j.steps, v), h
	}
	return len(j.steps) >= j.t.Len()
}

func (j *Judge) judge(i int, h transcript.Head) verdict {
	l := j.lane(h.Agent)
	v := verdict{outcome: h.Outcome, before: l.changed}
	f, err := j.t.Full(i)
	if err != nil {
		return v
	}
	a, ok := FromStep(f)
	if !ok {
		return v
	}
	l.mem.used = false
	got := l.mem.classify(a, l.changed)
	if l.mem.used && len(j.told) < maxTold {
		j.told[i] = got
	}
	v.kind, v.changed = got.Kind, got.Changed
	l.changed = l.changed || got.Changed
	if h.Outcome == transcript.Unfinished && len(j.open) < 1000 {
		j.open = append(j.open, i)
	}
	return v
}

func (j *Judge) lane(agent int) *lane {
	if !j.apart {
		agent = 0
	}
	l := j.lanes[agent]
	if l == nil {
		l = &lane{}
		j.lanes[agent] = l
	}
	return l
}

// rewind forgets the verdicts from step i on. Scripts that were seen since stay
// known; they are the same when they are seen again.
func (j *Judge) rewind(i int) {
	j.steps = j.steps[:i]
	for k := range j.told {
		if k >= i {
			delete(j.told, k)
		}
	}
	for _, l := range j.lanes {
		l.changed = false
	}
	for k, v := range j.steps {
		if v.changed {
			j.lane(j.t.Head(k).Agent).changed = true
		}
	}
	if i > 0 {
		j.last = j.t.Head(i - 1)
	}
}

// Len is the number of steps, from the first, that have been passed.
func (j *Judge) Len() int { return len(j.steps) }

// Kind is the kind of step i, and whether it changed something that lasts; ""
// for a step that is no action, or not judged yet.
func (j *Judge) Kind(i int) (kind Kind, changed bool) {
	if i < 0 || i >= len(j.steps) {
		return "", false
	}
	return j.steps[i].kind, j.steps[i].changed
}

// Step is step i with its judgement in full; false for a step that is no action
// or cannot be read. A step that was not passed yet is judged on its own, as if
// nothing had been changed before.
func (j *Judge) Step(i int) (Step, bool) {
	f, err := j.t.Full(i)
	if err != nil {
		return Step{}, false
	}
	a, ok := FromStep(f)
	if !ok {
		return Step{}, false
	}
	s := Step{Action: a}
	if i < len(j.steps) {
		s.ChangedBefore = j.steps[i].before
	}
	if got, ok := j.told[i]; ok {
		s.Judgement = got
		return s, true
	}
	s.Judgement = Classify(a, s.ChangedBefore)
	return s, true
}

// Next is the first step after i (before i when dir is negative) among those
// passed whose kind is one of the kinds; any change when none is given. -1 when
// there is none.
func (j *Judge) Next(i, dir int, kinds ...Kind) int {
	if dir >= 0 {
		dir = 1
	} else {
		dir = -1
	}
	for i = min(max(i, -1), len(j.steps)) + dir; i >= 0 && i < len(j.steps); i += dir {
		v := j.steps[i]
		if len(kinds) == 0 && v.changed {
			return i
		}
		for _, k := range kinds {
			if v.kind == k {
				return i
			}
		}
	}
	return -1
}
