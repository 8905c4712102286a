package canary

// Sample stands for one or more writes, one after the other, with the same outcome.
type Sample struct {
	Write     uint64 // number of the last of them
	Writes    uint64 // how many
	SinceMS   uint64 // when the first of them was sent
	LatencyMS uint64 // the longest of theirs
	Outcome   Outcome

	Acknowledged, Failed, Indeterminate uint64 // of all writes up to this
}

const (
	// MaxSamples is how many samples a history has at most that tell every change of
	// outcome; after them one comes every minute, whatever it stands for.
	MaxSamples = 4000
	sayEvery   = 10_000 // ms between samples that say nothing new
	sayLate    = 60_000
)

// samples folds writes into samples: a changed outcome is told at once, an equal one with
// others.
type samples struct {
	now  Sample // Writes is 0 when all is said
	last Outcome
	said int
	at   uint64 // when the last was said
}

func (s *samples) add(w Write) []Sample {
	var out []Sample
	changed := w.Outcome != s.last
	every, many := uint64(sayEvery), s.said >= MaxSamples
	if many {
		every = sayLate
	}
	if changed && !many {
		out = s.flush(out)
	}
	switch w.Outcome {
	case Acknowledged:
		s.now.Acknowledged++
	case Failed:
		s.now.Failed++
	default:
		s.now.Indeterminate++
	}
	if s.now.Writes == 0 {
		s.now.SinceMS, s.now.LatencyMS, s.now.Outcome = w.SentMS, 0, w.Outcome
	} else if s.now.Outcome != w.Outcome {
		s.now.Outcome = Mixed
	}
	s.now.Write = w.Number
	s.now.Writes++
	s.now.LatencyMS = max(s.now.LatencyMS, w.DoneMS-min(w.SentMS, w.DoneMS))
	s.last = w.Outcome
	if changed && !many || w.DoneMS >= s.at+every {
		s.at = w.DoneMS
		out = s.flush(out)
	}
	return out
}

// flush adds what has not been said yet.
func (s *samples) flush(out []Sample) []Sample {
	if s.now.Writes == 0 {
		return out
	}
	s.said++
	out = append(out, s.now)
	s.now.Writes = 0
	return out
}
