package series

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"refbox/engine/season/provenance"
)

// Interval is what is known of a figure: the estimate, and bounds that hold it 19
// times in 20. Few heats give wide ones, which is the point.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	N        int     `json:"n"`
	How      string  `json:"how"`
}

// Figures are ours: of the same heats as the reference's standings.
type Figures struct {
	Players []PlayerFigures `json:"players"`
	Pairs   []Pair          `json:"pairs"`
	// Apart are heats that are in no figure, or not to be compared with the others,
	// and why.
	Apart []Apart `json:"apart,omitempty"`
}

// PlayerFigures are one model's, with its adapter and effort.
type PlayerFigures struct {
	Model   string   `json:"model"`
	Adapter string   `json:"adapter"`
	Effort  string   `json:"reasoning_effort"`
	Heats   int      `json:"heats"`
	Durable Interval `json:"durable"` // share of heats
	Won     Interval `json:"won"`
	// DurableMS is the median time of those that were durable; nil when none was.
	DurableMS *Interval `json:"durable_ms"`
	// CostMicroUSD is the median cost of the heats whose cost is known completely;
	// nil when it is of none.
	CostMicroUSD *Interval `json:"cost_microusd"`
	CostUnknown  int       `json:"cost_unknown"` // heats
	// Failures are by what ended the session, of heats that the player did not win, in
	// which it was not durable and was not merely outraced.
	Failures map[string]int `json:"failures"`
	Outraced int            `json:"outraced"`
}

// Pair compares two players over the heats that both were in: same arena, same
// secret values, same host.
type Pair struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Heats int      `json:"heats"`
	Ahead int      `json:"a_ahead"`
	Back  int      `json:"b_ahead"`
	Even  int      `json:"even"`
	Share Interval `json:"a_share"` // of the heats in which one was ahead
}

// Apart is a heat that is kept apart.
type Apart struct {
	Heat string `json:"heat"`
	Why  string `json:"why"`
}

// unequalLoad is how many times longer or shorter than the others' median a heat
// may take to get its machines ready, before its times are not comparable.
const unequalLoad = 1.5

// Compute computes our figures. Aborted heats are in none.
func Compute(runs []Run) Figures {
	f := Figures{Players: []PlayerFigures{}, Pairs: []Pair{}}
	var used []Run
	for _, r := range runs {
		if r.Finished {
			used = append(used, r)
		} else {
			f.Apart = append(f.Apart, Apart{r.Name, "it was aborted: it is in no figure"})
		}
	}
	f.Apart = append(f.Apart, apart(used)...)
	name := func(p Player) string { return strings.Trim(p.Model+" "+p.Adapter+" "+p.Effort, " ") }
	byName := map[string]*PlayerFigures{}
	durable, won := map[string]int{}, map[string]int{}
	times, costs := map[string][]int64{}, map[string][]int64{}
	type two struct{ a, b string }
	pairs := map[two]*Pair{}
	for _, r := range used {
		raced := slices.ContainsFunc(r.Players, func(p Player) bool { return p.DurableMS != nil })
		for i, p := range r.Players {
			id := name(p)
			pf := byName[id]
			if pf == nil {
				pf = &PlayerFigures{Model: p.Model, Adapter: p.Adapter, Effort: p.Effort, Failures: map[string]int{}}
				byName[id] = pf
			}
			pf.Heats++
			if r.won(p) {
				won[id]++
			}
			switch {
			case p.DurableMS != nil:
				durable[id]++
				times[id] = append(times[id], *p.DurableMS)
			case r.won(p): // by points, when the time was over
			case raced && p.FailureSource != "harness" && p.FailureSource != "provider":
				pf.Outraced++
			default:
				pf.Failures[cmp.Or(p.FailureSource, "unknown")]++
			}
			if p.CostKnown {
				costs[id] = append(costs[id], p.CostMicroUSD)
			} else {
				pf.CostUnknown++
			}
			for _, q := range r.Players[i+1:] {
				a, b := p, q
				if name(a) > name(b) {
					a, b = b, a
				}
				if name(a) == name(b) {
					continue
				}
				k := two{name(a), name(b)}
				if pairs[k] == nil {
					pairs[k] = &Pair{A: k.a, B: k.b}
				}
				pairs[k].add(r, a, b)
			}
		}
	}
	for id, pf := range byName {
		pf.Durable, pf.Won = wilson(durable[id], pf.Heats), wilson(won[id], pf.Heats)
		pf.DurableMS, pf.CostMicroUSD = middle(times[id]), middle(costs[id])
		f.Players = append(f.Players, *pf)
	}
	slices.SortFunc(f.Players, func(a, b PlayerFigures) int {
		return cmp.Or(cmp.Compare(b.Won.Low, a.Won.Low), cmp.Compare(b.Durable.Low, a.Durable.Low), strings.Compare(a.Model, b.Model),
			strings.Compare(a.Adapter, b.Adapter), strings.Compare(a.Effort, b.Effort))
	})
	for _, p := range pairs {
		p.Share = wilson(p.Ahead, p.Ahead+p.Back)
		f.Pairs = append(f.Pairs, *p)
	}
	slices.SortFunc(f.Pairs, func(a, b Pair) int { return cmp.Or(strings.Compare(a.A, b.A), strings.Compare(a.B, b.B)) })
	return f
}

