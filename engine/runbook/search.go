package runbook

import (
	"context"
	"fmt"
	"slices"

	"refbox/engine/text"
)

// Try is what came of one run of steps on fresh machines.
type Try struct {
	Steps  []Step `json:"-"`
	Paced  bool   `json:"paced"` // with the player's own pauses
	Won    bool   `json:"won"`   // the seat became durable
	Voided string `json:"voided,omitempty"`
	Lost   string `json:"lost,omitempty"` // the milestone at which it lost
	Why    string `json:"why,omitempty"`  // the refusal's words
	Dir    string `json:"dir"`            // the heat's recording
	Seat   string `json:"seat"`           // in it
}

// Runner runs each choice of steps once, on machines of its own with the fault
// fresh, and judges it as a heat would. It returns one Try per choice, in order; an
// error that ends the search. A seat that was unavailable is Voided: it says nothing.
type Runner func(ctx context.Context, choices [][]Step, paced bool) ([]Try, error)

// Needed is a step of the runbook with what came of leaving it out.
type Needed struct {
	Step
	Without *Try `json:"without"`
}

// Runbook is what came of a search.
type Runbook struct {
	Source Source `json:"source"`
	// Machines are what it was run again on: a driver's kind, "sim" for simulated ones.
	Machines string   `json:"machines"`
	Steps    []Needed `json:"steps"`
	Paced    bool     `json:"paced"` // it wins only with the player's own pauses
	// Minimal says that each step was left out alone and that what was left lost.
	Minimal bool   `json:"minimal"`
	Dropped []Step `json:"dropped"` // what the repair does without
	Runs    int    `json:"runs"`    // of the search
	Won     int    `json:"won"`     // of the last Again re-executions of the whole runbook
	Again   int    `json:"again"`
	Flakes  []Try  `json:"flakes,omitempty"` // those that lost
}

// voids is how often a run that says nothing is repeated.
const voids = 3

// search is one going through choices.
type search struct {
	ctx   context.Context
	run   Runner
	width int
	paced bool
	runs  int
}

// Minimise finds a choice of the source's steps that wins and of which nothing can
// be left out, then runs it again as often as again says. width is how many choices
// a run takes at once. Begun hears of each stage; nil hears nothing.
//
// An error with steps in the runbook says that it was not run again as often as it
// should: the search itself is over.
//
// What reading says changed something is tried first, then everything; without the
// player's pauses, then with them. The error says that none of these wins: the
// repair cannot be had again from its actions.
func Minimise(ctx context.Context, src Source, width, again int, run Runner, begun func(stage string)) (Runbook, error) {
	if begun == nil {
		begun = func(string) {}
	}
	s := &search{ctx: ctx, run: run, width: max(1, width)}
	rb := Runbook{Source: src, Steps: []Needed{}, Dropped: []Step{}}
	var changing []Step
	for _, step := range src.Steps {
		if step.Changes {
			changing = append(changing, step)
		}
	}
	choices := [][]Step{src.Steps}
	if len(changing) > 0 && len(changing) < len(src.Steps) {
		choices = [][]Step{changing, src.Steps}
	}
	var left []Step
	var last []Try
	for _, s.paced = range []bool{false, true} {
		begun(fmt.Sprintf("what changed something, %d of %d statements", len(changing), len(src.Steps)))
		tries, err := s.all(choices)
		if err != nil {
			return rb, err
		}
		if i := slices.IndexFunc(tries, func(t Try) bool { return t.Won }); i >= 0 {
			left = choices[i]
			break
		}
		last = tries
	}
	if left == nil {
		t := last[len(last)-1]
		rb.Runs = s.runs
		return rb, fmt.Errorf("%s's actions do not win again, run without it: lost at %s: %s (%s)", src.Agent, t.Lost, t.Why, t.Dir)
	}
	left, without, err := s.shrink(left, begun)
	if err != nil {
		return rb, err
	}
	if len(left) == 0 {
		return rb, fmt.Errorf("the fault repairs itself: with nothing done, the seat won (%s)", text.Count(s.runs, "run"))
	}
	rb.Paced, rb.Minimal = s.paced, true
	for _, step := range left {
		rb.Steps = append(rb.Steps, Needed{step, without[key(step)]})
	}
	for _, step := range src.Steps {
		if !slices.ContainsFunc(left, func(o Step) bool { return key(o) == key(step) }) {
			rb.Dropped = append(rb.Dropped, step)
		}
	}
	rb.Runs = s.runs
	if again > 0 {
		begun("the runbook again, " + text.Count(again, "time"))
		for n := again; n > 0; {
			tries, err := s.all(slices.Repeat([][]Step{left}, min(n, s.width)))
			for _, t := range tries {
				rb.Again++
				if t.Won {
					rb.Won++
				} else {
					rb.Flakes = append(rb.Flakes, t)
				}
			}
			if err != nil {
				return rb, fmt.Errorf("the runbook was run again %d of %d times: %w", rb.Again, again, err)
			}
			n -= len(tries)
		}
	}
	return rb, nil
}

