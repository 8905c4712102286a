package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	acts := []Action{
		{Index: 0, Tool: "Bash", Command: "ls", Success: true, StartedMS: 100},
		{Index: 1, Tool: "Bash", Command: "cat /etc/x", Success: false, StartedMS: 200},
		{Index: 2, Tool: "Bash", Command: "echo a > /etc/x", Success: true, StartedMS: 300},
		{Index: 3, Tool: "Bash", Command: "curl localhost", Success: true, StartedMS: 400},
		{Index: 4, Tool: "Bash", Command: "systemctl restart a", Success: true, StartedMS: 500},
		{Index: 5, Tool: "Bash", Command: "curl localhost", Success: true, StartedMS: 600},
	}
	p := func(v int64) *int64 { return &v }
	got := Compare([]Contender{
		{Seat: "one", Analysis: Analyse(acts), OffsetMS: p(1000), TotalMicroUSD: p(90),
			Milestones: []Milestone{{"a", 5, p(1250)}, {"b", 20, p(1700)}, {"c", 10, nil}},
			Spending:   []Spend{{1200, 10}, {1600, 70}, {1800, 90}}},
		{Seat: "two", Analysis: Analyse(acts[:2]), Milestones: []Milestone{{"a", 5, p(1250)}, {"b", 20, p(1600)}}},
		{Seat: "none"},
	})
	want := []Fought{
		{Seat: "one", Actions: 6, FirstActionMS: p(1100), FirstChangeMS: p(1300), LastChangeMS: p(1500), DiscoveriesBeforeChange: 2, Changes: 2,
			Errors: 1, ValidationsAfterLastChange: 1, Points: 25, TotalMicroUSD: p(90), MicroUSDPerMilestone: p(45),
			ByKind: map[Kind]int{Discovery: 2, Mutation: 1, Validation: 2, Lifecycle: 1},
			Milestones: []FoughtOver{
				{ID: "a", PassedMS: p(1250), AfterFirstChangeMS: p(-50), SpentMicroUSD: p(10), StepMicroUSD: p(10), First: true},
				{ID: "b", PassedMS: p(1700), AfterFirstChangeMS: p(400), SpentMicroUSD: p(70), StepMicroUSD: p(60)},
				{ID: "c"}}},
		{Seat: "two", Actions: 2, DiscoveriesBeforeChange: 2, Errors: 1, Points: 25, ByKind: map[Kind]int{Discovery: 2},
			Milestones: []FoughtOver{{ID: "a", PassedMS: p(1250), First: true}, {ID: "b", PassedMS: p(1600), First: true}}},
		{Seat: "none", ByKind: map[Kind]int{}, Milestones: []FoughtOver{}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
