package canary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// history makes writes of one a second, each answered within 100 ms: a acknowledged, f
// failed, ? indeterminate.
func history(outcomes string) *Log {
	l := &Log{}
	for i, o := range outcomes {
		w := Write{Number: uint64(i + 1), SentMS: uint64(i+1) * 1000, DoneMS: uint64(i+1)*1000 + 100}
		w.Outcome = map[rune]Outcome{'a': Acknowledged, 'f': Failed, '?': Indeterminate}[o]
		l.Writes = append(l.Writes, w)
	}
	return l
}

func ms(n uint64) *uint64 { return &n }

func TestMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes string
		found    string // r right, w wrong, m missing, - unread
		reads    []Read
		want     Measure
	}{
		"nothing":     {},
		"all is kept": {"aaa", "rrr", nil, Measure{Writes: 3, Acknowledged: 3}},
		"the tail is lost": {"aaaa", "rrmm", nil, // from the ack of 2 to that of 4
			Measure{Writes: 4, Acknowledged: 4, Lost: 2, LossMS: 2000}},
		"everything is lost": {"aa", "mw", nil, // from the sending of 1
			Measure{Writes: 2, Acknowledged: 2, Lost: 2, LossMS: 1100}},
		"two holes": {"aaaaa", "rmrmr", nil, Measure{Writes: 5, Acknowledged: 5, Lost: 2, LossMS: 2000}},
		"what was not read is neither lost nor kept": {"aaaa", "rm-m", nil,
			Measure{Writes: 4, Acknowledged: 4, Lost: 2, Unread: 1, LossMS: 3000}},
		"of an indeterminate write nothing follows": {"a?a?a", "rmrwr", nil,
			Measure{Writes: 5, Acknowledged: 3, Indeterminate: 2, OutageMS: 2200, LongestMS: 1100,
				Outages: []Outage{{FromMS: 2000, AckMS: ms(3100)}, {FromMS: 4000, AckMS: ms(5100)}}}},
		"a declined write that is there": {"fa", "rr", nil,
			Measure{Writes: 2, Acknowledged: 1, Failed: 1, Phantoms: 1, OutageMS: 1100, LongestMS: 1100,
				Outages: []Outage{{FromMS: 1000, AckMS: ms(2100)}}}},
		"broken for good": {"f?f", "---", nil,
			Measure{Writes: 3, Failed: 2, Indeterminate: 1, OutageMS: 2100, LongestMS: 2100, Outages: []Outage{{FromMS: 1000}}}},
		"reads come back before writes": {"ffaaaaaaa", "--rrrrrrr",
			[]Read{{1200, 1300, None}, {2200, 2300, Right}, {3200, 3300, Right}},
			Measure{Writes: 9, Acknowledged: 7, Failed: 2, OutageMS: 2100, LongestMS: 2100,
				Outages: []Outage{{FromMS: 1000, ReadMS: ms(2300), AckMS: ms(3100), SteadyMS: ms(3100)}}}},
		"a wrong read is no steady service": {"faaaaaaaa", "-rrrrrrrr", []Read{{3200, 3300, Missing}},
			Measure{Writes: 9, Acknowledged: 8, Failed: 1, OutageMS: 1100, LongestMS: 1100,
				Outages: []Outage{{FromMS: 1000, AckMS: ms(2100), SteadyMS: ms(4100)}}}},
		"too short to be steady": {"faaaaaf", "-rrrrr-", nil,
			Measure{Writes: 7, Acknowledged: 5, Failed: 2, OutageMS: 1200, LongestMS: 1100,
				Outages: []Outage{{FromMS: 1000, AckMS: ms(2100)}, {FromMS: 7000}}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := history(c.outcomes)
			l.Reads = c.reads
			found := map[uint64]Answer{}
			for i, f := range c.found {
				if a := (map[rune]Answer{'r': Right, 'w': Wrong, 'm': Missing})[f]; a != None {
					found[uint64(i+1)] = a
				}
			}
			end := uint64(0)
			if n := len(l.Writes); n > 0 {
				end = l.Writes[n-1].DoneMS
			}
			if d := cmp.Diff(c.want, l.Measure(end, found)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Every write is of one sort, every acknowledged one kept, lost or unread, no loss is
// longer than the history, and outages don't overlap.
func TestMeasureHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := history(rapid.StringOfN(rapid.SampledFrom([]rune("aaaf?")), 0, 60, -1).Draw(t, "outcomes"))
		found, kept, end := map[uint64]Answer{}, uint64(0), uint64(0)
		for _, w := range l.Writes {
			a := rapid.SampledFrom([]Answer{Right, Right, Wrong, Missing, None}).Draw(t, "found")
			found[w.Number], end = a, w.DoneMS
			if w.Outcome == Acknowledged && a == Right {
				kept++
			}
		}
		m := l.Measure(end, found)
		if m.Acknowledged+m.Failed+m.Indeterminate != m.Writes || kept+m.Lost+m.Unread != m.Acknowledged {
			t.Fatalf("the sums are off: %+v, %d kept", m, kept)
		}
		if (m.Lost == 0) != (m.LossMS == 0) || m.LossMS > end || m.OutageMS > end || m.LongestMS > m.OutageMS {
			t.Fatalf("times are off: %+v", m)
		}
		last := uint64(0)
		for i, o := range m.Outages {
			if o.FromMS < last || (o.AckMS == nil) != (i == len(m.Outages)-1 && l.Writes[len(l.Writes)-1].Outcome != Acknowledged) {
				t.Fatalf("outage %d: %+v of %+v", i, o, m.Outages)
			}
			if o.AckMS != nil {
				last = *o.AckMS
			}
		}
	})
}

func TestSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := history(rapid.StringOfN(rapid.SampledFrom([]rune("aaaaaaf?")), 1, 200, -1).Draw(t, "outcomes"))
		var s samples
		var out []Sample
		changes := 0
		for i, w := range l.Writes {
			if i == 0 || w.Outcome != l.Writes[i-1].Outcome {
				changes++
			}
			out = append(out, s.add(w)...)
			if last := out[len(out)-1]; last.Outcome != w.Outcome {
				t.Fatalf("write %d ended %s, and the last sample says %s", w.Number, w.Outcome, last.Outcome)
			}
		}
		out = s.flush(out)
		if most := 2*changes + len(l.Writes)/10 + 1; len(out) > most {
			t.Fatalf("%d samples of %d writes with %d changes, more than %d", len(out), len(l.Writes), changes, most)
		}
		var got []Outcome
		var sums [3]uint64
		for _, x := range out {
			if x.SinceMS != l.Writes[len(got)].SentMS || x.Write != uint64(len(got))+x.Writes || x.LatencyMS != 100 {
				t.Fatalf("after %d writes: %+v", len(got), x)
			}
			for range x.Writes {
				got = append(got, x.Outcome)
			}
			sums = [3]uint64{x.Acknowledged, x.Failed, x.Indeterminate}
		}
		var want []Outcome
		for _, w := range l.Writes {
			want = append(want, w.Outcome)
		}
		m := l.Measure(0, nil)
		if d := cmp.Diff(want, got); d != "" || sums != [3]uint64{m.Acknowledged, m.Failed, m.Indeterminate} {
			t.Fatalf("the samples tell another history: %s %v", d, sums)
		}
	})
}

// A service that flaps for ever does not fill the log.
func TestSamplesAreBounded(t *testing.T) {
	var s samples
	said, writes := 0, uint64(0)
	for n := uint64(1); n <= MaxWrites; n++ {
		w := Write{Number: n, SentMS: n * 500, DoneMS: n*500 + 10, Outcome: []Outcome{Acknowledged, Failed}[n%2]}
		for _, x := range s.add(w) {
			said++
			writes += x.Writes
		}
	}
	for _, x := range s.flush(nil) {
		writes += x.Writes
		if x.Outcome != Mixed {
			t.Errorf("the last: %+v", x)
		}
	}
	if most := MaxSamples + MaxWrites*500/sayLate + 2; said > most || said < MaxSamples || writes != MaxWrites {
		t.Errorf("%d samples, at most %d are right; they stand for %d writes", said, most, writes)
	}
}
