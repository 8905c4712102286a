// Package canary is a client of the referee's own. For a whole heat it writes
// numbered records through a seat's public port and reads some of them; at the end it
// reads all of them back, and tells what the service lost of what it had acknowledged,
// and how long it served nobody. It hides how requests are made, and what may be
// concluded from how they end.
//
// A write ends in one of three ways, after Jepsen:
//
//   - Acknowledged: an answer 200 to 299 but 202, which promises nothing. The record
//     must be there from then on.
//   - Failed: the write certainly did not happen. The connection was refused, or nothing
//     was sent on it, or the service itself declined: 3xx, 4xx, 501, 503, 505.
//   - Indeterminate: everything else. A timeout, wherever it struck; a connection cut
//     after the first byte was sent; an answer that is no HTTP; 202; 500; and 502 and
//     504, with which a proxy says that it does not know what became of the request
//     behind it. Such a write may have happened, may not, and may happen yet, so nothing
//     is ever concluded from its record's being there or not.
//
// What is computed, all of it by Log.Measure alone, a pure function of the history. Times
// are milliseconds on the heat's clock; an instant is when an answer was complete, and a
// stretch that begins with a request begins when that was sent.
//
//   - A lost write is an acknowledged one whose record, when read back, is not there or
//     has another value, and was so when looked at a second time after all others. One
//     whose reading back got no answer is unread: neither lost nor kept. So Lost is the
//     number of lost writes if Unread is 0, and else the least that it can be.
//   - A phantom is a failed write whose record is there: the service declined a write and
//     did it. (An indeterminate one that is there is as it may be.)
//   - The loss in time: for each run of lost writes, one that no kept write interrupts,
//     the time from the acknowledgement of the last kept write before it (from the sending
//     of the run's first, if there is none) to that of its last lost write. LossMS is
//     their sum. A client that kept its own log would have to repeat no more than that.
//   - An outage is a run of writes none of which was acknowledged. It begins when its
//     first was sent, and ends at the next acknowledgement, or never. A heat whose service
//     is broken at the start begins with one.
//   - FirstRead, FirstAck and Steady are those of the first outage: when a read sent in or
//     after it first gave the right record, when a write was next acknowledged, and
//     when steady service began: the acknowledgement of the first write from which on, for
//     at least SteadyFor, every write was acknowledged and every read right. What did not
//     happen is nil, never zero.
//
// The client's resolution is its interval and, while a service does not answer, its
// timeout; instants are no finer than that, and always late, never early. What root in the
// machine could forge is what is answered: that it was answered was seen outside. Ids and
// values come from the heat's secret seed and look like the verifiers' own. What the referee
// itself does to a service, its attacks, restarts and reboots, is measured with the rest.
package canary

// Outcome is how a write ended.
type Outcome string

// Outcomes.
const (
	Acknowledged  Outcome = "acknowledged"
	Failed        Outcome = "failed"
	Indeterminate Outcome = "indeterminate"
)

// Mixed is the outcome of a sample that stands for writes that ended differently. It
// only comes once a seat has had MaxSamples.
const Mixed Outcome = "mixed"

// Answer is what a read gave.
type Answer string

// Answers.
const (
	Right   Answer = "right"
	Wrong   Answer = "wrong"   // another value
	Missing Answer = "missing" // 404 or 410
	None    Answer = ""        // nothing that says anything of the record
)

// Write is one numbered write.
type Write struct {
	Number         uint64 // from 1
	SentMS, DoneMS uint64
	Outcome        Outcome
}

// Read is a read during the heat, of a record that must be there.
type Read struct {
	SentMS, DoneMS uint64
	Answer         Answer
}

// SteadyFor is how long service must go on to be steady, in ms.
const SteadyFor = 5000

// MaxWrites is how many writes a client makes at most.
const MaxWrites = 1 << 16

// Log is the history of one client. The zero Log is empty.
type Log struct {
	Writes []Write // by number
	Reads  []Read  // as they were sent
}

