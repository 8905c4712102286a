package ledger

import (
	"encoding/json"
	"fmt"
	"strings"

	"refbox/engine/text"
)

// Evidence is what one heat shows of one scenario at one seat. The keys are those
// of the failure model's reference, section 2.2. Times are milliseconds on the
// referee's clock.
type Evidence struct {
	ID        string `json:"id"`
	Scenario  string `json:"scenario"`
	Arena     string `json:"arena"`
	Territory string `json:"territory"`
	Target    Target `json:"target"`
	Day       string `json:"day"`  // 2006-01-02, of the heat's start, UTC
	Heat      string `json:"heat"` // where the recording was
	Agent     string `json:"agent"`
	Recorder  string `json:"recorder"`
	Reviewer  string `json:"reviewer"`
	// Artifacts are the heat's files that this rests on, with their SHA-256 in hex.
	Artifacts map[string]string `json:"artifacts"`
	Fault     Fault             `json:"fault"`
	Clock     Clock             `json:"clock"`
	Probe     Probe             `json:"probe"`

	BaselineHealthy bool `json:"baseline_healthy"`
	// MaxWritableHistories is null where nobody watched.
	MaxWritableHistories *int `json:"max_writable_histories"`
	// ExpectedServiceMet is null where the heat ended before it was decided.
	ExpectedServiceMet     *bool `json:"expected_service_met"`
	LossWithinDeclaredRisk bool  `json:"loss_within_declared_risk"`
	CoversWholeDomain      bool  `json:"covers_whole_domain"`
	// Told and Watched are what the verifiers told that saw the expected service, and a
	// single history: who served, on which timeline.
	Told    json.RawMessage `json:"told,omitempty"`
	Watched json.RawMessage `json:"watched,omitempty"`

	Fix             string          `json:"fix,omitempty"` // what was mended since the scenario was contradicted
	NegativeControl NegativeControl `json:"negative_control"`
}

// Target is what the evidence is of. Other evidence is of the same target when the
// digests are equal.
type Target struct {
	Arena   string `json:"arena_sha256"` // of the arena's file
	Image   string `json:"image"`        // of the machines; "" for simulated ones
	Policy  string `json:"policy_sha256"`
	Release string `json:"release"` // of the model
	Digest  string `json:"digest"`
}

// Sum is the digest that the target's parts have.
func (t Target) Sum() string {
	return digest([]byte(strings.Join([]string{"refbox target 1", t.Arena, t.Image, t.Policy, t.Release}, "\n")))
}

// Fault is what was done.
type Fault struct {
	Kind     string          `json:"kind"`
	Target   string          `json:"target"`
	Injector string          `json:"injector"`
	Params   json.RawMessage `json:"params,omitempty"`
	// AnnouncedToAgent: the player was told that it comes.
	AnnouncedToAgent bool   `json:"announced_to_agent"`
	ConfirmedBy      string `json:"confirmed_by"` // "" when nobody saw it bite
	Saw              string `json:"saw,omitempty"`
	// Forgeable is what root in the guest could forge of what was seen; "" nothing.
	Forgeable string `json:"forgeable,omitempty"`
	// Untouched: until it was confirmed nobody had been seen in the machines, neither
	// through the referee's gateway, which is the only way in, nor at the console. So
	// nobody was root there who could forge anything.
	Untouched bool `json:"untouched,omitempty"`
}

// Clock are the instants that order the evidence. Restored is null when the
// service did not come back.
type Clock struct {
	BaselineMS  uint64  `json:"baseline_ms"`
	InjectedMS  uint64  `json:"injected_ms"`
	ConfirmedMS uint64  `json:"confirmed_ms"`
	RestoredMS  *uint64 `json:"restored_ms"`
	EndMS       uint64  `json:"end_ms"`
	// PausedMS is how long the heat was paused while the fault ran.
	PausedMS uint64 `json:"paused_ms,omitempty"`
}

// Probe is what the referee's client counted. Before and After are the
// acknowledged writes before the fault and since its confirmation: the least that
// they can be, where a sample spans an instant.
type Probe struct {
	Writes        uint64 `json:"writes"`
	Acknowledged  uint64 `json:"acknowledged"`
	Failed        uint64 `json:"failed"`
	Indeterminate uint64 `json:"indeterminate"`
	Lost          uint64 `json:"lost"`
	LossMS        uint64 `json:"loss_ms"`
	Unread        uint64 `json:"unread"`
	Phantoms      uint64 `json:"phantoms"`
	Before        uint64 `json:"acknowledged_before"`
	After         uint64 `json:"acknowledged_after"`
	// GapMS is the longest stretch since the fault without an acknowledged write;
	// null when the last one has no end.
	GapMS *uint64 `json:"gap_ms"`
	// Shared: other faults struck the seat in this heat, so that a lost write cannot
	// be told to be this one's.
	Shared bool `json:"shared,omitempty"`
	// Counted says that the client's samples and its result say the same.
	Counted bool `json:"counted"`
}

// NegativeControl says how many spoilt copies of the evidence the gates were shown
// before it was kept, and how many they refused for what was spoilt.
type NegativeControl struct {
	Cases    int `json:"cases"`
	Rejected int `json:"rejected"`
}

// ToldWords is what a verifier told, in a line: each key and its value, sorted by key.
// "" when it told nothing.
func ToldWords(told json.RawMessage) string {
	all := map[string]any{}
	if json.Unmarshal(told, &all) != nil {
		return ""
	}
	var out []string
	for _, key := range sorted(all) {
		out = append(out, fmt.Sprintf("%s %v", key, all[key]))
	}
	return text.Truncate(text.Line(strings.Join(out, ", ")), 300, text.Ellipsis)
}
