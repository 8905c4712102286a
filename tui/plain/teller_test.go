package plain

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"refbox/engine/event"
)

func at(ms uint64, b event.Body) event.Event { return event.Event{ElapsedMS: ms, Body: b} }

func TestEqualFailuresAreFolded(t *testing.T) {
	const one, two, m = "one", "two", "reads-restored"
	begin := event.MilestoneEvaluationStarted{Territory: one, Milestone: m}
	refused := event.MilestoneFailed{Territory: one, Milestone: m, Category: "contract", Detail: "502"}
	late := refused
	late.Category, late.Detail = "timeout", "no answer"
	other := refused
	other.Territory = two
	attack := event.AttackStarted{Territory: one, Milestone: m, Attack: "start it"}
	broke := event.AttackFinished{Territory: one, Milestone: m, Attack: "start it", TookMS: 40, Detail: "it runs"}
	slower := broke
	slower.TookMS = 70
	var log []event.Event
	for i, b := range []event.Body{
		begin, attack, broke, refused, other,
		begin, attack, slower, refused, begin, refused, other, // as before
		begin, late, // changed
		begin, refused, begin, refused,
		event.MilestonePassed{Territory: one, Milestone: m, Points: 5}, // changed
		begin, refused, begin, refused,
		event.MatchFinished{Reason: "time"},
	} {
		log = append(log, at(uint64(i)*1000, b))
	}
	var teller Teller
	var got []string
	for _, e := range log {
		got = append(got, teller.Next(e)...)
	}
	got = append(got, teller.End(99_000)...)
	want := []string{
		"00:00.0  one               checking reads-restored",
		"00:01.0  one               attack on reads-restored: start it",
		"00:02.0  one               attack BROKE THROUGH after 40 ms: start it: it runs",
		"00:03.0  one               failed reads-restored (contract): 502",
		"00:04.0  two               failed reads-restored (contract): 502",
		"00:13.0  one               failed reads-restored (contract): 502 ×3 for 7.0 s",
		"00:13.0  one               failed reads-restored (timeout): no answer",
		"00:15.0  one               failed reads-restored (contract): 502",
		"00:18.0  one               failed reads-restored (contract): 502 ×2 for 2.0 s",
		"00:18.0  one               PASSED reads-restored, +5",
		"00:19.0  one               checking reads-restored",
		"00:20.0  one               failed reads-restored (contract): 502",
		"00:23.0  one               failed reads-restored (contract): 502 ×2 for 2.0 s",
		"00:23.0  two               failed reads-restored (contract): 502 ×2 for 7.0 s",
		"00:23.0                    NO WINNER: time",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Whatever the order: no failure is lost, and nothing but failures, checks and
// attacks is left out.
func TestConquestsTicksAreFolded(t *testing.T) {
	probe := func(territory, bad string) event.Body {
		return event.HealthObserved{Territory: territory, Healthy: bad == "", LatencyMS: 7, Detail: bad}
	}
	gain := event.ResourcesChanged{Territory: "a", Delta: 1, Remaining: 901, Reason: "healthy tick"}
	var teller Teller
	var got []string
	for i, b := range []event.Body{
		probe("a", ""), probe("b", ""), gain, probe("a", ""), probe("b", "refused"), gain, probe("a", ""), probe("b", "refused"), gain,
		event.TerritoryStateChanged{Territory: "b", To: "degraded", Reason: "2 bad probes in a row"}, probe("b", ""),
		event.ResourcesChanged{Territory: "a", Delta: -1, Remaining: 902, Reason: "agent inference"},
	} {
		got = append(got, teller.Next(at(uint64(i)*1000, b))...)
	}
	want := []string{
		"00:00.0  a                 healthy in 7 ms",
		"00:01.0  b                 healthy in 7 ms",
		"00:04.0  b                 unhealthy: refused",
		"00:09.0  b                 degraded: 2 bad probes in a row",
		"00:10.0  b                 healthy in 7 ms",
		"00:11.0  a                 resources -1, 902 left: agent inference",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestFoldingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var teller Teller
		seat := rapid.SampledFrom([]string{"one", "two"})
		var failures, told, others, toldOthers int
		count := func(lines []string) {
			for _, l := range lines {
				_, n, many := strings.Cut(l, " ×")
				switch {
				case many:
					n, _, _ = strings.Cut(n, " ")
					for _, c := range n {
						told += int(c - '0')
					}
					told-- // the first was told
				case strings.Contains(l, "failed m"):
					told++
				case strings.Contains(l, "PASSED"):
					toldOthers++
				}
			}
		}
		for i := range rapid.IntRange(0, 9).Draw(t, "events") {
			ms := uint64(i)
			switch s := seat.Draw(t, "seat"); rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				others++
				count(teller.Next(at(ms, event.MilestonePassed{Territory: s, Milestone: "m"})))
			case 1:
				count(teller.Next(at(ms, event.MilestoneEvaluationStarted{Territory: s, Milestone: "m"})))
			default:
				failures++
				count(teller.Next(at(ms, event.MilestoneFailed{Territory: s, Milestone: "m", Category: "contract", Detail: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "detail")})))
			}
		}
		count(teller.End(10))
		if told != failures || toldOthers != others {
			t.Fatalf("%d failures, %d told; %d others, %d told", failures, told, others, toldOthers)
		}
		if again := teller.End(11); len(again) > 0 {
			t.Fatalf("told twice: %q", again)
		}
	})
}

func TestEveryKnownKindIsInTheTable(t *testing.T) {
	var kinds []string
	for _, b := range bodies {
		kinds = append(kinds, b.Kind())
	}
	for _, k := range event.Kinds() {
		if !slices.Contains(kinds, k) {
			t.Errorf("%s is not tested", k)
		}
	}
}