func key(s Step) [2]uint64 { return [2]uint64{s.Action, uint64(s.Statement)} }

// shrink leaves out halves, quarters and so on, then single steps, as long as what is
// left wins; at last each single step has been left out of what is returned, and
// lost. Choices of one size are tried side by side; of several that win the first
// is taken, as two that can each be spared may not be spared together.
func (s *search) shrink(left []Step, begun func(string)) ([]Step, map[[2]uint64]*Try, error) {
	size := (len(left) + 1) / 2
	for {
		begun(fmt.Sprintf("%d statements, %d left out at a time", len(left), size))
		var spans [][2]int
		for from := 0; from < len(left); from += size {
			// The last step alone is left out too: a fault may repair itself.
			if to := min(from+size, len(left)); to-from < len(left) || len(left) == 1 {
				spans = append(spans, [2]int{from, to})
			}
		}
		without := map[[2]uint64]*Try{}
		smaller := false
		for group := range slices.Chunk(spans, s.width) {
			var choices [][]Step
			for _, span := range group {
				choices = append(choices, slices.Concat(left[:span[0]], left[span[1]:]))
			}
			tries, err := s.all(choices)
			if err != nil {
				return nil, nil, err
			}
			for i := range tries {
				if tries[i].Won {
					if left, smaller = choices[i], true; len(left) == 0 {
						return nil, nil, nil
					}
					break
				}
				if size == 1 {
					without[key(left[group[i][0]])] = &tries[i]
				}
			}
			if smaller {
				break
			}
		}
		switch {
		case smaller:
			size = min(size, max(1, (len(left)+1)/2))
		case size > 1:
			size = (size + 1) / 2
		default:
			return left, without, nil
		}
	}
}

// all runs choices, at most width at once, and what was voided again.
func (s *search) all(choices [][]Step) ([]Try, error) {
	out := make([]Try, len(choices))
	var todo []int
	for i := range choices {
		todo = append(todo, i)
	}
	for round := 0; len(todo) > 0; round++ {
		var void []int
		for group := range slices.Chunk(todo, s.width) {
			var some [][]Step
			for _, i := range group {
				some = append(some, choices[i])
			}
			tries, err := s.run(s.ctx, some, s.paced)
			if err != nil {
				return nil, err
			}
			for j, i := range group {
				out[i] = tries[j]
				out[i].Steps, out[i].Paced = choices[i], s.paced
				if tries[j].Voided != "" {
					void = append(void, i)
				} else {
					s.runs++
				}
			}
		}
		if round == voids && len(void) > 0 {
			return nil, fmt.Errorf("a run says nothing, tried %s: %s", text.Count(voids+1, "time"), out[void[0]].Voided)
		}
		todo = void
	}
	return out, nil
}