// add counts one heat of both: who won it, else who was durable first, else who
// passed more milestones.
func (p *Pair) add(r Run, a, b Player) {
	p.Heats++
	ahead := 0
	switch {
	case r.won(a) != r.won(b):
		ahead = map[bool]int{true: 1, false: -1}[r.won(a)]
	case a.DurableMS != nil && b.DurableMS != nil:
		ahead = cmp.Compare(*b.DurableMS, *a.DurableMS)
	case (a.DurableMS != nil) != (b.DurableMS != nil):
		ahead = map[bool]int{true: 1, false: -1}[a.DurableMS != nil]
	default:
		ahead = cmp.Compare(a.Passed, b.Passed)
	}
	switch {
	case ahead > 0:
		p.Ahead++
	case ahead < 0:
		p.Back++
	default:
		p.Even++
	}
}

// apart finds the heats whose times are not to be compared with the others': other
// machines, a host under another load, or nothing that says so.
func apart(runs []Run) []Apart {
	var out []Apart
	keys, hosts, ready := map[string]Run{}, map[string]int{}, map[string][]int64{}
	for _, r := range runs {
		hosts[r.Host.Accel+" ×"+r.Host.TimeoutFactor]++
		if r.Host.PreparedMS >= 0 {
			ready[r.ArenaID] = append(ready[r.ArenaID], r.Host.PreparedMS)
		}
	}
	common := ""
	for h, n := range hosts {
		if common == "" || n > hosts[common] || n == hosts[common] && h < common {
			common = h
		}
	}
	for _, r := range runs {
		add := func(format string, a ...any) { out = append(out, Apart{r.Name, fmt.Sprintf(format, a...)}) }
		if first, ok := keys[r.ArenaID]; !ok {
			keys[r.ArenaID] = r
		} else if first.Form != r.Form {
			add("its key is of the form %s, that of the first heat on %s of the form %s: whether the task is the same cannot be told from them", cmp.Or(r.Form, provenance.Unknown), r.ArenaID, cmp.Or(first.Form, provenance.Unknown))
		} else if first.Key != r.Key {
			add("another compatibility key than the first heat on %s: not the same task", r.ArenaID)
		}
		if h := r.Host.Accel + " ×" + r.Host.TimeoutFactor; h != common {
			add("other machines (%s, the others %s): times are not comparable", h, common)
		}
		m := median(ready[r.ArenaID])
		switch {
		case r.Host.PreparedMS < 0:
			add("the host's load was not recorded: times may not be comparable")
		case m != nil && *m > 0 && ratio(r.Host.PreparedMS, *m) > unequalLoad:
			add("its machines took %d ms to be ready, the median is %d ms: the host was under another load, times are not comparable", r.Host.PreparedMS, *m)
		}
	}
	return out
}

func ratio(a, b int64) float64 {
	a, b = max(a, 1), max(b, 1)
	return math.Max(float64(a)/float64(b), float64(b)/float64(a))
}

// z is the two-sided 95 % quantile of the normal distribution.
const z = 1.959963984540054

// wilson is the interval of a share: k of n.
func wilson(k, n int) Interval {
	if n == 0 {
		return Interval{Estimate: 0, Low: 0, High: 1, How: "no heats"}
	}
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{p, math.Max(0, mid-half), math.Min(1, mid+half), n, "Wilson, 95 %"}
}

// middle is the median with its distribution-free interval: the widest pair of
// order statistics that holds it 95 times in 100. Fewer than 6 values have none;
// then it is their whole range, and says so.
func middle(list []int64) *Interval {
	n := len(list)
	if n == 0 {
		return nil
	}
	list = slices.Sorted(slices.Values(list))
	mid := float64(list[n/2])
	if n%2 == 0 {
		mid = (float64(list[n/2-1]) + float64(list[n/2])) / 2
	}
	// The interval from the k-th to the k-th last misses the median with twice the
	// chance of fewer than k heads in n throws.
	k, tail := 0, math.Pow(0.5, float64(n))
	below := tail
	for 2*below <= 0.05 {
		k++
		tail *= float64(n-k+1) / float64(k)
		below += tail
	}
	if k == 0 {
		return &Interval{mid, float64(list[0]), float64(list[n-1]), n, fmt.Sprintf("range of %d: too few for 95 %%", n)}
	}
	return &Interval{mid, float64(list[k-1]), float64(list[n-k]), n, "order statistics, 95 %"}
}