// Outage is a stretch in which no write was acknowledged.
type Outage struct {
	FromMS   uint64
	ReadMS   *uint64 // the first right read of those sent since
	AckMS    *uint64 // its end; nil when it lasted to the end
	SteadyMS *uint64
}

// Measure is what follows from a history.
type Measure struct {
	Writes, Acknowledged, Failed, Indeterminate uint64

	Lost     uint64
	Unread   uint64 // of the acknowledged
	Phantoms uint64
	LossMS   uint64

	Outages   []Outage // by their beginning
	OutageMS  uint64   // of all together; what has no end counts to the end
	LongestMS uint64
}

// First is the first outage; the zero one, all nil, when there was none.
func (m Measure) First() (o Outage, ok bool) {
	if len(m.Outages) == 0 {
		return Outage{}, false
	}
	return m.Outages[0], true
}

// Measure computes what follows: end is the instant of the last sample, found what the
// reading back gave, by number; a write that is not in it is unread.
func (l *Log) Measure(end uint64, found map[uint64]Answer) Measure {
	var m Measure
	m.Writes = uint64(len(l.Writes))
	var (
		kept *uint64 // acknowledgement of the last kept write
		from uint64  // where the current run of lost ones begins
		last uint64  // and the acknowledgement of its last
		run  bool
	)
	for _, w := range l.Writes {
		switch w.Outcome {
		case Failed:
			m.Failed++
			if found[w.Number] == Right {
				m.Phantoms++
			}
			continue
		case Indeterminate:
			m.Indeterminate++
			continue
		}
		m.Acknowledged++
		switch found[w.Number] {
		case None:
			m.Unread++
		case Right:
			if run {
				m.LossMS, run = m.LossMS+last-from, false
			}
			kept = &w.DoneMS
		default:
			m.Lost++
			if !run {
				run, from = true, w.SentMS
				if kept != nil {
					from = *kept
				}
			}
			last = w.DoneMS
		}
	}
	if run {
		m.LossMS += last - from
	}
	m.Outages = l.outages()
	for _, o := range m.Outages {
		until := end
		if o.AckMS != nil {
			until = *o.AckMS
		}
		took := until - min(o.FromMS, until)
		m.OutageMS += took
		m.LongestMS = max(m.LongestMS, took)
	}
	return m
}

func (l *Log) outages() []Outage {
	var out []Outage
	open := false
	for i := range l.Writes {
		w := &l.Writes[i]
		switch {
		case w.Outcome != Acknowledged && !open:
			open = true
			out = append(out, Outage{FromMS: w.SentMS})
		case w.Outcome == Acknowledged && open:
			open = false
			out[len(out)-1].AckMS = &w.DoneMS
		}
	}
	steady := l.steady()
	r, s := 0, 0
	for i := range out {
		o := &out[i]
		for r < len(l.Reads) && (l.Reads[r].SentMS < o.FromMS || l.Reads[r].Answer != Right) {
			r++
		}
		if r < len(l.Reads) {
			o.ReadMS = &l.Reads[r].DoneMS
		}
		for s < len(steady) && steady[s] < o.FromMS {
			s++
		}
		if s < len(steady) {
			o.SteadyMS = &steady[s]
		}
	}
	return out
}

// steady are the instants at which steady service began.
func (l *Log) steady() []uint64 {
	var (
		out   []uint64
		since *Write // the first of the run
		told  bool
		r     int
	)
	for i := range l.Writes {
		w := &l.Writes[i]
		for ; r < len(l.Reads) && l.Reads[r].SentMS < w.SentMS; r++ {
			if l.Reads[r].Answer != Right {
				since = nil
			}
		}
		switch {
		case w.Outcome != Acknowledged:
			since = nil
		case since == nil:
			since, told = w, false
		case !told && w.DoneMS-min(since.DoneMS, w.DoneMS) >= SteadyFor:
			told = true
			out = append(out, since.DoneMS)
		}
	}
	return out
}
