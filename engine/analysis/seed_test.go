package analysis

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
)

func seed(t testing.TB) (Reference, []byte) {
	t.Helper()
	b, err := os.ReadFile(shared.Shared(t, "seeds", "analysis.json"))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := ReadReference(b)
	if err != nil {
		t.Fatal(err)
	}
	return ref, b
}

// The seed's two real changes, which the reference missed, and nothing else.
func TestSeed(t *testing.T) {
	ref, _ := seed(t)
	a := Analyse(ref.Actions)
	var changed []int
	for _, s := range a.Steps {
		if s.Changed {
			changed = append(changed, s.Index)
		}
	}
	if !slices.Equal(changed, []int{18, 19}) {
		t.Errorf("changes are %v, should be 18 and 19", changed)
	}
	if m := a.Metrics; m.ToolCalls != 19 || m.ToolErrors != 1 || m.Mutations != 2 || m.Discoveries != 17 || m.FirstMutationMS == nil ||
		*m.FirstMutationMS != 221375 || *m.LastObservedMS != *ref.Metrics.LastObservedMS {
		t.Errorf("metrics are %+v", m)
	}
	arch := a.Architecture
	if want := []string{"/var/lib/failover/primary.failed", "/var/lib/failover/primary.fenced", "/var/lib/failover/replica.role",
		"/var/lib/failover/upstream"}; !slices.Equal(arch.PersistentPaths, want) {
		t.Errorf("paths are %q, should be %q", arch.PersistentPaths, want)
	}
	if len(arch.ServiceUnits) != 0 {
		t.Errorf("no unit was acted on, but %q", arch.ServiceUnits)
	}
	if want := []string{"Python", "SQLite", "systemd", "iptables", "nftables"}; slices.ContainsFunc(arch.Technologies, func(s string) bool { return !slices.Contains(want, s) }) {
		t.Errorf("technologies are %q", arch.Technologies)
	}
}

// What we write has every key of the seed, at the same places and of the same
// types, and reads back.
func TestSchemaIsTheSeeds(t *testing.T) {
	ref, raw := seed(t)
	a := Analyse(ref.Actions)
	a.SourceSHA256, a.Agent, a.Territory, a.Model, a.Outcome = ref.SourceSHA256, ref.Agent, ref.Territory, ref.Model, ref.Outcome
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs map[string]any
	if json.Unmarshal(b, &ours) != nil || json.Unmarshal(raw, &theirs) != nil {
		t.Fatal("no JSON")
	}
	covers(t, "", theirs, ours)
	back, err := ReadReference(b)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(func() Analysis {
		x := Analyse(back.Actions)
		x.SourceSHA256, x.Agent, x.Territory, x.Model, x.Outcome = back.SourceSHA256, back.Agent, back.Territory, back.Model, back.Outcome
		return x
	}())
	if !bytes.Equal(b, again) {
		t.Error("our analysis does not survive being read and judged again")
	}
	for i, x := range ours["actions"].([]any) {
		if got := x.(map[string]any)["reference_kind"]; got != theirs["actions"].([]any)[i].(map[string]any)["kind"] {
			t.Errorf("action %d: reference_kind is %v", i, got)
		}
	}
}

func covers(t *testing.T, at string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is no object", at)
			return
		}
		for k, v := range w {
			if _, ok := g[k]; !ok {
				t.Errorf("%s lacks %q", at, k)
				continue
			}
			covers(t, at+"/"+k, v, g[k])
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			t.Errorf("%s is no list", at)
			return
		}
		if strings.HasSuffix(at, "/actions") && len(w) == len(g) {
			for i := range w {
				covers(t, at, w[i], g[i])
			}
		}
	case string:
		if s, ok := got.(string); !ok || !strings.HasSuffix(at, "/kind") && !strings.HasSuffix(at, "/analyzer") && s != w {
			t.Errorf("%s is %v, should be %q", at, got, w)
		}
	case nil:
		if got != nil {
			t.Errorf("%s is %v, should be null", at, got)
		}
	}
}

func TestForeignSchemaIsRefused(t *testing.T) {
	for _, b := range []string{"", "[]", `{"schema_version":2}`, `{"schema_version":1,"actions":7}`} {
		if _, err := ReadReference([]byte(b)); err == nil {
			t.Errorf("%q was read", b)
		}
	}
}
