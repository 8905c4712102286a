package analysis

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

type label struct {
	Match         string `json:"match"`
	Agent         string `json:"agent"`
	Index         int    `json:"index"`
	Tool          string `json:"tool"`
	Command       string `json:"command"`
	Upstream      Kind   `json:"upstream_kind"`
	Right         Kind   `json:"right_kind"`
	Also          []Kind `json:"also"`
	Why           string `json:"why"`
	ChangedBefore bool   `json:"changed_before"`
}

func readLabels(t testing.TB) []label {
	t.Helper()
	b, err := os.ReadFile(shared.Shared(t, "labels", "actions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []label
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The labels of a careful person: at least 97 % must be met.
func TestLabels(t *testing.T) {
	labels := readLabels(t)
	kinds := []Kind{Discovery, Mutation, Lifecycle, Validation}
	table := map[Kind]map[Kind]int{}
	right, reference := 0, 0
	for i, l := range labels {
		j := Classify(Action{Tool: l.Tool, Command: l.Command, Success: true}, l.ChangedBefore)
		if table[l.Right] == nil {
			table[l.Right] = map[Kind]int{}
		}
		table[l.Right][j.Kind]++
		if l.Upstream == l.Right {
			reference++
		}
		if j.Kind == l.Right {
			right++
			continue
		}
		t.Logf("label %d: %s, should be %s (%s)\n%s", i, j.Kind, l.Right, l.Why, clip(l.Command, 300))
		for _, e := range j.Effects {
			t.Logf("    %s %q by %s at %v: %s", e.Sort, e.Target, e.By, e.Span, e.Shows)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", "right \\ ours")
	for _, k := range kinds {
		fmt.Fprintf(&b, "%12s", k)
	}
	for _, want := range kinds {
		fmt.Fprintf(&b, "\n%-22s", want)
		for _, got := range kinds {
			fmt.Fprintf(&b, "%12d", table[want][got])
		}
	}
	t.Logf("%d of %d right (%.1f %%); the reference: %d\n%s", right, len(labels), 100*float64(right)/float64(len(labels)), reference, b.String())
	if float64(right) < 0.97*float64(len(labels)) {
		t.Errorf("%d of %d labels are met; at least 97 %% must be", right, len(labels))
	}
}
