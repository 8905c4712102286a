package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"refbox/engine/recording"
	"refbox/engine/season"
	"refbox/engine/season/telling"
	"refbox/engine/text"
	"refbox/engine/world"
)

// maxDetail bounds what a seat's detail takes of a week.
const maxDetail = 8 << 10

// Recorded reads what a recording says of an attempt: its fold, never a file that
// sums it up. False: the recording is not there, or was not closed after an outcome.
func Recorded(ctx context.Context, dir string) (season.Attempt, bool, error) {
	if st, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return season.Attempt{}, false, nil
	} else if err != nil {
		return season.Attempt{}, false, err
	} else if !st.IsDir() {
		return season.Attempt{}, false, fmt.Errorf("%s is not a folder", dir)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		return season.Attempt{}, false, err
	}
	defer rec.Close()
	return readAttempt(ctx, rec)
}

func readAttempt(ctx context.Context, rec *recording.Recording) (season.Attempt, bool, error) {
	if err := rec.Load(ctx); err != nil {
		return season.Attempt{}, false, err
	}
	w := rec.World(rec.Len())
	if from := w.BranchedFrom(); from != "" {
		return season.Attempt{}, false, fmt.Errorf("%s was %s: it is no heat of a season's", rec.Name(), from)
	}
	m := rec.Match()
	if !w.Over() || rec.Live() || m.Ours() && m.End == nil {
		return season.Attempt{}, false, nil
	}
	a := attemptOf(w)
	if m != nil {
		a.Key = m.CompatibilityKey
	}
	if m.Ours() {
		a.Seed, a.Ours = m.End.Seed, true
	}
	if w.MatchState == world.Aborted && !a.Aborted && !noContest(w) {
		return season.Attempt{}, false, nil // stopped from outside: interrupted
	}
	return a, true, nil
}

// noContest says that nobody could play: the harnesses of all players failed.
// That is an attempt of forfeits, not the end of the week.
func noContest(w *world.World) bool {
	if w.MatchState != world.Aborted || w.Rulings.Len() == 0 {
		return false
	}
	last, _ := w.Rulings.Last()
	return last.Ruling == "heat_ended" && last.Author == "refbox"
}

func attemptOf(w *world.World) season.Attempt {
	var a season.Attempt
	if w.Winner != nil {
		a.Winner = *w.Winner
	}
	if w.MatchState == world.Aborted && !noContest(w) && w.Rulings.Len() > 0 {
		last, _ := w.Rulings.Last()
		a.Aborted = last.Ruling == "heat_ended"
	}
	a.Aborted = a.Aborted || w.Voided != nil // a referee's decision: the week stops for it, too
	dead := map[string]bool{}
	for _, s := range world.Standings(w) {
		dead[s.Territory] = s.DeadHeat()
	}
	for _, s := range w.Seats() {
		e := season.Ended{Territory: s.ID, Points: whole(s.Points), DeadHeat: dead[s.ID]}
		if s.DurableAtMS != nil {
			at := whole(*s.DurableAtMS)
			if s.Durable != nil { // without the time of attacks, as the referee ranks
				at = whole(s.Durable.At)
			}
			e.DurableAtMS = &at
		}
		if ag := w.Agent(s.Agent); ag != nil {
			e.CostMicroUSD, e.CostComplete = whole(ag.CostMicroUSD), ag.CostComplete()
			e.FailureSource, e.TerminalState, e.Detail = str(ag.FailureSource), str(ag.TerminalState), str(ag.TerminalNote)
		}
		if s.Unavailable != nil {
			e.Unavailable, e.FailureSource, e.Detail = true, s.Unavailable.Source, s.Unavailable.Detail
		}
		if len(e.Detail) > maxDetail {
			e.Detail = e.Detail[:maxDetail]
		}
		e.Detail = text.Block(e.Detail)
		a.Ends = append(a.Ends, e)
	}
	return a
}

func whole(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Attempts reads the recordings of a week's folder for an audit. Nothing outside
// the folder is opened, whatever a document names. The recordings of a folder that
// was moved are found by the end of their names.
func Attempts(ctx context.Context, dir string) func(output string) (season.Attempt, error) {
	root, rerr := os.OpenRoot(dir)
	if rerr == nil {
		context.AfterFunc(ctx, func() { root.Close() })
	}
	return func(output string) (season.Attempt, error) {
		if rerr != nil {
			return season.Attempt{}, rerr
		}
		name := filepath.Join(filepath.Base(filepath.Dir(output)), filepath.Base(output))
		if st, err := root.Lstat(name); err != nil {
			return season.Attempt{}, err
		} else if !st.IsDir() {
			return season.Attempt{}, fmt.Errorf("%s is not a folder", name)
		}
		rec, err := recording.Open(filepath.Join(dir, name))
		if err != nil {
			return season.Attempt{}, err
		}
		defer rec.Close()
		a, over, err := readAttempt(ctx, rec)
		if err != nil {
			return a, err
		}
		if !over {
			return a, errors.New("it is not finished")
		}
		rep, err := rec.Verify(ctx)
		if err != nil {
			return a, err
		}
		for _, f := range rep.Findings {
			if f.Severity == recording.Break {
				a.Broken = f.Code + ": " + f.Text
				break
			}
		}
		a.Told, err = telling.Check(ctx, rec)
		return a, err
	}
}
