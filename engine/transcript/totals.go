package transcript

// Usage is what was charged. A nil figure is not recorded: it is not zero.
type Usage struct {
	// Input is every input token: uncached, read from a cache, written to one.
	Input      *int64 `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_tokens"`
	CacheWrite *int64 `json:"cache_write_tokens"`
	// Output is every output token, reasoning included.
	Output    *int64 `json:"output_tokens"`
	Reasoning *int64 `json:"reasoning_tokens"`
	// CostMicroUSD is the money in micro-dollars.
	CostMicroUSD *int64 `json:"cost_microusd"`
}

// Totals is a transcript's whole usage and how it was found.
type Totals struct {
	Usage
	// Method names the rule for tokens, such as "cumulative deltas" or "largest
	// line per message id"; "none recorded" when there are none.
	Method string `json:"method"`
	// CostMethod names the rule for money, "none recorded" when there is none.
	CostMethod string `json:"cost_method"`
	// Charges counts the charges that were added up.
	Charges int `json:"charges"`
	// Partial says that the transcript is not read to its end yet.
	Partial bool `json:"partial"`
	// Notes are cautions to show beside the figures.
	Notes []string `json:"notes,omitempty"`
}

// Clock is what a transcript's times are.
type Clock uint8

// Clocks.
const (
	NoClock   Clock = iota
	Absolute        // times of day; AtMS counts from the first
	Naive           // times of day without a zone, read as UTC
	Relative        // milliseconds since the harness started
	Synthetic       // made from durations: the record has no times
)

var clockNames = [...]string{"none", "absolute", "naive", "relative", "synthetic"}

func (c Clock) String() string { return name(clockNames[:], int(c)) }

// Info is what a transcript says of itself; all sanitised, "" when not said.
type Info struct {
	Format    string `json:"format"` // such as "claude-code", "codex", "swe-agent"
	Version   string `json:"version,omitempty"`
	Session   string `json:"session,omitempty"`
	Model     string `json:"model,omitempty"`
	Harness   string `json:"harness,omitempty"`
	WorkDir   string `json:"workdir,omitempty"`
	Outcome   string `json:"outcome,omitempty"` // in the record's own words
	Result    string `json:"result,omitempty"`  // the final words or error
	Task      string `json:"task,omitempty"`
	Territory string `json:"territory,omitempty"`
	// Extra are other facts worth showing, such as test results, scores and the
	// infrastructure_evaluation extension's outcome, by their names in the record.
	Extra []Fact `json:"extra,omitempty"`
}

// Fact is a named value, sanitised.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AgentInfo is an agent of the transcript: the main one, a sub-agent, or a
// sample of an evaluation's log.
type AgentInfo struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Parent int    `json:"parent"` // index in Agents, -1 for a root
	// Step is the call that started it, -1 when not known.
	Step int `json:"step"`
	// File is the sub-agent's own record: opened with OpenAgent. "" when its steps
	// are among this transcript's.
	File  string `json:"file,omitempty"`
	Steps int    `json:"steps"` // of this transcript
}
